"""Package VT: ``pip install -e . -c constraints.txt`` installs it with the tested versions of all it needs."""

from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent


def read_requirements() -> list[str]:
    lines = (ROOT / 'requirements.txt').read_text().splitlines()
    return [line for line in lines if line and not line.startswith('#')]


def read_version() -> str:
    lines = (ROOT / 'vt' / '__init__.py').read_text().splitlines()
    line = next(line for line in lines if line.startswith('__version__'))
    return line.split("'")[1]


setup(
    name='vt',
    version=read_version(),
    description='Visual Transformers (Wu et al., ICCV 2021) for MMPretrain and MMSegmentation',
    long_description=(ROOT / 'README.md').read_text(),
    long_description_content_type='text/markdown',
    license='Apache-2.0',
    license_files=['LICENSE'],
    packages=find_packages(include=['vt', 'vt.*']),
    python_requires='>=3.10',
    install_requires=read_requirements(),
    extras_require={
        'tests': ['pytest>=8,<10', 'ruff>=0.9'],
        'timm': ['timm>=1,<2'],  # any timm model by config, through MMPretrain
        'safetensors': ['safetensors>=0.5,<1'],
    },
)
