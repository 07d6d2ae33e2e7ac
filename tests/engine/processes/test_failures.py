"""When one process fails all of them end with exit code 1: it says why in one line, the others that it was not they."""

import signal

import pytest
from process_groups import free_port, run_processes
from tool_runner import ROOT, SMALL_CLASSIFIER, assert_one_line

CONFIG = ROOT / 'configs/vt_resnet/vt-resnet18_digits.py'
FEW = [*SMALL_CLASSIFIER, 'train_cfg.max_epochs=2', 'train_dataloader.batch_size=8']
FAILING = """
_base_ = {!r}
custom_imports = dict(imports=['vt', 'failing_processes'])
custom_hooks = [dict(type='Fail', rank=1, iteration=4, how={!r})]
"""
STOPPED = 'stopped because another process failed'


def test_an_error_in_one_process_ends_all(tmp_path):
    (tmp_path / 'failing.py').write_text(FAILING.format(str(CONFIG), 'the second breaks'))
    results = run_processes(2, 'train.py', 'failing.py', '--work-dir', 'out', cwd=tmp_path, options=FEW)
    for rank, words in enumerate([STOPPED, 'the second breaks']):
        assert_one_line(results[rank], words)
        assert f'error: rank {rank}: ' in results[rank].stderr
    logs = {path.name.rpartition('_')[2]: path.read_text() for path in (tmp_path / 'out').rglob('*.log')}
    assert set(logs) == {'rank0.log', 'rank1.log'}
    assert ['UserError: the second breaks' in logs[f'rank{rank}.log'] for rank in range(2)] == [False, True]
    assert all('Epoch(train)' in log for log in logs.values())
    assert [bool(result.stdout) for result in results] == [True, False]


def test_a_killed_process_ends_the_other_in_one_line(tmp_path):
    (tmp_path / 'failing.py').write_text(FAILING.format(str(CONFIG), 'SIGKILL'))
    result, killed = run_processes(2, 'train.py', 'failing.py', '--skip-data-check', cwd=tmp_path, options=FEW)
    assert killed.returncode == -signal.SIGKILL
    assert_one_line(result, STOPPED)


def test_parameters_without_gradient_end_all_before_the_first_step(tmp_path):
    """A stage after the last map that the head gets."""
    backbone = (
        "backbone=dict(_delete_=True, type='ResNet', depth=18, base_channels=8, stem_channels=8, out_indices=(2,))"
    )
    model = f"dict({backbone}, neck=dict(_delete_=True, type='GlobalAveragePooling'), head=dict(in_channels=32))"
    (tmp_path / 'unused.py').write_text(f'_base_ = {str(CONFIG)!r}\nmodel = {model}\n')
    options = ['train_cfg.max_epochs=1', 'train_dataloader.batch_size=8']
    options += ['train_dataloader.dataset.indices=32', 'val_dataloader.dataset.indices=8']
    for result in run_processes(2, 'train.py', 'unused.py', cwd=tmp_path, options=options):
        assert_one_line(result, '15 parameters: backbone.layer4.0.conv1.weight, ')
        assert ', ...: set find_unused_parameters=True, or remove or freeze' in result.stderr


@pytest.mark.parametrize(
    ('machine', 'message'),
    [
        ('no.such.invalid', 'cannot resolve the host name no.such.invalid: set MASTER_ADDR'),
        ('127.0.0.1', 'could not connect to the other processes at 127.0.0.1:'),
    ],
)
def test_a_main_process_that_does_not_answer_is_named(machine, message, tmp_path):
    env = dict(RANK='1', WORLD_SIZE='2', MASTER_ADDR=machine, MASTER_PORT=str(free_port()))
    options = ['env_cfg.dist_cfg.timeout=1']
    (result,) = run_processes(1, 'train.py', CONFIG, '--work-dir', 'out', cwd=tmp_path, env=env, options=options)
    assert_one_line(result, message)
