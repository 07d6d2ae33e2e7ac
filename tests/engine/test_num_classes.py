"""``num_classes='auto'`` is the number of classes of the checkpoint, or of the data."""

import csv

import mmcv
import numpy as np
import pytest
import torch
from mmengine.config import Config

from vt.apis import find_config, get_model
from vt.engine.config.data import Data, apply_num_classes
from vt.engine.config.steps import RunOptions, prepare
from vt.errors import UserError

FOLDER = 'vt-resnet18_1xb32-90e_image-folder'
TABLE = dict(type='vt.MultiLabelImages', ann_file='labels.csv')


@pytest.fixture
def images(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ('cat', 'dog', 'fox'):
        mmcv.imwrite(np.zeros((8, 8, 3), np.uint8), f'images/{name}/0.png')
    with open('labels.csv', 'w', newline='') as file:
        csv.writer(file).writerows([['image', 'labels'], ['cat/0.png', 'a;b;c;d'], ['dog/0.png', '']])
    return dict(type='CustomDataset', data_root='.', data_prefix='images')


def undecided(dataset):
    heads = [dict(num_classes='auto'), dict(num_classes=7)]
    loader = dict(dataset=dict(type='RepeatDataset', times=2, dataset=dataset))
    model = dict(decode_head=heads, data_preprocessor=dict(num_classes='auto'))
    return Config(dict(model=model, train_dataloader=loader, default_scope='mmpretrain'))


@pytest.mark.parametrize(
    ('change', 'number'),
    [({}, 3), (dict(metainfo=dict(classes=('a', 'b'))), 2), (TABLE, 4), (dict(data_prefix='none'), None)],
)
def test_it_is_the_number_of_classes_of_the_data(change, number, images):
    cfg = undecided(images | change)
    if number is None:
        with pytest.raises(UserError, match=r"num_classes='auto' requires .* of the data \(.*none.*\): give data=PATH"):
            apply_num_classes(Data(cfg))
        return
    apply_num_classes(Data(cfg))
    found = [*cfg.model.decode_head, cfg.model.data_preprocessor]
    assert [part.num_classes for part in found] == [number, 7, number]


def test_it_is_entered_before_a_run_where_there_are_data(images):
    options = {'data_root': '.', 'train_dataloader.dataset.data_prefix': 'images'}
    cfg = prepare(str(find_config(FOLDER)), RunOptions(options)).cfg
    assert cfg.model.head.num_classes == cfg.data_preprocessor.num_classes == 3
    assert prepare(str(find_config(FOLDER)), RunOptions(shows=True)).cfg.model.head.num_classes == 'auto'
    with pytest.raises(UserError, match="num_classes='auto' requires the class names of the data"):
        prepare(str(find_config(FOLDER)), RunOptions())


def test_a_model_has_the_classes_of_its_checkpoint(images, tmp_path):
    model = get_model(FOLDER, head=dict(num_classes=5))
    meta = dict(dataset_meta=dict(classes=tuple('abcde')))
    torch.save(dict(state_dict=model.state_dict(), meta=meta), 'five.pth')
    assert get_model(FOLDER, 'five.pth').dataset_meta['classes'] == tuple('abcde')
    with pytest.raises(UserError, match="num_classes='auto'"):
        get_model(FOLDER)
