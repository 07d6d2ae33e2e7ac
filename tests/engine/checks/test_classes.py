"""Heads and data sets must agree on the number of classes."""

import numpy as np
import pytest
from mmengine.registry import init_default_scope
from mmpretrain.registry import MODELS
from mmseg.evaluation import IoUMetric
from torch import nn

from vt.engine.hooks.num_classes import check_classes
from vt.errors import UserError


class Data:
    def __init__(self, labels, classes=None):
        self.labels = labels
        self.metainfo = {} if classes is None else dict(classes=classes)

    def __len__(self):
        return len(self.labels)

    def get_data_info(self, index):
        return {} if self.labels[index] is None else dict(gt_label=self.labels[index])

    def get_gt_labels(self):
        return np.array([self.get_data_info(index)['gt_label'] for index in range(len(self))])


def model(**heads):
    """A model whose heads have so many classes; a list makes a list of heads."""
    result = nn.Module()
    for name, number in heads.items():
        numbers = number if isinstance(number, list) else [number]
        parts = [nn.Identity() for _ in numbers]
        for part, own in zip(parts, numbers):
            part.num_classes = own
        setattr(result, name, nn.ModuleList(parts) if isinstance(number, list) else parts[0])
    return result


def test_heads_that_agree():
    check_classes(model(head=3), Data([0, 1, 2], ('a', 'b', 'c')))
    check_classes(model(head=5), Data([0, 4]))  # no names: more classes than labels seen are fine
    check_classes(model(head=5), Data([None, None]))  # images without labels
    check_classes(model(decode_head=2, auxiliary_head=[2, 2]), Data([0], 'ab'))


@pytest.mark.parametrize(
    ('heads', 'data', 'message'),
    [
        (dict(head=4), Data([0], 'abc'), 'model.head has num_classes=4, but the Data data set has 3 classes'),
        (dict(decode_head=3), Data([0], 'ab'), 'set model.decode_head.num_classes=2'),
        (dict(auxiliary_head=[2, 5]), Data([0], 'ab'), 'model.auxiliary_head.1 has num_classes=5'),
    ],
)
def test_heads_that_differ(heads, data, message):
    with pytest.raises(UserError, match=message):
        check_classes(model(**heads), data)


def test_what_is_no_head_may_count_otherwise():
    """A backbone's own classifier, or a number that the model keeps for itself."""
    classifier = model(head=2)
    classifier.num_classes = 5
    check_classes(classifier, Data([0], 'ab'))
    init_default_scope('mmpretrain')
    check_classes(MODELS.build(dict(type='ImageClassifier', backbone=dict(type='LeNet5'))), Data([0], 'ab'))


def test_heads_and_metrics_ignore_what_the_data_set_ignores():
    data, metric = Data([0], 'ab'), IoUMetric(ignore_index=0)
    data.ignore_index = 255  # the default, which says nothing
    check_classes(model(decode_head=2), data, [metric])
    data.ignore_index = 200
    with pytest.raises(UserError, match='IoUMetric has ignore_index=0, but the data set has 200: set both to'):
        check_classes(model(decode_head=2), data, [metric])
