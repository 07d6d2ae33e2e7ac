"""Small files that would take gigabytes are named, and the rest goes on, wherever images are read."""

import csv
import json
import os
import subprocess
import sys

import pytest
from bad_input.hostile_images import REFUSED, UNFOLDING, limited_memory, png, write_all
from bad_input.images import DAMAGED, RGB, colours, encode
from bad_input.small_runs import FOLDER
from forked_tools import run_forked
from tool_runner import ROOT, assert_one_line

from vt.apis.inferencers import inferencer_of
from vt.errors import UserError
from vt.explorer.inspection import open_image
from vt.image_bounds import LARGER, check_image_size
from vt.inference.inputs import read_image

LIMITED = ROOT / 'tests/bad_input/limited_tool.py'
MEMORY = 1_000_000_000  # bytes
FILES = """
pipeline = [dict(type='LoadImageFromFile'), dict(type='ResizeEdge', scale=256), dict(type='PackInputs')]
dataset = dict(_delete_=True, type='CustomDataset', data_root='data', pipeline=pipeline)
test_dataloader = dict(dataset=dict(dataset, metainfo=dict(classes=tuple('abcdefghij'))))
"""


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """A folder for every hostile file, with images that are good."""
    folder = tmp_path_factory.mktemp('hostile')
    (folder / 'images').mkdir()
    for name in ('a.png', 'm.png', 'z.png'):
        (folder / 'images' / name).write_bytes(encode(RGB))
    return folder


@pytest.fixture(scope='module')
def hostile(folder):
    return write_all(folder / 'images')


def test_predict_skips_and_names_each_and_writes_the_others(small_model, folder, hostile):
    config, checkpoint, *_ = small_model('vt-resnet18-half_digits')
    (folder / 'files.py').write_text(f'_base_ = {str(config)!r}\n{FILES}')
    arguments = ['files.py', checkpoint, 'images', 'images/a.png', '--out', 'r.csv', '--out-dir', 'drawn']
    result = run_forked(LIMITED, 'memory', ROOT / 'tools/predict.py', *arguments, cwd=folder)
    assert_one_line(result, f'{len(hostile)} of {len(hostile) + 3} files could not be read and were skipped: ')
    skipped = [line for line in result.stderr.splitlines() if line.startswith('skipped: images/')]
    assert len(skipped) == len(hostile)
    for path in hostile:
        assert any(f'images/{path.name} ' in line for line in skipped), path
    predicted = {row['file'] for row in csv.DictReader((folder / 'r.csv').open())}
    assert predicted == {'images/a.png', 'images/m.png', 'images/z.png'}
    assert sorted(path.name for path in (folder / 'drawn').iterdir()) == ['a.png', 'm.png', 'z.png']
    assert not (folder / 'r.csv.part').exists()
    assert int((folder / 'peak').read_text()) < 2_500_000, 'KB'


def test_inferencers_name_the_file_that_is_bad_and_the_explorer_opens_none(small_model, folder, hostile):
    inferencer = inferencer_of(*small_model('vt-resnet18-half_digits')[:2])
    with limited_memory(MEMORY):
        for path in hostile:
            with pytest.raises(UserError, match=path.name) as raised:
                inferencer([str(folder / 'images/a.png'), str(path)])
            assert '\n' not in str(raised.value)
            with pytest.raises(UserError):
                open_image(str(path))
        assert inferencer(str(folder / 'images/a.png'))
        assert open_image(str(folder / 'images/a.png')).thumbnail.shape == (128, 160, 3)  # the shorter side of 40


def test_the_check_of_a_data_set_lists_each(folder, hostile, tmp_path):
    """But for those that the data set leaves out by their suffix."""
    (tmp_path / 'data/images/dog').mkdir(parents=True)
    (tmp_path / 'data/images/cat').symlink_to(folder / 'images')
    (tmp_path / 'data/images/dog/0.png').write_bytes(encode(colours(20, 20)))
    (tmp_path / 'config.py').write_text(FOLDER)
    arguments = ['config.py', '--out', 'report.json']
    result = run_forked(LIMITED, 'memory', ROOT / 'tools/check_dataset.py', *arguments, cwd=tmp_path)
    assert result.returncode == 1, result.stderr
    problems = json.loads((tmp_path / 'report.json').read_text())['problems']
    read = ('.jpg', '.png', '.ppm', '.bmp', '.tif')
    named = {problem['file'].rpartition('/')[2] for problem in problems}
    assert named == {path.name for path in hostile if path.suffix in read}


def test_what_is_refused_is_not_what_is_large_or_odd(tmp_path):
    """Images of many sizes and shapes that people have."""
    for height, width in ((1, 1), (1, 100), (5000, 60), (33, 200), (4000, 6000)):
        path = tmp_path / f'{height}.png'
        path.write_bytes(png(width, height))
        assert read_image(path).shape == (height, width, 3)
    (tmp_path / 'tile of Sentinel-2.png').write_bytes(png(10_980, 10_980, whole=False))
    assert check_image_size(tmp_path / 'tile of Sentinel-2.png')
    assert len(UNFOLDING) + len(REFUSED) + len(DAMAGED) >= 34


@pytest.mark.parametrize(
    ('limit', 'message'),
    [
        ('400000000', 'no mask'),
        (
            '399999999',
            f'a.png has more than 399,999,999 pixels: {LARGER}',
        ),
        ('4e8', "VT_MAX_PIXELS='4e8' in the environment must be a number of pixels"),
    ],
)
def test_the_environment_sets_the_limit_also_of_masks_that_pillow_reads(limit, message, tmp_path):
    (tmp_path / 'a.png').write_bytes(png(20_000, 20_000, whole=False))
    code = """
from vt.image_bounds import LARGER, check_image_size
from PIL import Image
check_image_size('a.png')
Image.open('a.png').close()
raise ValueError('no mask')
"""
    env = dict(os.environ, VT_MAX_PIXELS=limit)
    result = subprocess.run([sys.executable, '-c', code], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert result.stderr.splitlines()[-1].partition(': ')[2] == message
