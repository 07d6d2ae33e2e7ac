"""Checkpoints that training can't go on from; what else is wrong with checkpoints is in ``tests/checkpoints``."""

import pytest
from bad_input.small_runs import DIGITS, train
from tool_runner import assert_one_line


@pytest.mark.parametrize('kind', ['text', 'truncated'])
@pytest.mark.parametrize('use', ['--resume', 'load_from'])
def test_a_damaged_checkpoint(kind, use, trained_digits, tmp_path):
    contents = dict(text=b'no checkpoint\n', truncated=trained_digits.read_bytes()[:-5000])
    (tmp_path / 'bad.pth').write_bytes(contents[kind])
    arguments, options = (['--resume', 'bad.pth'], []) if use == '--resume' else ([], ['load_from=bad.pth'])
    assert_one_line(train(tmp_path, DIGITS, *arguments, options=options), 'bad.pth')


def test_resume_from_another_model(trained_digits, tmp_path):
    narrow = DIGITS.replace('token_channels=64', 'token_channels=32').replace('in_channels=64', 'in_channels=32')
    assert_one_line(train(tmp_path, narrow, '--resume', trained_digits), f"{trained_digits} is not the model's")
