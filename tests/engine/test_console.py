"""The console shows what a person needs of a run, its log file everything."""

import re
from pathlib import Path

from forked_tools import run_forked

CONFIG = Path(__file__).parents[2] / 'configs/vt_resnet/vt-resnet18-half_digits.py'
FEW = [*(f'{split}_dataloader.dataset.indices=64' for split in ('train', 'val')), 'train_cfg.max_epochs=2']
FEW += ['model.backbone.base_channels=8', 'model.backbone.stem_channels=8']
LOGGED = ('System environment:', 'Config:\n', '(VERY_LOW    ) CheckpointHook', 'Exp name: ')
SCORE = r'The best checkpoint with [\d.]+ accuracy/top1 at {0} epoch is saved to best_accuracy_top1_epoch_{0}.pth.'


def messages(result):
    assert result.returncode == 0, result.stderr
    return [re.sub(r'\x1b\[\d+m', '', line).split(' - ', 3)[-1] for line in result.stdout.splitlines()]


def test_a_training_prints_its_epochs_and_where_its_files_are(tmp_path):
    result = run_forked('train.py', CONFIG, '--work-dir', 'run', cwd=tmp_path, options=FEW)
    assert result.stderr == ''
    (log,) = (tmp_path / 'run').glob('*/*.log')
    wanted = [
        re.escape(f'Environment, config and hooks are in the log: {log}'),
        r'Speed: freed memory .*; --cfg-options speed: channels_last=True, .*',
        re.escape(f'Checkpoints will be saved to {tmp_path}/run.'),
    ]
    for epoch in (1, 2):
        wanted += [rf'Epoch\(train\) +\[{epoch}\]\[2/2\] .*', f'Saving checkpoint at {epoch} epochs']
        wanted += [rf'Epoch\(val\) +\[{epoch}\]\[\d+/\d+\] .*', SCORE.format(epoch)]
    found = messages(result)
    if len(found) < len(wanted):  # the second epoch was not better
        del wanted[-1]
    assert len(found) == len(wanted)
    assert [line for pattern, line in zip(wanted, found) if not re.fullmatch(pattern, line)] == []
    assert all(part in log.read_text() for part in LOGGED)
