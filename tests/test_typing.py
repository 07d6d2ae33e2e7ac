"""A type checker accepts what users write, and refuses what they get wrong."""

import shutil
import subprocess
import sys
from pathlib import Path

import torch
from tool_runner import ROOT

USE = ROOT / 'tests/public_names.py'


def check(path):
    libraries = Path(torch.__file__).parents[1]
    command = [sys.executable, '-m', 'ty', 'check', '--extra-search-path', ROOT, '--extra-search-path', libraries, path]
    return subprocess.run(command, capture_output=True, text=True, cwd=path.parent)


def test_the_whole_package_passes_the_rules_of_the_project():
    result = check(ROOT / 'vt')
    assert result.returncode == 0, result.stdout


def test_these_rules_find_wrong_names_and_arguments(tmp_path):
    wrong = tmp_path / 'wrong.py'
    wrong.write_text('from vt import apis\nundefined\napis.get_model()\nimport vt.none\n')
    shutil.copy(ROOT / 'pyproject.toml', tmp_path)
    result = check(wrong)
    assert all(f'wrong.py:{line}:' in result.stdout for line in (2, 3, 4)), result.stdout


def test_public_names_have_types():
    result = check(USE)
    assert result.returncode == 0, result.stdout
    assert (ROOT / 'vt/py.typed').exists()


def test_a_wrong_use_is_refused(tmp_path):
    """By the type checker's own rules: a user's project has not ours."""
    (tmp_path / 'ty.toml').write_text('')
    wrong = tmp_path / 'wrong.py'
    wrong.write_text(
        'import vt\nfrom vt import apis\nvt.VTResNt\nvt.VTFPN()\nnames: int = apis.list_models()\n'
        'apis.get_model("vt-resnet18_digits", devise=1).eval().no_such.thing\napis.get_model()\n'
    )
    result = check(wrong)
    assert result.returncode == 1
    assert all(f'wrong.py:{line}:' in result.stdout for line in (3, 4, 5, 7)), result.stdout
