"""Twenty encoded videos are trained on, killed, resumed, shared by two processes, and tested with 15 views each."""

import json
import pickle
import signal
import time
from pathlib import Path

import cv2
import pytest
import torch
from forked_tools import ForkedTool, run_forked
from process_groups import run_processes
from run_comparison import assert_same_end, final_checkpoint
from video.written_videos import draw, write

CONFIG = Path(__file__).parent / 'files.py'
TOLERANCE = dict(rtol=1e-8, atol=1e-8)
# Nothing that draws in the model; numbers of double precision.
EQUAL = f"""
_base_ = '{CONFIG}'
custom_imports = dict(imports=['vt', 'video.tiny_video_network', 'loss_recorder'])
custom_hooks = [dict(type='LossRecorder')]
model = dict(head=dict(dropout=0.0), train_cfg=None)
train_dataloader = dict(batch_size=BATCH, num_workers=0, persistent_workers=False)
val_evaluator = dict(_delete_=True, type='MeanScore')
test_evaluator = val_evaluator
default_hooks = dict(checkpoint=dict(save_best=None))
train_cfg = dict(max_epochs=1)
"""


def write_twenty(folder):
    for index in range(20):
        label, codec = ('dark', 'bright')[index % 2], ('mp4v', 'MJPG')[index // 2 % 2]
        suffix = '.mp4' if codec == 'mp4v' else '.avi'
        write(folder / f'data/videos/{label}/{index}{suffix}', draw(5 + 2 * index, 80 * (index % 2)), codec)


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """A folder with twenty videos, from shorter than a clip to ten times as long, and ``whole``, a run left alone."""
    folder = tmp_path_factory.mktemp('videos')
    write_twenty(folder)
    result = run_forked('train.py', CONFIG, '--work-dir', 'whole', cwd=folder)
    assert result.returncode == 0, result.stderr
    return folder


def test_killed_in_an_epoch_and_resumed_is_bit_identical(folder):
    run = ForkedTool('train.py', CONFIG, '--work-dir', 'killed', cwd=folder)
    while 'Epoch(train) [2][3/5]' not in run.stdout and run.process.is_alive():
        time.sleep(0.01)
    run.send_signal(signal.SIGKILL)
    assert run.wait().returncode == -signal.SIGKILL, run.stderr
    result = run_forked('train.py', CONFIG, '--work-dir', 'killed', '--resume', cwd=folder)
    assert result.returncode == 0, result.stderr
    assert_same_end(folder / 'killed', folder / 'whole')


@pytest.mark.slow
def test_a_signal_in_an_epoch_saves_and_goes_on(folder):
    """In the middle of an epoch of repeated augmentation."""
    run = ForkedTool('train.py', CONFIG, '--work-dir', 'stopped', cwd=folder)
    while 'Epoch(train) [2][2/5]' not in run.stdout and run.process.is_alive():
        time.sleep(0.01)
    run.send_signal(signal.SIGTERM)
    assert run.wait().returncode == 128 + signal.SIGTERM, run.stderr
    result = run_forked('train.py', CONFIG, '--work-dir', 'stopped', '--resume', cwd=folder)
    assert result.returncode == 0, result.stderr
    assert_same_end(folder / 'stopped', folder / 'whole')


def test_two_processes_equal_one(folder):
    results = []
    for count in (1, 2):
        (folder / 'config.py').write_text(EQUAL.replace('BATCH', str(4 // count)))
        work_dir = folder / f'{count} processes'
        arguments = ['train.py', 'config.py', '--work-dir', work_dir]
        assert [result.returncode for result in run_processes(count, *arguments, cwd=folder)] == [0] * count
        losses = [json.loads((work_dir / f'losses_{rank}.json').read_text()) for rank in range(count)]
        checkpoint = final_checkpoint(work_dir)
        results.append((torch.tensor(losses, dtype=torch.float64).mean(0), checkpoint['state_dict']))
    assert len(results[0][0]) == 5
    torch.testing.assert_close(*results, **TOLERANCE)


def test_scores_are_averaged_over_views(folder):
    checkpoint = (folder / 'whole/last_checkpoint').read_text()
    arguments = [
        CONFIG,
        checkpoint,
        '--work-dir',
        'tested',
        '--out',
        'scores.pkl',
        '--benchmark',
        '--show-dir',
        'shown',
        '--report',
        'report',
    ]
    result = run_forked('test.py', *arguments, cwd=folder)
    assert result.returncode == 0, result.stderr
    predictions = pickle.loads((folder / 'scores.pkl').read_bytes())
    assert len(predictions) == 20
    assert all(prediction['pred_score'].sum() == pytest.approx(1) for prediction in predictions)
    report = json.loads((folder / 'report/report.json').read_text())
    right = [each['pred_label'].item() == each['gt_label'].item() for each in predictions]
    assert report['metrics']['accuracy/top1'] == pytest.approx(100 * sum(right) / 20)
    record = json.loads((folder / 'tested.benchmark.json').read_text())
    assert record['image_shape'] == [3, 4, 24, 24]
    assert record['flops'] == 4 * 6 * 6 * 8 * 3 * 75 + 8 * 2
    assert 'clips/s at batch 4' in result.stdout
    strip = cv2.imread(str(folder / 'shown/dark/0.mp4.png'))
    assert strip.shape[1] > 3 * strip.shape[0]


@pytest.mark.slow
def test_views_are_mirrored_on_request(folder):
    checkpoint = (folder / 'whole/last_checkpoint').read_text()
    arguments = [CONFIG, checkpoint, '--work-dir', 'mirrored', '--tta', '--out', 'mirrored.pkl', '--benchmark']
    result = run_forked('test.py', *arguments, cwd=folder)
    assert result.returncode == 0, result.stderr
    predictions = pickle.loads((folder / 'mirrored.pkl').read_bytes())
    assert len(predictions) == 20
    assert all(prediction['pred_score'].sum() == pytest.approx(1) for prediction in predictions)


def test_all_files_are_read_by_check_dataset(folder, tmp_path):
    (tmp_path / 'data').mkdir()
    (tmp_path / 'data/videos').symlink_to(folder / 'data/videos')
    result = run_forked('check_dataset.py', CONFIG, '--splits', 'train', '--out', 'report.json', cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    (data_set,) = json.loads((tmp_path / 'report.json').read_text())['data_sets']
    assert data_set['classes'] == dict(bright=10, dark=10)
    assert '48x64 pixels; 20 at 25 frames/s; 5 to 43 frames; 1 shorter than a clip, which spans 7' in result.stdout
