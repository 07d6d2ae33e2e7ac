"""Package VT: ``pip install -e . -c constraints.txt`` installs it with the tested versions of all it needs.

The distribution is called visual-transformers, for ``vt`` is another project's on PyPI; the package is ``vt``.
"""

import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent


# Optional features. 'all' has those of users, 'tests' all but OpenVINO.
EXTRAS = dict(
    hub=['timm>=1,<2', 'transformers>=5,<6', 'huggingface_hub>=1,<3'],  # public weights and backbones by name
    export=['onnx>=1.18,<2', 'onnxscript>=0.5,<1', 'onnxruntime>=1.22,<2', 'openvino>=2025.3'],
    data=['datasets>=4,<6', 'tifffile>=2025.1.10', 'av>=14'],  # rows of Hugging Face, bands of TIFF, more videos
    explore=['gradio>=6.20,<7', 'grad-cam>=1.5,<2'],  # the page of tools/explore.py, heat maps
    docs=[  # the site of mkdocs.yml and the tables of the pages
        'mkdocs>=1.6,<2',
        'mkdocs-material>=9.7,<10',
        'mkdocstrings[python]>=1,<2',
        'pandas>=2.2,<4',
        'networkx>=3.2,<4',
        'tabulate>=0.9,<1',
    ],
)
EXTRAS['all'] = [line for name in ('hub', 'export', 'data', 'explore') for line in EXTRAS[name]]
EXTRAS['tests'] = [
    *(line for line in [*EXTRAS['all'], *EXTRAS['docs']] if not line.startswith('openvino')),
    'pytest>=8,<10',
    'pytest-xdist>=3.6,<4',
    'hypothesis>=6.100,<7',
    'ruff>=0.9',
    'selenium>=4.25,<5',
    'lightning>=2.5,<3',
    'ty>=0.0.100,<0.1',
]


class BuildWithConfigs(build_py):
    """Put what OpenMMLab's tools look for in an installed package into its folder ``.mim``: configs, tools, the index.

    An editable package has them beside it.
    """

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        place = Path(self.build_lib, 'vt/.mim')
        ignore = shutil.ignore_patterns('__pycache__')
        for folder in ('configs', 'tools'):
            shutil.copytree(ROOT / folder, place / folder, ignore=ignore, dirs_exist_ok=True)
        shutil.copy(ROOT / 'model-index.yml', place)


def read_requirements() -> list[str]:
    lines = (ROOT / 'requirements.txt').read_text().splitlines()
    return [line for line in lines if not line.startswith('#')]


def read_version() -> str:
    lines = (ROOT / 'vt' / '__init__.py').read_text().splitlines()
    line = next(line for line in lines if line.startswith('__version__'))
    return line.split("'")[1]


setup(
    name='visual-transformers',
    version=read_version(),
    description='Visual Transformers (Wu et al., ICCV 2021) and 36 other vision transformers, trained from configs',
    long_description=(ROOT / 'README.md').read_text(),
    long_description_content_type='text/markdown',
    license='Apache-2.0',
    url='https://arxiv.org/abs/2006.03677',  # the paper; the project itself has no public address yet
    license_files=['LICENSE'],
    packages=find_packages(include=['vt', 'vt.*']),
    cmdclass=dict(build_py=BuildWithConfigs),
    package_data={
        'vt': ['py.typed'],
        'vt.commands': ['*.j2'],
        'vt.explorer': ['*.j2', '*.css'],
    },
    entry_points=dict(console_scripts=['vt = vt.cli:main']),
    python_requires='>=3.11',
    install_requires=read_requirements(),
    extras_require=EXTRAS,
    classifiers=[
        'Development Status :: 4 - Beta',
        'Intended Audience :: Science/Research',
        'Operating System :: POSIX :: Linux',
        'Programming Language :: Python :: 3',
        'Programming Language :: Python :: 3.11',
        'Programming Language :: Python :: 3.12',
        'Programming Language :: Python :: 3.13',
        'Programming Language :: Python :: 3.14',
        'Topic :: Scientific/Engineering :: Artificial Intelligence',
    ],
)
