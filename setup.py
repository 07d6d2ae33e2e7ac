"""Package VT: ``pip install -e . -c constraints.txt`` installs it with the tested versions of all it needs."""

from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent


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
    name='vt',
    version=read_version(),
    description='Visual Transformers (Wu et al., ICCV 2021) for MMPretrain and MMSegmentation',
    long_description=(ROOT / 'README.md').read_text(),
    long_description_content_type='text/markdown',
    license='Apache-2.0',
    license_files=['LICENSE'],
    packages=find_packages(include=['vt', 'vt.*']),
    package_data={'vt.analysis': ['paper_tables.json', 'survey_systems.json']},
    python_requires='>=3.10',
    install_requires=read_requirements('vt'),
    extras_require={
        'tests': read_requirements('tests'),
        'videos': ['av>=14'],  # PyAV as a decoder, beside OpenCV
        'sweeps': ['submitit>=1.5,<2'],  # tools/sweep.py
        'timm': ['timm>=1,<2'],  # any timm model by config, through MMPretrain
    },
)
