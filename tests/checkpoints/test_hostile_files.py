"""Files that would run code or hold odd values, of many kinds: each is data, or is refused in one line."""

import codecs
import contextlib
import io
import zipfile

import numpy as np
import pytest
import torch
from audit import Watch
from checkpoints import hostile_files, odd_files
from checkpoints.hostile_files import Call, checkpoint_with, in_checkpoint, python_that_makes, saved
from mmengine.logging import HistoryBuffer
from safetensors.torch import save

from vt.checkpoints.reading import find_newest_checkpoint, load_checkpoint
from vt.errors import UserError

pytestmark = pytest.mark.filterwarnings('ignore')


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


def read(path):
    """What a file holds, or the one line that refuses it."""
    try:
        return load_checkpoint(path)
    except UserError as error:
        line = str(error)
    assert line.isprintable()
    assert str(path) in line
    assert len(line) < 600 + len(str(path))
    return line


@pytest.fixture(scope='module')
def watch(tmp_path_factory):
    """It has seen what reading harmless files does, and refusing others."""
    folder = tmp_path_factory.mktemp('harmless')
    weights = checkpoint_with(np.arange(3))
    (folder / 'a.safetensors').write_bytes(save(weights['state_dict']))
    (folder / 'epoch_1.pth').write_bytes(saved(weights))
    (folder / 'epoch_2.pth').write_bytes(saved(weights, **hostile_files.BEFORE))
    (folder / 'epoch_3.pth').write_bytes(saved(weights)[:-9])
    hostile_files.FILES['TorchScript'](folder / 'epoch_4.pth', folder / 'marker')
    in_checkpoint('exec')(folder / 'epoch_5.pth', folder / 'marker')
    watch = Watch(folder.parent)
    codecs.lookup('cp437')  # of names in archives, which is imported on first use, as is that of arrays
    codecs.lookup('latin1')
    codecs.lookup('raw_unicode_escape')  # of texts at the first protocols of pickle
    with watch.harmless():
        for path in sorted(folder.iterdir()):
            read(path)
        assert find_newest_checkpoint(folder)[0].name.endswith('epoch_2.pth')
    return watch


FILES = {kind: lambda path, marker, write=write: write(path) for kind, write in odd_files.FILES.items()}
FILES |= hostile_files.FILES


@pytest.mark.parametrize('kind', FILES)
def test_a_file_is_data_and_nothing_of_it_happens(kind, tmp_path, marker, watch):
    """Nothing is run, imported, opened or fetched that a harmless file does not bring about."""
    path = tmp_path / ('a.safetensors' if 'safetensors' in kind else 'epoch_1.pth')
    FILES[kind](path, marker)
    with watch.events() as events:
        content = read(path)
        newest = find_newest_checkpoint(tmp_path)
    assert events == []
    assert not marker.exists()
    if isinstance(content, dict):
        assert all(type(tensor) is torch.Tensor and not vars(tensor) for tensor in content['state_dict'].values())
    if kind in hostile_files.FILES:
        assert newest == (None, [(path, content)])
        with contextlib.suppress(Exception):
            torch.load(path, weights_only=False)
        assert marker.exists()  # what it is for


@pytest.mark.parametrize(
    ('kind', 'asked'),
    [
        ('os.system', '.system, which weights do not need and which can run code; if you trust its'),
        ('TorchScript', 'is not loaded: it contains __torch__.'),
        ('legacy tar', 'is damaged: it does not begin like a checkpoint'),
    ],
)
def test_the_line_names_what_a_file_asks_for(kind, asked, tmp_path, marker):
    FILES[kind](tmp_path / 'a.pth', marker)
    assert asked in read(tmp_path / 'a.pth')


def test_a_suffix_does_not_choose_the_reader_of_a_pickle(tmp_path, marker):
    in_checkpoint('exec')(tmp_path / 'a.safetensors', marker)
    (tmp_path / 'a.pth').write_bytes(save(dict(a=torch.zeros(2))))
    assert 'a.safetensors is damaged: ' in read(tmp_path / 'a.safetensors')
    assert 'a.pth is damaged: ' in read(tmp_path / 'a.pth')
    assert not marker.exists()


def test_texts_of_configs_are_left_out(tmp_path, marker):
    """mmengine runs them: to resume, or to make a model for inference."""
    checkpoint = checkpoint_with(None)
    checkpoint['meta'].update(config=python_that_makes(marker), cfg=python_that_makes(marker))
    checkpoint['message_hub']['runtime_info']['cfg'] = python_that_makes(marker)
    torch.save(checkpoint, tmp_path / 'a.pth')
    loaded = load_checkpoint(tmp_path / 'a.pth')
    assert not {'config', 'cfg'} & {*loaded['meta'], *loaded['message_hub']['runtime_info']}
    assert loaded['meta']['iter'] == 2


def test_an_archive_that_declares_more_than_it_holds_is_refused(tmp_path):
    path, whole = tmp_path / 'a.pth', zipfile.ZipFile(io.BytesIO(saved(dict(a=torch.zeros(2_500_000)))))
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as unfolding:
        for name in whole.namelist():
            unfolding.writestr(name, whole.read(name))
    assert path.stat().st_size < 20_000
    assert 'bytes decompress to 10,000,' in read(path)


def test_tensors_before_pytorch_0_2_and_numbers_of_another_order_of_bytes(tmp_path):
    path, new = tmp_path / 'a.pth', odd_files.named('torch.FloatTensor') + b')R('
    state = odd_files.storage() + b'K\x00' + odd_files.call('torch.Size', odd_files.numbers(2, 2))
    odd_files.archive(path, odd_files.checkpoint(new + state + odd_files.numbers(2, 1) + b'tb'))
    assert read(path)['more'].tolist() == [[0, 0], [0, 0]]
    with zipfile.ZipFile(path, 'a') as archive:
        archive.writestr('a/byteorder', b'big')
    assert 'its byte order is not that of this machine' in read(path)


def test_what_a_file_asks_numpy_for_is_not_done(tmp_path):
    """With numpy's own constructors among the safe globals such a file has numpy follow a pointer of its choice."""

    def array_of(kind, *state):
        dtype = Call(np.dtype, kind, False, True, state=state)
        new = np._core.multiarray._reconstruct, np.ndarray, (0,), b'b'
        return Call(*new, state=(1, (1,), dtype, False, b'\x41' * 8))

    path = tmp_path / 'a.pth'
    path.write_bytes(saved(checkpoint_with(array_of('f8', 3, '<', None, None, None, -1, -1, 63))))
    (value,) = load_checkpoint(path)['meta']['dataset_meta']['more']
    assert value.item() == np.frombuffer(b'\x41' * 8)[0]
    assert np.dtype('f8').flags == 0
    path.write_bytes(saved(checkpoint_with(array_of('V8', 3, '|', None, ('a',), {'a': (np.dtype('O'), 0)}, 8, 1, 0))))
    assert 'more' not in load_checkpoint(path)['meta']['dataset_meta']
