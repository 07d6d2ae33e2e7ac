"""Checks before a run, and what an error looks like."""

import mmcv
import pytest
import torch
from mmengine.config import Config
from mmengine.registry import TRANSFORMS
from torch import nn
from torch._utils import ExceptionWrapper

from vt.engine.checks.num_classes import check_num_classes
from vt.engine.errors.messages import describe
from vt.engine.errors.report import one_line_errors


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
        (PermissionError(13, 'Permission denied', 'out'), 'no permission for out: change its rights'),
        (OSError(28, 'No space left on device', 'a.pth'), 'no space is left to write a.pth: free some'),
        (OSError(28, 'No space left on device'), 'no space is left to write a file of this run'),
        (OSError(30, 'Read-only file system', 'out'), 'out lies on a file system that is read-only'),
        (OSError(24, 'Too many open files'), 'too many files are open: raise the limit (ulimit -n'),
        (
            torch.OutOfMemoryError('CUDA out of memory. Tried to allocate 2.00 GiB.'),
            '(Tried to allocate 2.00 GiB): lower',
        ),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory"),
            'out of memory: lower',
        ),
        (MemoryError('Unable to allocate 1.2 TiB for an array'), '(Unable to allocate 1.2 TiB): lower'),
        (
            RuntimeError('a remote process exited prematurely: ncclRemoteError'),
            'stopped because another process failed',
        ),
        (RuntimeError('DataLoader worker (pid 7) is killed by signal: Bus error. '), 'enlarge /dev/shm, or lower'),
        (
            RuntimeError('DataLoader worker (pid 7) is killed by signal: Killed. '),
            'was killed (Killed), mostly',
        ),
        (AssertionError(), 'AssertionError: no message'),
        (KeyError('vt.VTResNt is not in the vt::model registry. Please'), "no model type 'vt.VTResNt'; did you mean"),
        (KeyError('Qqqqqq is not in the vt::hook registry.'), "no hook type 'Qqqqqq'; is its package in custom_im"),
    ],
)
def test_errors_are_one_line(error, line):
    assert line in describe(error)
    assert '\n' not in describe(error)


def test_a_bare_assertion_shows_its_statement():
    with pytest.raises(AssertionError) as caught:
        mmcv.use_backend('junk')
    assert describe(caught.value) == 'AssertionError: `assert backend in supported_backends`'


def test_an_error_of_a_worker_is_its_own_last_line():
    try:
        raise ValueError('the label of\na.png')
    except ValueError:
        wrapped = ExceptionWrapper(where='in DataLoader worker process 0')
    with pytest.raises(ValueError, match='Caught ValueError in DataLoader worker process 0') as caught:
        wrapped.reraise()
    assert describe(caught.value) == 'the label of a.png'


def test_an_error_names_the_part_of_the_config_and_its_settings():
    """A setting that only a library refuses, in a part that stands in the config twice."""
    steps = [dict(type='Resize', scale=4), dict(type='Resize', scale=8, keep_ratio=True), dict(type='Resize')]
    cfg = Config(dict(default_scope='mmpretrain', train_dataloader=dict(dataset=dict(pipeline=steps))))

    def build(cfg):
        with TRANSFORMS.switch_scope_and_registry('mmpretrain') as registry:
            return [registry.build(step) for step in cfg.train_dataloader.dataset.pipeline]

    with pytest.raises(AssertionError) as caught:
        build(cfg)
    assert describe(caught.value).startswith('train_dataloader.dataset.pipeline.2 (Resize): AssertionError: ')
    cfg.train_dataloader.dataset.pipeline[1]['keep_ratios'] = True
    with pytest.raises(TypeError) as caught:
        build(cfg)
    line = "train_dataloader.dataset.pipeline.1: Resize has no argument 'keep_ratios'; did you mean keep_ratio?"
    assert describe(caught.value) == line


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
