"""``imbalance`` of a config: its weights and repetitions are those of the counts, and the rare class is learned."""

import math
from collections import Counter

import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.registry import DATASETS, MODELS, DefaultScope
from PIL import Image
from sklearn.utils.class_weight import compute_class_weight

from vt.commands.check_dataset import print_imbalance, read_data
from vt.engine.imbalance import class_weights, enter_imbalance, pixel_weights, positive_weights
from vt.errors import UserError

RARE, COMMON = 8, 400  # 1:50


@pytest.fixture
def config(tmp_path):
    """A function that gives a config of a classifier and the list of images that it is trained with."""
    lines = [f'{index}.png {int(index >= COMMON)}' for index in range(COMMON + RARE)]
    (tmp_path / 'list.txt').write_text('\n'.join(lines))

    def config(method='weighted', head=None, **settings):
        head = dict(type='LinearClsHead', num_classes=2, in_channels=2, topk=(1,)) | (head or {})
        data = dict(type='CustomDataset', data_root=str(tmp_path), ann_file='list.txt')
        data |= dict(classes=['common', 'rare'], serialize_data=False)
        model = dict(type='ImageClassifier', backbone=dict(type='ResNet', depth=18), head=head)
        loader = dict(batch_size=2, dataset=data)
        return Config(
            dict(default_scope='mmpretrain', model=model, train_dataloader=loader, imbalance=method) | settings
        )

    return config


def test_weights_are_those_of_scikit_learn():
    random = np.random.default_rng(0)
    labels = np.repeat(np.arange(5), random.integers(1, 1000, 5))
    expected = compute_class_weight('balanced', classes=np.arange(5), y=labels)
    assert class_weights(Counter(labels.tolist()), 5) == pytest.approx(expected, rel=1e-3)
    assert class_weights(Counter({0: 30, 2: 10}), 3) == [0.6667, 1.0, 2.0]  # none of class 1


def test_weights_of_labels_and_pixels():
    assert positive_weights(Counter({0: 10, 1: 90, 3: 100}), 4, 100) == [9.0, 0.1111, 1.0, 1.0]
    counts = Counter({0: 900, 1: 99, 2: 1, 255: 77})
    weights = pixel_weights(counts, 3)
    ratio = math.log(1.02 + 0.9) / math.log(1.02 + 0.001)
    assert weights[2] / weights[0] == pytest.approx(ratio, rel=1e-3)
    assert sum(weights[label] * counts[label] for label in range(3)) == pytest.approx(1000, rel=1e-3)


def recall_after_training(cfg, steps=150):
    """Recall of each class, after gradient descent on two features an image: the classes overlap."""
    random = np.random.default_rng(0)
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        dataset, head = DATASETS.build(cfg.train_dataloader.dataset), MODELS.build(cfg.model.head)
    centres, features = np.array([[0.0, 0.0], [2.0, 2.0]]), random.normal(size=(COMMON + RARE, 2))
    infos = [dataset.get_data_info(index) for index in range(len(dataset))]
    rows = [int(info['img_path'].split('/')[-1].split('.')[0]) for info in infos]
    labels = torch.tensor([info['gt_label'] for info in infos])
    inputs = torch.tensor(features[rows] + centres[labels], dtype=torch.float32)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.5)
    for _ in range(steps):
        optimizer.zero_grad()
        head.loss_module(head((inputs,)), labels, avg_factor=len(labels)).backward()  # as head.loss does
        optimizer.step()
    fresh = np.concatenate([random.normal(size=(1000, 2)) + centre for centre in centres])
    predicted = head((torch.tensor(fresh, dtype=torch.float32),)).argmax(dim=1).numpy()
    return (predicted[:1000] == 0).mean(), (predicted[1000:] == 1).mean()


