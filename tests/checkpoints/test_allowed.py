"""What a checkpoint may ask for can not call anything, and is all that real checkpoints need."""

import inspect
import itertools

import numpy as np
import pytest
import torch
from checkpoints.small_models import build_runner
from forked_tools import run_forked
from mmengine.config import ConfigDict
from mmengine.logging import HistoryBuffer
from mmengine.runner import checkpoint as mmengine_checkpoint
from mmengine.runner.checkpoint import CheckpointLoader
from tool_runner import ROOT, SMALL_CLASSIFIER
from torch._weights_only_unpickler import _get_allowed_globals

from vt.checkpoints import pickled
from vt.checkpoints.loading import read_checkpoint

CLASSIFIER = ROOT / 'configs/vt_resnet/vt-resnet18_digits.py'
SEGMENTOR = ROOT / 'configs/vt_fpn/vt-fpn_r18_digit-scenes.py'
FEW_SCENES = [
    'train_cfg.max_iters=2',
    'train_cfg.val_interval=2',
    'train_dataloader.batch_size=2',
    'val_dataloader.dataset.indices=2',
    'model.neck.token_channels=64',
    'param_scheduler.0.end=2',
]


def test_the_list_is_short_and_ours():
    assert {name for _, name in pickled.ALLOWED} == {
        'numpy.core.multiarray._reconstruct',
        'numpy._core.multiarray._reconstruct',
        'numpy.core.multiarray.scalar',
        'numpy._core.multiarray.scalar',
        'numpy.ndarray',
        'numpy.dtype',
        'mmengine.logging.history_buffer.HistoryBuffer',
        'mmengine.config.config.ConfigDict',
        'builtins.getattr',
        'builtins.bytes',
    }
    assert all(inspect.getmodule(held) is pickled for held, _ in pickled.ALLOWED)


class Trap:
    """It tells when anything of it is called."""

    called = False

    def __call__(self, *arguments, **options):
        Trap.called = True

    __setstate__ = __enter__ = __reduce__ = __call__


def arguments():
    """What a file could hand over, in all orders."""
    trap, history, number_type = Trap(), pickled.History, pickled.NumberType('f8')
    values = [trap, Trap, 'mean', '__init__', '__globals__', 'O', 'f8', b'12345678', history, number_type]
    values += [{'a': trap, '_max_length': trap, '_log_history': trap}, (1, (1,), trap, trap, trap), [trap]]
    return itertools.chain.from_iterable(itertools.product(values, repeat=count) for count in range(4))


@pytest.mark.parametrize('name', [name for _, name in pickled.ALLOWED])
def test_nothing_on_the_list_calls_what_it_is_given(name):
    (held,) = {held for held, allowed in pickled.ALLOWED if allowed == name}
    results = []
    for values in arguments():
        try:
            results.append(held(*values))
        except (TypeError, ValueError, KeyError, AttributeError):
            continue
    for result, values in itertools.product(results[:20], arguments()):
        if type(result) in (held, pickled.Array, pickled.NumberType) and len(values) == 1:
            try:
                result.__setstate__(*values)
            except (TypeError, ValueError, KeyError, IndexError, AttributeError):
                continue
    assert not Trap.called
    assert not any(inspect.isroutine(result) or inspect.ismodule(result) for result in results)


def test_pytorch_adds_only_its_own():
    names = {name for name in _get_allowed_globals() if not name.startswith(('torch.', 'collections.'))}
    assert names == {'_codecs.encode', 'builtins.bytearray', 'builtins.set', 'builtins.complex'}


def test_what_libraries_add_is_left_out(tmp_path):
    """PyTorch's list is one for the process."""
    torch.save(dict(a=ExtraType()), tmp_path / 'a.pth')
    with torch.serialization.safe_globals([ExtraType]):
        torch.load(tmp_path / 'a.pth', weights_only=True)
        before = torch.serialization.get_safe_globals()
        with pytest.raises(ValueError, match=r'it asks for \S+ExtraType'):
            read_checkpoint(tmp_path / 'a.pth')
        assert set(torch.serialization.get_safe_globals()) == set(before)


