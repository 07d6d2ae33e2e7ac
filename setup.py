"""Put the configs into builds; all else about the package is in pyproject.toml."""

import shutil
from pathlib import Path

from setuptools import setup
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


setup(cmdclass=dict(build_py=BuildWithConfigs))