def test_the_rare_class_of_one_in_fifty_is_found_more_often(config):
    found, lines = {}, {}
    for method in (None, 'weighted', 'balanced', 'focal'):
        cfg = config(method)
        cfg, lines[method] = enter_imbalance(cfg)
        assert 'imbalance' not in cfg
        found[method] = recall_after_training(cfg)
    assert lines[None] is None
    assert lines['weighted'] == 'imbalance: model.head.loss.class_weight from 0.51 to 25.5'
    assert lines['balanced'] == 'imbalance: repetitions of images in an epoch from 1 to 8'
    assert lines['focal'] == 'imbalance: model.head.loss is FocalLoss instead of CrossEntropyLoss'
    assert found[None][1] < 0.5
    assert found['balanced'][1] > found[None][1] + 0.15
    assert found['weighted'][1] > 0.85
    assert found['weighted'][0] > 0.8
    assert all(recall[0] > 0.8 for recall in found.values())


def test_balanced_repeats_as_often_as_it_says(config):
    cfg = config('balanced')
    cfg, _ = enter_imbalance(cfg)
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        dataset = DATASETS.build(cfg.train_dataloader.dataset)
    counts = Counter(dataset.get_data_info(index)['gt_label'] for index in range(len(dataset)))
    assert counts == {0: COMMON, 1: 8 * RARE}  # the square root of 50, rounded up


def test_labels_of_their_own_sigmoids_are_weighed_by_those_that_lack_them(config):
    cfg = config(head=dict(type='MultiLabelLinearClsHead', topk=None))
    cfg, _ = enter_imbalance(cfg)
    weights = [round(RARE / COMMON, 4), COMMON / RARE]
    assert cfg.model.head.loss == dict(type='CrossEntropyLoss', use_sigmoid=True, pos_weight=weights)


def test_a_loss_with_weights_is_refused(config):
    with pytest.raises(UserError, match='imbalance twice, since'):
        enter_imbalance(config(head=dict(loss=dict(type='CrossEntropyLoss', class_weight=[1, 50]))))


def test_a_sigmoid_for_each_class_is_weighed_as_such(config):
    """Weights of classes would multiply its positive and negative terms alike."""
    cfg = config(head=dict(loss=dict(type='CrossEntropyLoss', use_sigmoid=True)))
    cfg, _ = enter_imbalance(cfg)
    assert cfg.model.head.loss.pos_weight == [round(RARE / COMMON, 4), COMMON / RARE]
    assert 'class_weight' not in cfg.model.head.loss


def test_what_is_balanced_already_is_refused(config):
    cfg = config('balanced')
    balanced = dict(type='mmengine.ClassBalancedDataset', oversample_thr=1.0, dataset={})
    for data in (balanced, dict(type='RepeatDataset', times=2, dataset=balanced)):
        cfg.update(imbalance='balanced')
        cfg.train_dataloader.dataset = data
        with pytest.raises(UserError, match='imbalance twice, since train_dataloader has ClassBalancedDataset'):
            enter_imbalance(cfg)


@pytest.mark.parametrize('number', [2, 3])
def test_check_dataset_proposes_the_line(tmp_path, capsys, number):
    for name, images in (('a', number), ('b', 1)):
        for index in range(images):
            (tmp_path / name).mkdir(exist_ok=True)
            Image.new('RGB', (4, 4)).save(tmp_path / name / f'{index}.png')
    load = [dict(type='LoadImageFromFile')]
    data = dict(type='CustomDataset', data_root=str(tmp_path), pipeline=load)
    cfg = Config(dict(default_scope='mmpretrain', train_dataloader=dict(dataset=data)))
    print_imbalance(read_data(cfg, ('train',), 1)[1], cfg)
    assert ("3 times the samples of the rarest: imbalance = 'weighted'" in capsys.readouterr().out) is (number == 3)


def test_a_model_without_a_head_of_classes_is_refused(config):
    cfg = config('weighted')
    cfg.model.decode_head = cfg.model.pop('head')
    with pytest.raises(UserError, match='imbalance is for classifiers'):
        enter_imbalance(cfg)
