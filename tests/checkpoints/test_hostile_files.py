"""Files that would run code, of many kinds: read without trust none does, and each is refused in one line."""

import contextlib
import io
import zipfile

import numpy as np
import pytest
import torch
from checkpoints.hostile_files import CALLS, FILES, checkpoint_with, in_checkpoint, python_that_makes, saved
from checkpoints.instructions import archive, checkpoint
from checkpoints.odd_files import OBJECTS, WHOLE
from mmengine.logging import HistoryBuffer
from safetensors.torch import save

from vt.checkpoints.reading import find_newest_checkpoint, load_checkpoint, read_position
from vt.errors import UserError

SLOTS = torch.zeros(2)


@pytest.fixture(autouse=True)
def methods_of_histories():
    """A file that is trusted may replace mmengine's own for the whole process."""
    methods = HistoryBuffer()._statistics_methods
    before = dict(methods)
    yield
    methods.clear()
    methods.update(before)


@pytest.fixture
def marker(tmp_path):
    return tmp_path / 'marker'


def refusal(read, path, *arguments):
    """The one line of an error."""
    with pytest.raises(ValueError, match=r'.') as raised:
        read(path, *arguments)
    assert '\n' not in str(raised.value)
    assert str(path) in str(raised.value)
    return str(raised.value)


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('kind', FILES)
def test_nothing_runs(kind, tmp_path, marker):
    path = tmp_path / 'epoch_1.pth'
    FILES[kind](path, marker)
    assert not marker.exists()
    refusal(load_checkpoint, path)
    (tmp_path / 'last_checkpoint').write_text('epoch_1.pth')
    read_position(path)
    found, (passed_over,) = find_newest_checkpoint(tmp_path)
    assert (found, passed_over[0]) == (None, path)
    assert not marker.exists()
    with contextlib.suppress(Exception):
        torch.load(path, weights_only=False)
    assert marker.exists()  # what it is for


@pytest.mark.parametrize(
    ('kind', 'asked'),
    [
        ('os.system', r'it asks for \w+\.system, which no weights need and which may run code; if you trust whoever'),
        ('TorchScript', 'is damaged: RuntimeError: Cannot use ``weights_only=True`` with TorchScript'),
        ('legacy tar', 'is damaged: its first bytes are not those of a checkpoint$'),
        ('format before the archive', 'it asks for more than tensors and plain data; if you trust whoever'),
        ('pickle protocol 5', 'it asks for more than tensors and plain data'),
    ],
)
def test_the_line_names_what_a_file_asks_for(kind, asked, tmp_path, marker):
    FILES[kind](tmp_path / 'a.pth', marker)
    with pytest.raises(ValueError, match=asked):
        load_checkpoint(tmp_path / 'a.pth')


def test_the_chain_of_getattr_runs_with_the_list_that_mmengine_trusts(tmp_path, marker):
    """So that weights-only reading alone would not do."""
    path = tmp_path / 'a.pth'
    FILES['getattr chain'](path, marker)
    trusted = [getattr, HistoryBuffer]  # of mmengine.runner.checkpoint.get_torch_safe_globals
    with torch.serialization.safe_globals(trusted), contextlib.suppress(AttributeError):
        torch.load(path, weights_only=True)
    assert marker.exists()


def test_a_suffix_does_not_choose_the_reader_of_a_pickle(tmp_path, marker):
    in_checkpoint(CALLS['exec'])(tmp_path / 'a.safetensors', marker)
    assert 'a.safetensors is damaged: ' in refusal(load_checkpoint, tmp_path / 'a.safetensors')
    (tmp_path / 'a.pth').write_bytes(save(dict(a=SLOTS)))
    assert 'a.pth is damaged: ' in refusal(load_checkpoint, tmp_path / 'a.pth')
    assert not marker.exists()


def test_texts_of_configs_are_left_out(tmp_path, marker):
    """mmengine runs them: to resume, or to make a model for inference."""
    checkpoint = checkpoint_with(None)
    checkpoint['meta'].update(config=python_that_makes(marker), cfg=python_that_makes(marker))
    checkpoint['message_hub']['runtime_info']['cfg'] = python_that_makes(marker)
    torch.save(checkpoint, tmp_path / 'a.pth')
    loaded = load_checkpoint(tmp_path / 'a.pth')
    assert python_that_makes(marker) not in str(loaded)
    assert loaded['meta']['iter'] == 2


def test_a_small_file_can_not_take_all_memory(tmp_path):
    path, whole = tmp_path / 'a.pth', zipfile.ZipFile(io.BytesIO(saved(dict(a=torch.zeros(2_500_000)))))
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as unfolding:
        for name in whole.namelist():
            unfolding.writestr(name, whole.read(name))
    assert path.stat().st_size < 20_000
    assert 'bytes and expands to 10,000,' in refusal(load_checkpoint, path)


ODD = {kind: lambda path, held=held: archive(path, checkpoint(held)) for kind, held in OBJECTS.items()} | WHOLE


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('kind', ODD)
def test_whatever_is_in_a_file_is_data_or_one_line(kind, tmp_path):
    path = tmp_path / ('a.safetensors' if 'safetensors' in kind else 'a.pth')
    ODD[kind](path)
    try:
        loaded = load_checkpoint(path)
    except UserError:
        line = refusal(load_checkpoint, path)
        assert line.isprintable()
        assert len(line) < 600 + len(str(path))
    else:
        assert all(type(tensor) is torch.Tensor and not vars(tensor) for tensor in loaded['state_dict'].values())


def test_what_a_file_asks_numpy_for_is_not_done(tmp_path):
    """With numpy's own constructors among the safe globals such a file has numpy follow a pointer of its choice."""
    flags = State(np.dtype('f8'), (3, '<', None, None, None, -1, -1, 63))
    path = tmp_path / 'a.pth'
    path.write_bytes(saved(checkpoint_with(ArrayOf(flags, b'\x41' * 8))))
    (value,) = load_checkpoint(path)['meta']['dataset_meta']['more']
    assert value.item() == np.frombuffer(b'\x41' * 8)[0]
    assert np.dtype('f8').flags == 0
    fields = State(np.dtype('V8'), (3, '|', None, ('a',), {'a': (np.dtype('O'), 0)}, 8, 1, 0))
    path.write_bytes(saved(checkpoint_with(ArrayOf(fields, b'\x41' * 8))))
    assert 'more' not in load_checkpoint(path)['meta']['dataset_meta']


class State:
    """A data type with a state that numpy would not write."""

    def __init__(self, dtype, state):
        self.dtype, self.state = dtype, state

    def __reduce__(self):
        return np.dtype, (self.dtype.str[1:], False, True), self.state


class ArrayOf:
    """An array of one number, as pickles hold it."""

    def __init__(self, dtype, data):
        self.state = (1, (len(data) // 8,), dtype, False, data)

    def __reduce__(self):
        return np._core.multiarray._reconstruct, (np.ndarray, (0,), b'b'), self.state
