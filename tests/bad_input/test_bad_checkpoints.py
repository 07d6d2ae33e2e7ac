"""Checkpoints that training can't go on from; what else is wrong with checkpoints is in ``tests/checkpoints``."""

import pytest
from bad_input.kept_run import DIGITS, assert_refused, train

DAMAGED = {'empty': b'', 'text': b'no checkpoint\n', 'truncated': None}


@pytest.mark.parametrize('kind', DAMAGED)
@pytest.mark.parametrize('use', ['--resume', 'load_from'])
def test_a_damaged_checkpoint(kind, use, kept, tmp_path):
    content = DAMAGED[kind]
    content = (kept.path / 'epoch_1.pth').read_bytes()[:-5000] if content is None else content
    (tmp_path / 'bad.pth').write_bytes(content)
    arguments, options = (['--resume', 'bad.pth'], []) if use == '--resume' else ([], ['load_from=bad.pth'])
    assert_refused(train(tmp_path, DIGITS, *arguments, '--work-dir', kept, options=options), 'bad.pth', kept)


def test_resume_from_another_model(kept, tmp_path):
    narrow = DIGITS.replace('token_channels=64', 'token_channels=32').replace('in_channels=64', 'in_channels=32')
    checkpoint = kept.path / 'epoch_1.pth'
    result = train(tmp_path, narrow, '--work-dir', kept, '--resume', checkpoint)
    assert_refused(result, f"{checkpoint} is not the model's", kept)
