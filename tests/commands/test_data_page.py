"""``tools/check_dataset.py --out FOLDER`` writes a page that shows the data, whatever they are called."""

import json
from base64 import b64decode
from html.parser import HTMLParser

import cv2
import numpy as np
import pytest
from bad_input.small_runs import DIGITS, FOLDER, SCENES
from PIL import Image
from tool_runner import assert_one_line, call

from vt.commands.data_page import SIDE

HOSTILE = '<img src=\'x\' onerror=alert(1)> & "{{ 7*7 }}"'
CLASSIFICATION = FOLDER + (
    "train_dataloader = dict(dataset=dict(dataset, data_prefix='train'))\n"
    "val_dataloader = dict(dataset=dict(dataset, data_prefix='val'))\n"
)
SEGMENTATION = SCENES + "dataset['metainfo'] = dict(classes=('a', 'b'), palette=[[0, 0, 0], [255, 0, 0]])\n"


class Page(HTMLParser):
    """The images of a page, its text, and its elements."""

    def __init__(self, path):
        super().__init__()
        self.images, self.texts, self.tags = [], [], []
        self.feed(path.read_text())
        self.text = ' '.join(' '.join(self.texts).split())

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        assert not any(name.startswith('on') for name, _ in attrs)
        if tag == 'img':
            kind, _, content = dict(attrs)['src'].partition(';base64,')
            assert kind in ('data:image/png', 'data:image/jpeg')
            self.images.append(cv2.imdecode(np.frombuffer(b64decode(content), np.uint8), cv2.IMREAD_COLOR))

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture
def check(tmp_path):
    """A function that checks the data of a config and opens the page."""

    def check(config, *splits, out='report', code=0):
        (tmp_path / 'config.py').write_text(config)
        arguments = ['config.py', '--splits', *splits, '--workers', '1', '--out', out]
        result = call('check_dataset.py', *arguments, cwd=tmp_path)
        assert result.returncode == code, result.stderr
        return Page(tmp_path / 'report/index.html') if out == 'report' else result

    return check


def write(root, name, array):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path)


@pytest.mark.parametrize('hostile', [HOSTILE, '$\\alpha', 'ça va 猫'])
def test_class_folders_of_any_name(tmp_path, check, hostile):
    hostile = hostile.replace('/', '')
    for split, number in (('train', 6), ('val', 2)):
        for index in range(number):
            pixels = np.full((30, 40, 3), 20 * index + 7 * (split == 'val'), np.uint8)
            write(tmp_path, f'data/{split}/{hostile}/{hostile}{index}.png', pixels)
            write(tmp_path, f'data/{split}/plain/{index}.png', pixels + 1)
    (tmp_path / f'data/train/plain/{hostile}.png').write_bytes(b'no image')
    page = check(CLASSIFICATION, 'train', 'val', code=1)
    assert len(page.images) == 2 * 4 + 2 * 2  # four samples of each class, all of val's
    assert {*page.tags}.isdisjoint({'script', 'iframe', 'object', 'link'})
    assert all(image.shape[1] == SIDE for image in page.images)
    assert f'train: {hostile}' in page.text
    assert f'{hostile}.png cannot be read' in page.text
    assert '1 unreadable.' in page.text
    report = json.loads((tmp_path / 'report/data.json').read_text())
    assert report['counts'] == dict(unreadable=1)
    assert check(CLASSIFICATION, 'train', 'val', code=1).images  # once more into the same folder


def test_masks_lie_over_images(tmp_path, check):
    mask = np.repeat([[0, 1, 255]], 12, axis=0).repeat(4, axis=1).astype(np.uint8)
    write(tmp_path, 'data/images/0.png', np.full((12, 12, 3), 200, np.uint8))
    write(tmp_path, 'data/masks/0.png', mask)
    page = check(SEGMENTATION, 'train')
    assert len(page.images) == 2
    colours = [page.images[0][SIDE // 2, SIDE * part // 6].tolist() for part in (1, 3, 5)]
    expected = [[100, 100, 100], [100, 100, 227], [227, 227, 227]]  # BGR, of the palette and white
    assert np.abs(np.array(colours) - expected).max() < 6
    assert '12x12 pixels' in page.text


def test_digits_in_memory_and_many_classes(tmp_path, check):
    page = check(DIGITS.replace('indices=64', 'indices=100'), 'train')
    assert len(page.images) == 10 * 4
    assert (tmp_path / 'report/index.html').stat().st_size < 1_000_000


def test_where_it_goes(tmp_path, check):
    write(tmp_path, 'data/images/0.png', np.zeros((4, 4, 3), np.uint8))
    write(tmp_path, 'data/masks/0.png', np.array([[0, 1]] * 2, np.uint8).repeat(2, axis=0)[:, [0, 0, 1, 1]])
    check(SEGMENTATION, 'train', out='report.json')
    assert json.loads((tmp_path / 'report.json').read_text())['problems'] == []
    (tmp_path / 'taken').write_text('')
    assert_one_line(check(SEGMENTATION, 'train', out='taken', code=1), 'taken is a file: give the name of a folder')
