"""What an installed package holds."""

import subprocess
import sys
from pathlib import Path

from tool_runner import ROOT


def test_a_build_holds_every_module_and_the_configs(tmp_path):
    command = [sys.executable, 'setup.py', '-q', 'build_py', '--build-lib', tmp_path]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    built = {path.relative_to(tmp_path) for path in tmp_path.rglob('*') if path.is_file()}
    modules = {path.relative_to(ROOT) for path in (ROOT / 'vt').rglob('*.py')} | {Path('vt/py.typed')}
    beside = [
        ROOT / 'model-index.yml',
        *(ROOT / 'tools').glob('*.*'),
        *(ROOT / 'tools/analysis').glob('*.py'),
    ]
    beside += [path for path in (ROOT / 'configs').rglob('*.*') if path.suffix in ('.md', '.py', '.yml')]
    mim = {'vt/.mim' / path.relative_to(ROOT) for path in beside}
    data = {path.relative_to(ROOT) for path in (ROOT / 'vt').rglob('*') if path.suffix in ('.j2', '.css')}
    assert built == modules | data | mim


def test_no_two_modules_of_the_analysis_and_the_command_lines_share_a_name():
    rooms = [path.name for room in ('analysis', 'commands') for path in (ROOT / 'vt' / room).rglob('*.py')]
    names = [name for name in rooms if name != '__init__.py']
    everywhere = [path.name for path in (ROOT / 'vt').rglob('*.py')]
    assert [name for name in names if everywhere.count(name) > 1] == []
