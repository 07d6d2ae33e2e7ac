"""``tools/check_dataset.py`` reads everything and lists every problem."""

import json
import re

import numpy as np
import pytest
from bad_input.images import DAMAGED, GREY, MASK, MASKS, RGB, encode
from bad_input.small_runs import FOLDER, SCENES
from tool_runner import call, succeed

TEST_FOLDER = "val_dataloader = test_dataloader = dict(dataset=dict(dataset, data_prefix='held out'))\n"


def check(folder, config, *arguments, **kwargs):
    (folder / 'config.py').write_text(config)
    result = call('check_dataset.py', 'config.py', '--out', 'report.json', *arguments, cwd=folder, **kwargs)
    report = folder / 'report.json'
    return result, json.loads(report.read_text()) if report.exists() else None


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


@pytest.fixture
def folder(tmp_path):
    """Two classes to train on and two to test on; every image is another one."""
    for number, name in enumerate(('images/cat/a', 'images/dog/b', 'held out/cat/c', 'held out/dog/d')):
        write(tmp_path / f'data/{name}.png', encode(np.asarray(RGB)[: 30 + number]))
    return tmp_path


def test_whole_images(folder):
    result, report = check(folder, FOLDER + TEST_FOLDER, '--workers', '2')
    assert 'rror' not in succeed(result).stderr
    assert 'No problem found' in result.stdout
    assert re.findall(r'(\d+)%', result.stdout) == ['100', '100']
    train, test = report['data_sets']
    assert 'train: CustomDataset, 2 samples; 30x50 to 31x50 pixels; 2 RGB; 2 classes' in train['line']
    assert (test['split'], test['classes']) == ('val', {'cat': 1, 'dog': 1})
    assert report['problems'] == []


@pytest.mark.parametrize('setting', ['val_fraction = 0.25', 'fold, num_folds = 0, 4'])
def test_both_parts_of_data_that_are_held_out_are_listed(setting, tmp_path):
    for index, pixels in enumerate(np.random.default_rng(0).integers(0, 256, (16, 30, 40, 3)) * [1, 0.5, 0]):
        write(tmp_path / f'data/images/{("cat", "dog")[index % 2]}/{index}.png', encode(pixels.astype(np.uint8)))
    write(tmp_path / 'data/images/alone.png', encode(RGB))
    result, report = check(tmp_path, f'{FOLDER}{setting}\n')
    train, val = report['data_sets']
    assert (train['split'], train['samples'], val['split'], val['samples']) == ('train', 12, 'val', 4)
    assert [warning['kind'] for warning in report['warnings']] == ['left out']
    assert report['problems'] == []
    for channels in (train['channels'], val['channels']):
        assert (channels['order'], channels['read_as']) == ('RGB', 'BGR')
        np.testing.assert_allclose(channels['mean'], [127.5, 63.5, 0], atol=2)
    assert 'training images (BGR): data_preprocessor = dict(mean=[0.0, 6' in result.stdout  # as the network takes them


def test_every_bad_image_is_listed(folder):
    for number, (name, content) in enumerate(DAMAGED.values()):
        write(folder / f'data/images/cat/{number}_{name}', content)
    write(folder / 'data/images/cat/16.png', encode(GREY.astype(np.uint16)))
    write(folder / 'data/held out/cat/again.png', (folder / 'data/images/cat/a.png').read_bytes())
    config = FOLDER.replace("type='LoadImageFromFile'", "type='LoadImageFromFile', imdecode_backend='pillow'")
    result, report = check(folder, config + TEST_FOLDER)
    assert result.returncode == 1
    assert 'rror' not in result.stderr
    assert report['counts'] == dict(unreadable=4, mode=2, duplicate=1)
    found = {problem['file']: problem['message'] for problem in report['problems']}
    assert "has mode I;16, which Pillow does not scale: use imdecode_backend='cv2'" in found['data/images/cat/16.png']
    assert 'has mode F' in found['data/images/cat/4_bad.tif']
    assert found['data/held out/cat/again.png'].startswith('is the same image as data/images/cat/a.png of train')
    assert all(file in result.stdout for file in found)
    assert '7 problems: 4 unreadable, 2 mode, 1 duplicate.' in result.stdout


def test_every_bad_mask_is_listed(tmp_path):
    for name, (content, _) in dict(MASKS, good=(encode(MASK), '')).items():
        write(tmp_path / f'data/masks/{name}.png', content)
        write(tmp_path / f'data/images/{name}.png', encode(RGB))
    write(tmp_path / 'data/images/alone.png', encode(RGB))
    result, report = check(tmp_path, SCENES)
    assert result.returncode == 1
    assert report['counts'] == dict(mode=4, unreadable=2, missing=1, size=1, label=1, values=1)
    for name, (_, message) in MASKS.items():
        assert f'data/masks/{message.replace("bad.png", f"{name}.png")}' in result.stdout
    (data_set,) = report['data_sets']
    assert data_set['classes']['a'] == (MASK == 0).sum() + (MASK[:, :-1] == 0).sum()
