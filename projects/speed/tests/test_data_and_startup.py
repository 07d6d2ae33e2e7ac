"""Loading and starting, timed from the command line on small data."""

import json

import cv2
import numpy as np
import pytest
from tool_runner import ROOT, assert_one_line

from projects.speed.data_loading import FILE_SIZE, write_jpegs
from projects.speed.tests.module_call import call

IMAGENET = ROOT / 'configs/vt_resnet/vt-resnet18_8xb32-90e_in1k.py'
DIGITS = ROOT / 'configs/vt_resnet/vt-resnet18_digits.py'
SCENES = ROOT / 'configs/vt_fpn/vt-fpn_r18_digit-scenes.py'


def test_synthetic_images_are_of_imagenets_size_and_differ(tmp_path):
    size = write_jpegs(tmp_path, 3)
    assert abs(size / FILE_SIZE - 1) < 0.2
    first, second, third = (cv2.imread(str(path)) for path in sorted(tmp_path.rglob('*.jpg')))
    assert first.shape == (375, 500, 3)
    assert np.abs(first.astype(int) - second).mean() > 10 < np.abs(first.astype(int) - third).mean()


def test_loading_is_timed_by_decoder_and_workers(tmp_path):
    arguments = ['--synthetic', '4', '--decoders', 'cv2', 'pillow', '--workers', '0', '1', '--batches', '2']
    result = call('data_loading', IMAGENET, *arguments, '--rounds', '2', '--out', 'data.json', cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    record = json.loads((tmp_path / 'data.json').read_text())
    rows = record['results']
    expected = [(decoder, workers, 32) for decoder in ('cv2', 'pillow') for workers in (0, 1)]
    assert [(row['decoder'], row['workers'], row['batch_size']) for row in rows] == expected
    assert all(
        len(row['runs']) == 2 and min(row['runs']) <= row['images_per_second'] <= max(row['runs']) for row in rows
    )
    assert record['images'].startswith('4 synthetic, 500x375, ')
    assert 'images/s' in result.stdout


def test_a_config_with_its_own_data_is_timed(tmp_path):
    arguments = [DIGITS, SCENES, '--workers', '0', '--batches', '1', '--rounds', '1']
    result = call('data_loading', *arguments, '--out', 'data.json', cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    rows = json.loads((tmp_path / 'data.json').read_text())['results']
    assert [(row['config'], row['decoder']) for row in rows] == [(DIGITS.stem, 'none'), (SCENES.stem, 'none')]


def test_recipes_of_all_kinds_read_generated_files(tmp_path):
    deit, ade20k, fashion = (
        ROOT / 'configs' / path
        for path in (
            'deit/deit-small_16xb64-300e_in1k.py',
            'vt_fpn/vt-fpn_r50_4xb4-160k_ade20k-512x512.py',
            'vt_resnet/vt-resnet18_fashion-mnist.py',
        )
    )
    arguments = [deit, ade20k, fashion, '--synthetic', '4', '--max-batch-size', '2', '--workers', '0']
    arguments += ['--batches', '1', '--rounds', '1', '--out', 'data.json']
    result = call('data_loading', *arguments, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    rows = json.loads((tmp_path / 'data.json').read_text())['results']
    expected = [(deit.stem, 'pillow'), (ade20k.stem, 'none'), (fashion.stem, 'none')]
    assert [(row['config'], row['crop']) for row in rows] == expected
    assert all(row['batch_size'] == 2 for row in rows)


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        ([SCENES, '--synthetic', '2'], 'vt.DigitScenes reads no files'),
        ([DIGITS, '--decoders', 'pillow'], 'has no LoadImageFromFile'),
    ],
)
def test_what_cannot_be_loaded_is_one_line(arguments, message, tmp_path):
    assert_one_line(call('data_loading', *arguments, cwd=tmp_path), message)


@pytest.mark.slow
def test_start_up_is_timed(tmp_path):
    arguments = [DIGITS, '--rounds', '1', '--out', 'startup.json']
    result = call('startup', *arguments, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    seconds = {row['what']: row['seconds'] for row in json.loads((tmp_path / 'startup.json').read_text())['results']}
    assert seconds['import vt'] < seconds['import torch'] < seconds[f'first iteration of {DIGITS.stem}']
    assert seconds['tools/train.py --help'] < seconds['import torch']
    assert not (tmp_path / 'work_dirs').exists()


def test_the_parts_of_an_inference_are_timed(tmp_path):
    arguments = ['vt-resnet18_8xb32-90e_in1k', '--images', '3', '--batch-size', '2', '--rounds', '1']
    result = call('inference_parts', *arguments, '--out', 'parts.json', cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    rows = json.loads((tmp_path / 'parts.json').read_text())['results']
    steps = ['LoadImageFromFile', 'ResizeEdge', 'CenterCrop', 'PackInputs']
    assert [row['part'] for row in rows] == [*steps, 'network', 'all, by vt.apis']
    assert all(row['ms an image'] > 0 for row in rows)