class ExtraType:
    """One that a library calls safe."""


def test_mmengines_own_reader_is_out_of_reach(tmp_path):
    assert mmengine_checkpoint.get_torch_safe_globals() == []
    torch.save(dict(a=slice), tmp_path / 'a.pth')
    for weights_only in (None, False):
        with pytest.raises(ValueError, match='it asks for slice'):
            mmengine_checkpoint._safe_torch_load(str(tmp_path / 'a.pth'), weights_only=weights_only)
    readers = set(CheckpointLoader._schemes.values())
    reached = {name for reader in readers for name in reader.__code__.co_names}
    assert 'load' not in reached
    assert {'_safe_torch_load', 'load_from_http', 'read_checkpoint'} <= reached


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


def assert_is_read_whole(path):
    """As PyTorch reads it where it may run code, but for the texts of configs."""
    expected, loaded = torch.load(path, weights_only=False), read_checkpoint(path)
    expected['meta'].pop('cfg', None)
    expected['message_hub']['runtime_info'].pop('cfg', None)
    assert equal(loaded, expected)
    return loaded


def test_a_classifiers_with_ema_adamw_and_amp(tmp_path):
    options = ['train_cfg.max_epochs=1', 'default_hooks.ema.type=EMAHook', *SMALL_CLASSIFIER]
    result = run_forked('train.py', CLASSIFIER, '--amp', '--work-dir', 'out', cwd=tmp_path, options=options)
    assert result.returncode == 0, result.stderr
    loaded = assert_is_read_whole(tmp_path / 'out/epoch_1.pth')
    assert 'ema_state_dict' in loaded
    assert loaded['message_hub']['log_scalars']['train/loss'].mean() > 0
    assert_is_read_whole(next((tmp_path / 'out').glob('best_*.pth')))


def test_a_segmentors(tmp_path):
    result = run_forked('train.py', SEGMENTOR, '--work-dir', 'out', cwd=tmp_path, options=FEW_SCENES)
    assert result.returncode == 0, result.stderr
    assert_is_read_whole(tmp_path / 'out/iter_2.pth')


@pytest.mark.parametrize('optimizer', ['SGD', 'RMSprop', 'Adam'])
def test_plain_mmengines(optimizer, tmp_path):
    runner = build_runner(tmp_path, dict(type=optimizer, lr=0.01))
    runner.train()
    loaded = assert_is_read_whole(tmp_path / 'epoch_1.pth')
    assert loaded['optimizer']['param_groups']
    build_runner(
        tmp_path / 'on', dict(type=optimizer, lr=0.01), epochs=2, load_from=tmp_path / 'epoch_1.pth', resume=True
    ).train()
    assert_is_read_whole(tmp_path / 'on/epoch_2.pth')


def test_numbers_of_numpy_and_nested_configs(tmp_path):
    held = dict(
        arrays=[
            np.arange(6).astype(kind).reshape(2, 3) for kind in ('i1', 'u2', '>i4', 'f2', 'f4', 'f8', 'c16', 'bool')
        ],
        fortran=np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        empty=np.zeros((0, 3)),
        scalars=(np.float64(0.5), np.int64(3), np.float32(2), np.bool_(True)),
        shared=[history := HistoryBuffer([1.0], [1]), history],
        empty_history=HistoryBuffer(),
        nested=ConfigDict(classes=['a'], more=dict(b=1)),
    )
    torch.save(dict(meta=held, state_dict=dict(a=torch.ones(1))), tmp_path / 'a.pth')
    loaded = read_checkpoint(tmp_path / 'a.pth')['meta']
    assert loaded.pop('nested') == held.pop('nested')
    big_endian = held['arrays'][2]
    held['arrays'][2] = big_endian.astype('i4')
    assert equal(loaded, held)
    assert loaded['shared'][0] is loaded['shared'][1]
    assert loaded['fortran'].tolist() == held['fortran'].tolist()
    torch.save(loaded, tmp_path / 'b.pth')  # what was read can be saved and read again
    assert equal(read_checkpoint(tmp_path / 'b.pth'), loaded)
