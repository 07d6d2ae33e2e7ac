"""When one process fails all of them end with exit code 1: it says why in one line, the others that it was not they."""

import socket

import cv2
import numpy as np
import pytest
from failing_processes import fail_in_turn
from process_groups import free_port, run_function, run_processes
from tool_runner import ROOT, SMALL_CLASSIFIER, assert_one_line

CONFIG = ROOT / 'configs/vt_resnet/vt-resnet18_digits.py'
FEW = [*SMALL_CLASSIFIER, 'train_cfg.max_epochs=2', 'train_dataloader.batch_size=8']
FAILING = f"""
_base_ = '{CONFIG}'
custom_imports = dict(imports=['vt', 'failing_processes'])
custom_hooks = [dict(type='Fail', rank=RANK, iteration=3, how='HOW')]
"""


def write_failing(folder, rank, how):
    path = folder / 'failing.py'
    path.write_text(FAILING.replace('RANK', str(rank)).replace('HOW', how))
    return path


def assert_peers_stop(results, failed, message):
    for rank, result in enumerate(results):
        assert_one_line(result, message if rank == failed else 'stopped because another process failed')
        assert f'error: rank {rank}: ' in result.stderr


def test_an_error_in_one_process_ends_all(tmp_path):
    config = write_failing(tmp_path, 2, 'the third breaks')
    results = run_processes(3, 'train.py', config, '--work-dir', 'out', cwd=tmp_path, options=FEW)
    assert_peers_stop(results, 2, 'the third breaks')
    logs = {path.name.rpartition('_')[2]: path.read_text() for path in (tmp_path / 'out').rglob('*.log')}
    assert set(logs) == {f'rank{rank}.log' for rank in range(3)}
    assert 'UserError: the third breaks' in logs['rank2.log']
    assert 'UserError: the third breaks' not in logs['rank0.log']
    assert all('Epoch(train)' in log for log in logs.values())
    assert [bool(result.stdout) for result in results] == [True, False, False]


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


def test_a_damaged_image_in_the_shard_of_one_process_ends_both(tmp_path):
    for split in ('train', 'val'):
        for label in ('cat', 'dog'):
            (tmp_path / split / label).mkdir(parents=True)
            for index in range(4):
                cv2.imwrite(str(tmp_path / split / label / f'{index}.png'), np.full((40, 50, 3), index, np.uint8))
    (tmp_path / 'train/dog/2.png').write_bytes(b'no image')
    options = ['train_cfg.max_epochs=1', 'train_dataloader.batch_size=2', 'model.head.num_classes=2']
    options += ['train_dataloader.num_workers=1', 'val_dataloader.num_workers=0', 'test_dataloader.num_workers=0']
    options += [f'{split}_dataloader.dataset.data_root={tmp_path}' for split in ('train', 'val', 'test')]
    options += ['model.backbone.base_channels=16', 'model.backbone.stem_channels=16']
    config = ROOT / 'configs/vt_resnet/vt-resnet18_1xb32-90e_image-folder.py'
    results = run_processes(2, 'train.py', config, '--work-dir', 'out', cwd=tmp_path, options=options)
    failed = next(rank for rank, result in enumerate(results) if 'dog/2.png' in result.stderr)
    assert_peers_stop(results, failed, 'dog/2.png')


def test_a_port_in_use_is_one_line(tmp_path):
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', 0))
        taken.listen()
        port = taken.getsockname()[1]
        env = dict(RANK='0', WORLD_SIZE='2', MASTER_ADDR='127.0.0.1', MASTER_PORT=str(port))
        (result,) = run_processes(1, 'train.py', CONFIG, '--work-dir', 'out', cwd=tmp_path, env=env)
    assert_one_line(result, f'could not connect to the other processes at 127.0.0.1:{port} (')
    assert 'check that the port is free' in result.stderr


@pytest.mark.parametrize(
    ('launcher', 'message'),
    [
        ('pytorch', 'RANK is not set; start the processes with torchrun, or tools/dist_train.sh'),
        ('slurm', 'SLURM_PROCID is not set; start the processes with srun, or tools/slurm_train.sh'),
    ],
)
def test_a_launcher_that_did_not_start_the_process_is_one_line(launcher, message, tmp_path):
    (result,) = run_processes(1, 'train.py', CONFIG, '--launcher', launcher, cwd=tmp_path)
    assert_one_line(result, f'--launcher {launcher}: {message}')


def test_a_machine_that_is_not_there_is_one_line(tmp_path):
    env = dict(RANK='1', WORLD_SIZE='2', MASTER_ADDR='no.such.invalid')
    (result,) = run_processes(1, 'train.py', CONFIG, cwd=tmp_path, env=env)
    assert_one_line(result, 'there is no machine no.such.invalid: set MASTER_ADDR')


def test_a_main_process_that_does_not_answer_is_named(tmp_path):
    options = ['env_cfg.dist_cfg.timeout=1']
    env = dict(RANK='1', WORLD_SIZE='2', MASTER_ADDR='127.0.0.1', MASTER_PORT=str(free_port()))
    (result,) = run_processes(1, 'train.py', CONFIG, '--work-dir', 'out', cwd=tmp_path, env=env, options=options)
    assert_one_line(result, f'could not connect to the other processes at 127.0.0.1:{env["MASTER_PORT"]} (')


def test_what_breaks_with_a_connection_follows_the_first_failure():
    """The second process knows of the first one's failure even where another kind of error is its own."""
    assert run_function(2, fail_in_turn) == [[False], [True, False]]
