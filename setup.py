"""Package VT: ``pip install -e . -c constraints.txt`` installs it with the tested versions of all it needs.

The distribution is called visual-transformers, for ``vt`` is another project's on PyPI; the package is ``vt``.
"""

import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent


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


def read_requirements(section: str) -> list[str]:
    """Lines of ``requirements.txt`` below ``# section`` up to the next blank line."""
    blocks = [block.splitlines() for block in (ROOT / 'requirements.txt').read_text().split('\n\n')]
    block = next(block for block in blocks if block[0] == f'# {section}')
    return [line for line in block if not line.startswith('#')]


def read_version() -> str:
    lines = (ROOT / 'vt' / '__init__.py').read_text().splitlines()
    line = next(line for line in lines if line.startswith('__version__'))
    return line.split("'")[1]


setup(
    name='visual-transformers',
    version=read_version(),
    description='Visual Transformers (Wu et al., ICCV 2021) for MMPretrain and MMSegmentation',
    long_description=(ROOT / 'README.md').read_text(),
    long_description_content_type='text/markdown',
    license='Apache-2.0',
    license_files=['LICENSE'],
    packages=find_packages(include=['vt', 'vt.*']),
    cmdclass=dict(build_py=BuildWithConfigs),
    package_data={
        'vt': ['py.typed'],
        'vt.commands': ['*.j2'],
        'vt.explorer': ['*.j2', '*.css'],
    },
    entry_points=dict(console_scripts=['vt = vt.__main__:main']),
    python_requires='>=3.10',
    install_requires=read_requirements('vt'),
    extras_require={
        'tests': [line for name in ('tests', 'export', 'explorer', 'docs') for line in read_requirements(name)],
        'bands': ['tifffile>=2025.1.10'],  # vt.LoadBands of TIFF
        'datasets': ['datasets>=4,<6'],  # vt.HuggingFaceDataset
        'export': read_requirements('export'),  # tools/export.py's ONNX
        'openvino': ['openvino>=2025.3'],  # tools/export.py's OpenVINO, beside 'export'
        'explorer': read_requirements('explorer'),  # tools/explore.py's page
        'docs': read_requirements('docs'),  # the site of mkdocs.yml
        'heat-maps': ['grad-cam>=1.5,<2'],  # tools/analysis/show_heat_maps.py, also in reports
        'transformers': ['transformers>=5,<6'],  # vt.HuggingFaceBackbone
        'timm': ['timm>=1,<2'],  # its weights by name; any timm model by config, through MMPretrain
    },
)
