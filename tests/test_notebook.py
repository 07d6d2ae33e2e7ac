"""The notebook of first steps runs from its first cell to its last."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from apis.published_files import put_in_hub
from tool_runner import ROOT

CELLS = json.loads((ROOT / 'docs/how-to/first-steps.ipynb').read_text())['cells']
CODE = [''.join(cell['source']) for cell in CELLS if cell['cell_type'] == 'code']


@pytest.mark.slow
def test_its_cells_run_one_after_the_other(tmp_path, monkeypatch):
    """Random weights stand for those that timm fetches; the first cell makes the environment that this one is."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'docs').symlink_to(ROOT / 'docs')
    put_in_hub(tmp_path / 'hub', 'swin_tiny_patch4_window7_224.ms_in1k')
    variables = dict(HF_HUB_CACHE=str(tmp_path / 'hub'), HF_HUB_OFFLINE='1', PYTHONPATH=str(ROOT), MPLBACKEND='Agg')
    variables['PATH'] = os.pathsep.join([str(Path(sys.executable).parent), os.environ['PATH']])
    python = ''.join(cell if cell[0] != '!' else f'run(f{cell[1:]!r})\n' for cell in map('{}\n'.format, CODE[1:]))
    start = 'import subprocess\ndef run(line):\n    subprocess.run(line, shell=True, check=True)\n'
    command = [sys.executable, '-c', start + python]
    result = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-3000:]
    assert 'data/notebook/five/' in result.stdout
    assert (tmp_path / 'work_dirs/notebook/tokens.png').stat().st_size > 10_000
