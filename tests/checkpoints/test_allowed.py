"""What a checkpoint may ask for is all that mmengine's own checkpoints and those of other trainers need."""

import argparse
import copyreg
import enum
import inspect
import itertools
import sys
from collections import OrderedDict, defaultdict
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import ModuleType, SimpleNamespace
from uuid import uuid4

import numpy as np
import pytest
import torch
from addict import Dict
from checkpoints.small_models import build_runner
from mmengine.config import ConfigDict
from mmengine.fileio import get_file_backend
from mmengine.logging import HistoryBuffer
from mmengine.registry import WEIGHT_INITIALIZERS
from mmengine.runner import checkpoint as mmengine_checkpoint
from mmengine.runner.checkpoint import CheckpointLoader

from vt.checkpoints.inert import make_plain, restore_histories
from vt.checkpoints.loading import weights_only
from vt.checkpoints.reading import TEXT, Checkpoint, load_checkpoint


def replaced():
    """What importing VT or ``weights_only`` could put in place of the libraries' own, and the file that defines it."""
    functions = [mmengine_checkpoint.load_from_local, mmengine_checkpoint.load_from_http, torch.load]
    functions += [mmengine_checkpoint._safe_torch_load, mmengine_checkpoint.get_torch_safe_globals]
    functions += [CheckpointLoader.load_checkpoint, WEIGHT_INITIALIZERS.get('Pretrained').__call__]
    functions += [*CheckpointLoader._schemes.values(), type(get_file_backend('a')).get]
    return functions, [inspect.unwrap(each).__code__.co_filename for each in functions]


def test_importing_vt_changes_nothing_and_what_a_block_changes_is_undone():
    """Everything of it is imported here."""
    before, files = replaced()
    assert all('/mmengine/' in file or '/torch/' in file for file in files)
    assert not [each for each in torch.serialization.get_safe_globals() if str(each).startswith("<class 'vt.")]
    with weights_only():
        inside, changed = replaced()
        assert any('/vt/' in file for file in changed)
        with weights_only():
            assert replaced()[0] == inside
        assert replaced()[0] == inside
    assert replaced()[0] == before


def test_what_libraries_add_is_left_out(tmp_path):
    """PyTorch's list is one for the process."""
    torch.save(dict(a=Unknown()), tmp_path / 'a.pth')
    with torch.serialization.safe_globals([Unknown]):
        torch.load(tmp_path / 'a.pth', weights_only=True)
        before = torch.serialization.get_safe_globals()
        with pytest.raises(ValueError, match=r'it contains \S+Unknown'):
            load_checkpoint(tmp_path / 'a.pth')
        assert set(torch.serialization.get_safe_globals()) == set(before)


