"""Twenty encoded videos are trained on, killed, resumed, and tested with 15 views each."""

import json
import pickle
import signal
import time
from pathlib import Path

import cv2
import pytest
from forked_tools import ForkedTool, run_forked
from run_comparison import assert_same_end
from tool_runner import call, succeed
from video.written_videos import draw, write

from vt.commands.check_dataset import read_data
from vt.engine.config.data import Data
from vt.engine.config.steps import RunOptions, prepare

CONFIG = Path(__file__).parent / 'files.py'


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """A folder with twenty videos, from shorter than a clip to ten times as long, and ``whole``, a run left alone."""
    folder = tmp_path_factory.mktemp('videos')
    for index in range(20):
        label, codec = ('dark', 'bright')[index % 2], ('mp4v', 'MJPG')[index // 2 % 2]
        suffix = '.mp4' if codec == 'mp4v' else '.avi'
        write(folder / f'data/videos/{label}/{index}{suffix}', draw(5 + 2 * index, 80 * (index % 2)), codec)
    succeed(run_forked('train.py', CONFIG, '--work-dir', 'whole', cwd=folder))
    return folder


@pytest.mark.parametrize(
    ('number', 'line', 'code'),
    [
        (signal.SIGKILL, 'Epoch(train) [2][3/5]', -signal.SIGKILL),
        pytest.param(signal.SIGTERM, 'Epoch(train) [2][2/5]', 128 + signal.SIGTERM, marks=pytest.mark.slow),
    ],
)
def test_a_run_that_ends_in_an_epoch_is_resumed_to_the_same_bits(number, line, code, folder):
    """In the middle of an epoch of repeated augmentation; SIGTERM saves."""
    work_dir = f'ended by {number}'
    run = ForkedTool('train.py', CONFIG, '--work-dir', work_dir, cwd=folder)
    while run.process.is_alive() and not any(line in log.read_text() for log in (folder / work_dir).rglob('*.log')):
        time.sleep(0.01)
    run.send_signal(number)
    assert run.wait().returncode == code, run.stderr
    succeed(run_forked('train.py', CONFIG, '--work-dir', work_dir, '--resume', cwd=folder))
    assert_same_end(folder / work_dir, folder / 'whole')


def test_scores_are_averaged_over_views(folder):
    arguments = [CONFIG, (folder / 'whole/last_checkpoint').read_text(), '--work-dir', 'tested', '--out', 'scores.pkl']
    arguments += ['--benchmark', '--show-dir', 'shown', '--report', 'report']
    result = succeed(call('test.py', *arguments, cwd=folder))
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


def test_all_files_are_read_by_check_dataset(folder):
    cfg = prepare(str(CONFIG), RunOptions({'train_dataloader.dataset.data_root': str(folder / 'data')})).cfg
    (data_set,) = read_data(Data(cfg), ('train',), 1)[0]['data_sets']
    assert data_set['classes'] == dict(bright=10, dark=10)
    words = '48x64 pixels; 20 at 25 frames/s; 5 to 43 frames; 1 shorter than a clip, which spans 7'
    assert words in data_set['line']
