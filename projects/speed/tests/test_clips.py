"""What measures models and loading on images does so on clips."""

import json

import pytest
import torch
from tool_runner import ROOT, assert_one_line

from projects.speed.data_loading import loading_config
from projects.speed.settings import Setting
from projects.speed.subject import Subject
from projects.speed.tests.module_call import call
from projects.speed.workload import Workload
from vt.commands.benchmarks import parse_size
from vt.errors import UserError

CONFIG = ROOT / 'tests/video/files.py'
DIGITS = ROOT / 'configs/vt_resnet/vt-resnet18_digits.py'


def test_sizes_of_clips():
    assert [parse_size(text) for text in ('224', '8x6', '16x8x6')] == [(224, 224), (8, 6), (16, 8, 6)]
    assert 'batch 8, 16x8x6, ' in Setting(size=(16, 8, 6)).describe()
    with pytest.raises(UserError, match='16x224x224 for clips'):
        parse_size('2x3x4x5')


def test_a_model_steps_on_clips():
    setting = Setting(batch_size=2, size=(4, 24, 24))
    workload = Workload(Subject(str(CONFIG)).build(setting), 'whole', setting)
    assert workload.inputs.shape == (2, 3, 4, 24, 24)
    before = workload.module.backbone.convolution.weight.detach().clone()
    for kind in ('inference', 'training'):
        workload.step(kind)()
    assert not torch.equal(workload.module.backbone.convolution.weight, before)
    assert workload.count().flops == 4 * 6 * 6 * 8 * 3 * 75 + 8 * 2


def test_loading_of_synthetic_videos_is_timed(tmp_path):
    arguments = ['--synthetic', '2', '--workers', '0', '--batches', '1', '--rounds', '1']
    result = call('data_loading', CONFIG, *arguments, '--out', 'data.json', cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    record = json.loads((tmp_path / 'data.json').read_text())
    (row,) = record['results']
    assert (row['decoder'], row['workers'], row['batch_size']) == ('opencv', 0, 4)
    assert row['clips_per_second'] > 0
    assert record['videos'].startswith('2 synthetic, 340x256, 300 frames')
    assert 'clips/s' in result.stdout


def test_loading_alone_leaves_the_transforms_out():
    whole, alone = (loading_config(str(CONFIG), None, 0, None, load_only) for load_only in (False, True))
    kept = [step['type'] for step in alone.train_dataloader.dataset.pipeline]
    assert kept == ['vt.LoadClips', 'vt.PackClips']
    assert len(whole.train_dataloader.dataset.pipeline) > len(kept)


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        ([CONFIG, '--decoders', 'pillow'], 'has no LoadImageFromFile'),
        ([CONFIG, DIGITS], 'some of the configs read videos, the others do not'),
    ],
)
def test_what_cannot_be_loaded_is_one_line(arguments, message, tmp_path):
    assert_one_line(call('data_loading', *arguments, cwd=tmp_path), message)