def equal(left, right):
    """Whether two checkpoints hold the same, in the same types."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return list(left) == list(right) and all(equal(left[name], right[name]) for name in left)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, torch.Tensor):
        return left.dtype == right.dtype and left.stride() == right.stride() and torch.equal(left, right)
    if isinstance(left, np.ndarray):
        return left.dtype == right.dtype and np.array_equal(left, right)
    if isinstance(left, HistoryBuffer):
        return all(map(equal, left.data, right.data)) and left.max_length == right.max_length
    return left == right


ADAM = dict(type='AdamW', lr=0.01)


def assert_is_plain(path):
    """Every weights-only reader reads it; and it holds histories again once ours has read it."""
    assert torch.serialization.get_unsafe_globals_in_checkpoint(path) == []
    loaded, restored = torch.load(path, weights_only=True), load_checkpoint(path)
    assert loaded['meta']['cfg']
    assert {type(history) for history in restored['message_hub']['log_scalars'].values()} == {HistoryBuffer}
    assert equal(restored['state_dict'], loaded['state_dict'])
    return restored


def test_our_files_hold_tensors_and_numbers_alone(tmp_path):
    """With averages, and mixed precision."""
    amp = dict(type='vt.BFloat16AmpOptimWrapper')
    build_runner(tmp_path, ADAM, wrapper=amp, custom_hooks=[dict(type='EMAHook')]).train()
    loaded = assert_is_plain(tmp_path / 'epoch_1.pth')
    assert loaded['message_hub']['log_scalars']['train/loss'].mean() != 0
    assert 'ema_state_dict' in loaded
    assert 'Not saved' not in next(tmp_path.glob('*/*.log')).read_text()


def test_what_mmengines_own_runner_writes_is_read_whole_and_resumed(tmp_path):
    """As PyTorch reads it where it may run code, made plain, but for the texts of configs and names of files."""
    build_runner(tmp_path, ADAM, runner='Runner').train()
    path = tmp_path / 'epoch_1.pth'
    assert torch.serialization.get_unsafe_globals_in_checkpoint(path)
    expected, hub = torch.load(path, weights_only=False), ('runtime_info', 'resumed_keys')
    expected['meta'][TEXT] = expected['meta'].pop('cfg')
    for held, key in itertools.product((expected['message_hub'][name] for name in hub), ('cfg', 'last_ckpt')):
        held.pop(key, None)
    make_plain(expected)
    restore_histories(expected)
    assert equal(load_checkpoint(path), expected)
    on = build_runner(tmp_path / 'on', ADAM, epochs=2, load_from=path, resume=True)
    on.train()
    assert on.iter == 4
    assert_is_plain(tmp_path / 'on/epoch_2.pth')
    assert len(on.message_hub.get_scalar('train/loss').data[0]) == 4


def test_numbers_of_numpy_and_nested_configs(tmp_path):
    arrays = [np.arange(6).astype(kind).reshape(2, 3) for kind in ('i1', 'u2', '>i4', 'f2', 'f4', 'f8', 'c16', 'bool')]
    arrays += [np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.zeros((0, 3))]
    history = HistoryBuffer([1.0], [1])
    scalars = np.float64(0.5), np.int64(3), np.float32(2), np.bool_(True)
    nested = ConfigDict(classes=['a'], more=dict(b=1))
    held = dict(arrays=arrays, scalars=scalars, shared=[history, history], empty_history=HistoryBuffer(), nested=nested)
    torch.save(dict(meta=held, state_dict=dict(a=torch.ones(1))), tmp_path / 'a.pth')
    loaded = load_checkpoint(tmp_path / 'a.pth')['meta']
    for array, tensor in zip(arrays, loaded['arrays'], strict=True):
        assert (tuple(tensor.shape), tensor.tolist()) == (array.shape, array.tolist())
        assert tensor.numpy().dtype == array.dtype.newbyteorder('=')
    assert equal(loaded['scalars'], (0.5, 3, 2.0, True))
    assert equal(loaded['nested'], dict(classes=['a'], more=dict(b=1)))
    assert loaded['shared'][0] is loaded['shared'][1]
    assert loaded['shared'][0]['log_history'] == 1
    make_plain(held)
    assert equal(loaded, held)  # as it is written
    torch.save(loaded, tmp_path / 'b.pth')  # what was read can be saved and read again
    assert equal(load_checkpoint(tmp_path / 'b.pth'), loaded)


class Options(dict):
    """As yacs, easydict and Lightning keep options: items, some also as attributes, which may have any name."""

    def __reduce__(self):
        return copyreg.__newobj__, (type(self),), self.__dict__ or None, None, iter(dict.items(self))


@pytest.mark.parametrize('archive', [True, False])
def test_what_trainers_store_beside_weights(archive, monkeypatch, tmp_path):
    """Options that are dicts are read, of others nothing; weights are whole; no package of theirs is needed."""
    made = {}
    for name in ('yacs.config.CfgNode', 'easydict.EasyDict', 'pytorch_lightning.utilities.parsing.AttributeDict'):
        module, _, short = name.rpartition('.')
        made[short] = type(short, (Options,), dict(__module__=module, __qualname__=short))
        for package in (module.partition('.')[0], module):
            monkeypatch.setitem(sys.modules, package, ModuleType(package))
        setattr(sys.modules[module], short, made[short])
    cfg, easy = made['CfgNode'](MODEL=made['CfgNode'](TYPE='swin', DROP=0.2), AMP=True), made['EasyDict'](a=1)
    cfg.__dict__.update(__immutable__=True, items=None)
    easy.__dict__.update(a=1)
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.ones(2))], lr=0.1)
    trainers = dict(
        config=cfg,
        args=argparse.Namespace(lr=0.1, output_dir=Path('/a/b'), device=torch.device('cpu'), more=SimpleNamespace(a=1)),
        best=Path('c/d.pth'),
        hyper_parameters=made['AttributeDict'](width=3, since=datetime(2021, 1, 2), span=timedelta(1)),
        easy=easy,
        counts=defaultdict(list, a=[1, np.float32(2)]),
        optimizer=optimizer,
        lr_scheduler=torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=5),
        own=Dict(a=Dict(b=2)),
        scaler=torch.amp.GradScaler('cpu').state_dict(),
        max_accuracy=np.float64(81.5),
        kinds=[frozenset([1]), range(3), slice(2), uuid4(), Decimal(1), float, int, str],
    )
    weights = OrderedDict(weight=torch.arange(3.0))
    torch.save(dict(model=weights, **trainers), tmp_path / 'a.pth', _use_new_zipfile_serialization=archive)
    for name in ('yacs', 'easydict', 'pytorch_lightning'):
        monkeypatch.setitem(sys.modules, name, None)  # so that importing it is an error
    loaded = load_checkpoint(tmp_path / 'a.pth')
    assert equal(Checkpoint('a.pth', loaded).state()['weight'], weights['weight'])
    assert loaded['config'] == dict(MODEL=dict(TYPE='swin', DROP=0.2), AMP=True)
    assert loaded['hyper_parameters'] == dict(width=3, since={}, span={})
    assert (loaded['easy'], loaded['own'], loaded['counts']) == (dict(a=1), dict(a=dict(b=2)), dict(a=[1, 2.0]))
    assert [loaded[key] for key in ('args', 'lr_scheduler', 'best')] == [{}, {}, 'c/d.pth']
    assert loaded['kinds'] == [{}] * 5 + [None] * 3
    assert loaded['max_accuracy'] == 81.5
    torch.save(loaded, tmp_path / 'b.pth')
    assert torch.serialization.get_unsafe_globals_in_checkpoint(tmp_path / 'b.pth') == []


@pytest.mark.parametrize('archive', [True, False])
def test_what_other_files_hold(archive, tmp_path):
    """Parameters, shared and strided weights, data types, dicts with other keys, what PyTorch's optimizers keep.

    Attributes of tensors are dropped: those of FSDP, and any that would replace a method.
    """
    weight = torch.arange(24.0).view(2, 3, 4)
    weight._has_been_cloned, weight.is_complex, weight.detach = True, 'a text', OrderedDict
    kinds = [torch.float64, torch.bfloat16, torch.complex64, torch.int8, torch.bool]
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters(), amsgrad=True)
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [2, 3, 3])
    held = dict(
        model=OrderedDict(a=weight, b=weight, c=weight[:, 1:].transpose(0, 2), d=torch.ones(1).expand(50, 50)),
        parameters=dict(model.named_parameters()),
        kinds=[torch.ones(3).to(kind) for kind in kinds],
        empty=[torch.zeros(0), torch.zeros(3, 0), torch.tensor(2.5)],
        states=[optimizer.state_dict(), schedule.state_dict()],
        keys={(0, 1): 'a', 2: 'b', 0.5: 'c', None: 'd', b'e': 'e', 'f': {'g', 'h'}, 7: {1, 2}},
        more=['x' * 10**5, b'y' * 10**5, b'', 'ä猫', torch.Size([2]), torch.device('cpu'), torch.half, 10**30, True],
    )
    torch.save(held, tmp_path / 'a.pth', _use_new_zipfile_serialization=archive)
    loaded = load_checkpoint(tmp_path / 'a.pth')
    assert equal(loaded['model'], held['model'])
    assert not vars(loaded['model']['a'])
    assert equal([*loaded['parameters'].values()], [each.detach() for each in held['parameters'].values()])
    for name in ('empty', 'states', 'keys', 'more'):
        assert equal(loaded[name], held[name]), name
    assert all(map(torch.equal, (kind.float() for kind in loaded['kinds']), (kind.float() for kind in held['kinds'])))
    assert loaded['model']['a'].untyped_storage().data_ptr() == loaded['model']['b'].untyped_storage().data_ptr()


def test_what_is_neither_number_nor_text_is_not_written():
    """Wherever it stands; functions are left out without a word."""
    checkpoint = dict(own=Unknown(), meta=dict(a=[1, Unknown()], b=len, c=Color.RED), state_dict={Unknown: 1})
    assert make_plain(checkpoint) == {'own', 'meta.a.1'}
    assert equal(checkpoint, dict(meta=dict(a=[1, None], c=3), state_dict={}))


class Unknown:
    """An object that says nothing of itself."""


class Color(enum.IntEnum):
    RED = 3
