"""A type checker accepts the package and what users write, and refuses what they get wrong."""

import shutil
import subprocess
import sys
from pathlib import Path

import torch
from tool_runner import ROOT

WRONG = """import vt
from vt import apis
vt.VTResNt
vt.VTFPN()
names: int = apis.list_models()
apis.get_model("vt-resnet18_digits", devise=1).eval().no_such.thing
apis.get_model()
undefined
import vt.none
"""


def check(*paths, cwd=ROOT):
    options = ['--extra-search-path', ROOT, '--extra-search-path', Path(torch.__file__).parents[1]]
    command = [sys.executable, '-m', 'ty', 'check', *options, *paths]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd)


def test_the_package_and_its_public_names_pass_the_rules_of_the_project():
    result = check('vt', 'tests/public_names.py')
    assert result.returncode == 0, result.stdout
    assert (ROOT / 'vt/py.typed').exists()


def test_a_wrong_use_is_refused(tmp_path):
    """By these rules and by the type checker's own: a user's project has not ours."""
    (tmp_path / 'wrong.py').write_text(WRONG)
    shutil.copy(ROOT / 'pyproject.toml', tmp_path)
    for lines in ((7, 8, 9), (3, 4, 5, 7, 8, 9)):
        result = check('wrong.py', cwd=tmp_path)
        assert all(f'wrong.py:{line}:' in result.stdout for line in lines), result.stdout
        (tmp_path / 'ty.toml').write_text('')  # which stands before the rules of the project
