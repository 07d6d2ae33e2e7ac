"""Checks before a run, and what an error looks like."""

import pytest
import torch
from torch import nn

from vt.engine.errors import describe, one_line_errors
from vt.engine.hooks import check_num_classes


class Data:
    def __init__(self, labels, classes=None):
        self.labels = labels
        self.metainfo = {} if classes is None else dict(classes=classes)

    def get_gt_labels(self):
        return self.labels


class Model(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.head = nn.Linear(3, num_classes)
        self.head.num_classes = num_classes


def test_number_of_classes():
    check_num_classes(Model(3), Data([0, 1, 2], ('a', 'b', 'c')))
    check_num_classes(Model(5), Data([0, 4]))  # no names: more classes than labels seen are fine
    with pytest.raises(ValueError, match=r'model.head has num_classes=4, but the Data data set has 3 classes'):
        check_num_classes(Model(4), Data([0], ('a', 'b', 'c')))
    with pytest.raises(ValueError, match=r'model.head has num_classes=4, but the Data data set has 5 labels'):
        check_num_classes(Model(4), Data([0, 4]))


@pytest.mark.parametrize(
    ('error', 'line'),
    [
        (ValueError('a\n  b'), 'a b'),
        (TypeError('bad'), 'TypeError: bad'),
        (FileNotFoundError(2, 'No such file', 'data/x'), 'there is no data/x: put it there, or set its path'),
        (KeyError('vt.VTResNt is not in the vt::model registry. Please'), "no model type 'vt.VTResNt'; did you mean"),
        (KeyError('Qqqqqq is not in the vt::hook registry.'), "no hook type 'Qqqqqq'; is its package in custom_im"),
    ],
)
def test_errors_are_one_line(error, line):
    assert line in describe(error)
    assert '\n' not in describe(error)


def test_a_product_of_wrong_widths_names_both():
    with pytest.raises(RuntimeError) as caught:
        nn.Linear(5, 2)(torch.zeros(1, 4))
    assert describe(caught.value).startswith('a layer got 4 channels where it takes 5')


def test_exit_code_and_traceback(capsys):
    with pytest.raises(SystemExit, match='1'), one_line_errors('a.py'):
        raise ValueError('wrong')
    assert capsys.readouterr().err == 'error: a.py: wrong (--traceback shows where)\n'
    with pytest.raises(SystemExit, match='130'), one_line_errors('a.py'):
        raise KeyboardInterrupt
    with pytest.raises(ValueError, match='wrong'), one_line_errors('a.py', traceback=True):
        raise ValueError('wrong')
