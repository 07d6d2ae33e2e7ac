"""``tools/check_dataset.py --out FOLDER`` writes a page that shows the data, whatever they are called."""

import json
from base64 import b64decode
from html.parser import HTMLParser

import cv2
import numpy as np
import pytest
from PIL import Image
from tool_runner import assert_one_line, call, succeed

from vt.commands.data_page import SIDE

HOSTILE = '<img src=\'x\' onerror=alert(1)> & "{{ 7*7 }}"'
CLASSIFICATION = """default_scope = 'mmpretrain'
model = dict(type='ImageClassifier')
data = dict(type='CustomDataset', data_root='ROOT', pipeline=[dict(type='LoadImageFromFile'), dict(type='PackInputs')])
train_dataloader = dict(dataset=dict(data_prefix='train', **data))
val_dataloader = dict(dataset=dict(data_prefix='val', **data))
"""
SEGMENTATION = """default_scope = 'mmseg'
model = dict(type='EncoderDecoder', decode_head=dict(type='FCNHead', num_classes=2))
pipeline = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations'), dict(type='PackSegInputs')]
metainfo = dict(classes=('a', 'b'), palette=[[0, 0, 0], [255, 0, 0]])
data_prefix = dict(img_path='images', seg_map_path='masks')
train_dataloader = dict(
    dataset=dict(
        type='BaseSegDataset', img_suffix='.png', data_root='ROOT', data_prefix=data_prefix, metainfo=metainfo,
        pipeline=pipeline,
    )
)
"""


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


def check(root, config, out='report'):
    (root / 'config.py').write_text(config.replace('ROOT', str(root)))
    return call('check_dataset.py', 'config.py', '--splits', 'train', 'val', '--out', out, cwd=root)


def write(root, name, array):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path)


@pytest.mark.parametrize('hostile', [HOSTILE.replace('/', ''), '$\\alpha ça va 猫'])
def test_class_folders_of_any_name(hostile, tmp_path):
    for split, number in (('train', 6), ('val', 2)):
        for index in range(number):
            pixels = np.full((30, 40, 3), 20 * index + 7 * (split == 'val'), np.uint8)
            write(tmp_path, f'{split}/{hostile}/{hostile}{index}.png', pixels)
            write(tmp_path, f'{split}/plain/{index}.png', pixels + 1)
    (tmp_path / f'train/plain/{hostile}.png').write_bytes(b'no image')
    for _ in range(2):  # once more into the same folder
        assert check(tmp_path, CLASSIFICATION).returncode == 1
        page = Page(tmp_path / 'report/index.html')
        assert len(page.images) == 2 * 4 + 2 * 2  # four samples of each class, all of val's
    assert {*page.tags}.isdisjoint({'script', 'iframe', 'object', 'link'})
    assert all(image.shape[1] == SIDE for image in page.images)
    assert 'Data of config' in page.texts
    assert f'train: {hostile}' in page.text
    assert f'{hostile}.png cannot be read' in page.text
    assert '1 unreadable.' in page.text
    assert json.loads((tmp_path / 'report/data.json').read_text())['counts'] == dict(unreadable=1)


def test_masks_lie_over_images(tmp_path):
    mask = np.repeat([[0, 1, 255]], 12, axis=0).repeat(4, axis=1).astype(np.uint8)
    write(tmp_path, 'images/0.png', np.full((12, 12, 3), 200, np.uint8))
    write(tmp_path, 'masks/0.png', mask)
    succeed(check(tmp_path, SEGMENTATION))
    page = Page(tmp_path / 'report/index.html')
    assert len(page.images) == 2
    colours = [page.images[0][SIDE // 2, SIDE * part // 6].tolist() for part in (1, 3, 5)]
    expected = [[100, 100, 100], [100, 100, 227], [227, 227, 227]]  # BGR, of the palette and white
    assert np.abs(np.array(colours) - expected).max() < 6
    assert '12x12 pixels' in page.text
    succeed(check(tmp_path, SEGMENTATION, out='report.json'))
    assert json.loads((tmp_path / 'report.json').read_text())['problems'] == []
    (tmp_path / 'taken').write_text('')
    assert_one_line(check(tmp_path, SEGMENTATION, out='taken'), '--out taken is a file: give a folder')


def test_digits_in_memory_and_many_classes(tmp_path):
    digits = "dict(type='vt.Digits', split='train', indices=100, pipeline=[dict(type='PackInputs')])"
    text = f"model = dict(type='ImageClassifier')\ntrain_dataloader = dict(dataset={digits})\n"
    succeed(check(tmp_path, f"default_scope = 'mmpretrain'\n{text}"))
    assert len(Page(tmp_path / 'report/index.html').images) == 10 * 4
    assert (tmp_path / 'report/index.html').stat().st_size < 1_000_000
