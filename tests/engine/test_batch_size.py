"""The largest batch: the search, and a real one whose memory the system limits."""

import re
import subprocess
import sys

import pytest
from forked_tools import run_forked
from tool_runner import ROOT, assert_one_line

from vt.engine.batch_size import largest
from vt.errors import UserError

CONFIG = ROOT / 'configs/vt_resnet/vt-resnet18-half_digits.py'


@pytest.mark.parametrize('first', [1, 7, 32, 300])
@pytest.mark.parametrize('most', [1, 5, 64, 10_000])
@pytest.mark.parametrize('limit', [1, 2, 31, 100, 1000, 20_000])
def test_the_largest_that_fits_is_found_to_a_sixteenth(first, most, limit):
    tried = []

    def fits(size):
        tried.append(size)
        return size <= limit

    found, best = largest(fits, first, most), min(limit, most)
    assert best / (1 + 1 / 16) - 1 < found <= best
    assert found in tried
    assert len(tried) == len({*tried}) <= 20
    assert max(tried) <= max(most, 1)


def test_nothing_fits():
    with pytest.raises(UserError, match='a batch of one image does not fit'):
        largest(lambda size: False, 32, 100)


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        ([], '--find-batch-size needs a memory limit: use a GPU, or on a CPU set one with ulimit -v KILOBYTES'),
        (['--resume'], '--find-batch-size needs a single process without --resume'),
    ],
)
def test_what_has_no_limit_is_one_line(arguments, message, tmp_path):
    result = run_forked('train.py', CONFIG, '--find-batch-size', *arguments, cwd=tmp_path)
    assert_one_line(result, message)


@pytest.mark.slow
@pytest.mark.parametrize('limit', [5_000_000, 20_000_000])
def test_a_limit_of_the_system_is_found(limit, tmp_path):
    """PyTorch, its libraries and a few hundred images fit into 5 GB of addresses, all of the digits do not."""
    tool = [sys.executable, str(ROOT / 'tools/train.py'), str(CONFIG), '--find-batch-size']
    limited = (
        f'ulimit -v {limit} && OMP_NUM_THREADS=1 exec {" ".join(tool)} --cfg-options train_dataloader.batch_size=256'
    )
    result = subprocess.run(['bash', '-c', limited], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-3000:]
    (found,) = re.findall(
        r'^largest batch.*train_dataloader\.batch_size=(\d+) --auto-scale-lr \(from 32\)', result.stdout, re.M
    )
    assert ('out of memory' in result.stdout) == (limit < 10_000_000)
    assert (int(found) > 1350) == (limit > 10_000_000)
    assert not list(tmp_path.iterdir())
