"""``imbalance`` of a config: its weights and repetitions are those of the counts."""

import math
from collections import Counter

import numpy as np
import pytest
from mmengine.config import Config
from mmengine.registry import DATASETS, DefaultScope
from sklearn.utils.class_weight import compute_class_weight

from vt.engine.config.data import Data
from vt.engine.config.imbalance import apply_imbalance, class_weights, pixel_weights, positive_weights
from vt.errors import UserError

RARE, COMMON = 8, 400  # 1:50
POSITIVE = [round(RARE / COMMON, 4), COMMON / RARE]  # of labels of their own sigmoids, by those that lack them


@pytest.fixture
def config(tmp_path):
    """A function that gives a config of a classifier and the list of images that it is trained with."""
    lines = [f'{index}.png {int(index >= COMMON)}' for index in range(COMMON + RARE)]
    (tmp_path / 'list.txt').write_text('\n'.join(lines))

    def config(method='weighted', **head):
        head = dict(type='LinearClsHead', num_classes=2, in_channels=2, topk=(1,)) | head
        data = dict(type='CustomDataset', data_root=str(tmp_path), ann_file='list.txt')
        data |= dict(classes=['common', 'rare'], serialize_data=False)
        model = dict(type='ImageClassifier', backbone=dict(type='ResNet', depth=18), head=head)
        loader = dict(batch_size=2, dataset=data)
        return Config(dict(default_scope='mmpretrain', model=model, train_dataloader=loader, imbalance=method))

    return config


def test_weights_of_classes_labels_and_pixels():
    random = np.random.default_rng(0)
    labels = np.repeat(np.arange(5), random.integers(1, 1000, 5))
    expected = compute_class_weight('balanced', classes=np.arange(5), y=labels)
    assert class_weights(Counter(labels.tolist()), 5) == pytest.approx(expected, rel=1e-3)
    assert class_weights(Counter({0: 30, 2: 10}), 3) == [0.6667, 1.0, 2.0]  # none of class 1
    assert positive_weights(Counter({0: 10, 1: 90, 3: 100}), 4, 100) == [9.0, 0.1111, 1.0, 1.0]
    counts = Counter({0: 900, 1: 99, 2: 1, 255: 77})
    weights = pixel_weights(counts, 3)
    ratio = math.log(1.02 + 0.9) / math.log(1.02 + 0.001)
    assert weights[2] / weights[0] == pytest.approx(ratio, rel=1e-3)
    assert sum(weights[label] * counts[label] for label in range(3)) == pytest.approx(1000, rel=1e-3)


@pytest.mark.parametrize(
    ('method', 'line'),
    [
        (None, None),
        ('weighted', 'imbalance: model.head.loss.class_weight from 0.51 to 25.5'),
        ('balanced', 'imbalance: repetitions of images in an epoch from 1 to 8'),
        ('focal', 'imbalance: model.head.loss is FocalLoss instead of CrossEntropyLoss'),
    ],
)
def test_the_rare_class_of_one_in_fifty_counts_more(method, line, config):
    cfg = config(method)
    assert apply_imbalance(cfg, Data(cfg)) == ([line] if line else [])
    assert cfg.get('imbalance') is None
    assert cfg.model.head.get('loss', {}).get('class_weight') == ([0.51, 25.5] if method == 'weighted' else None)
    repeated = 8 if method == 'balanced' else 1  # the square root of 50, rounded up
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        dataset = DATASETS.build(cfg.train_dataloader.dataset)
    labels = [dataset.get_data_info(index)['gt_label'] for index in range(len(dataset))]
    assert Counter(labels) == {0: COMMON, 1: repeated * RARE}


@pytest.mark.parametrize(
    'head',
    [dict(type='MultiLabelLinearClsHead', topk=None), dict(loss=dict(type='CrossEntropyLoss', use_sigmoid=True))],
)
def test_sigmoids_are_weighed_by_what_lacks_their_label(head, config):
    """Weights of classes would multiply the positive and negative terms alike."""
    cfg = config(**head)
    apply_imbalance(cfg, Data(cfg))
    assert cfg.model.head.loss == dict(type='CrossEntropyLoss', use_sigmoid=True, pos_weight=POSITIVE)


def test_what_is_balanced_already_and_other_models_are_refused(config):
    cfg = config(loss=dict(type='CrossEntropyLoss', class_weight=[1, 50]))
    with pytest.raises(UserError, match='imbalance twice, since'):
        apply_imbalance(cfg, Data(cfg))
    balanced = dict(type='mmengine.ClassBalancedDataset', oversample_thr=1.0, dataset={})
    for data in (balanced, dict(type='RepeatDataset', times=2, dataset=balanced)):
        cfg = config('balanced')
        cfg.train_dataloader.dataset = data
        with pytest.raises(UserError, match='imbalance twice, since train_dataloader has ClassBalancedDataset'):
            apply_imbalance(cfg, Data(cfg))
    cfg = config()
    cfg.model.decode_head = cfg.model.pop('head')
    with pytest.raises(UserError, match='imbalance requires a classifier'):
        apply_imbalance(cfg, Data(cfg))
