"""One process of NCCL's is a run without one, to the last bit."""

import os
import subprocess
import sys

import pytest
import torch
from run_comparison import assert_same_end
from tool_runner import ROOT

CONFIG = ROOT / 'tests/engine/interruption/epochs.py'


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason='needs a GPU')
def test_a_group_of_one_process_trains_like_none(tmp_path):
    commands = dict(
        none=[sys.executable, ROOT / 'tools/train.py', CONFIG], one=['bash', ROOT / 'tools/dist_train.sh', CONFIG, '1']
    )
    env = os.environ | dict(PYTHON=sys.executable)
    for name, command in commands.items():
        result = subprocess.run([*command, '--work-dir', name], cwd=tmp_path, env=env, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
    assert_same_end(tmp_path / 'none', tmp_path / 'one')
