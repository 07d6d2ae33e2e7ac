"""Damaged files are told from whole ones, and the newest whole one is found."""

import os
import random
from pathlib import Path

import pytest
import torch
from mmengine.logging import HistoryBuffer
from safetensors.torch import save

from vt.checkpoints.reading import content_digits, find_newest_checkpoint, load_checkpoint
from vt.errors import UserError


def find_damage(path):
    """Why a checkpoint cannot be read, without reading its weights; None if it can."""
    try:
        load_checkpoint(path, map_location='meta')
    except UserError as error:
        return str(error)
    return None


def checkpoint_of(iteration):
    generator = torch.Generator().manual_seed(iteration)
    return dict(
        meta=dict(epoch=iteration, iter=iteration),
        state_dict={f'layer{index}.weight': torch.randn(50, 50, generator=generator) for index in range(4)},
        message_hub=dict(log_scalars={'loss': HistoryBuffer([1.0, 0.5], [1, 1])}, runtime_info={}, resumed_keys={}),
        optimizer=dict(state={0: dict(step=torch.tensor(1.0))}, param_groups=[dict(lr=0.1)]),
    )


def write_archive(folder, iteration=1):
    path = folder / f'iter_{iteration}.pth'
    torch.save(checkpoint_of(iteration), path)
    return path


def write_before_archives(folder):
    path = folder / 'iter_1.pth'
    torch.save(checkpoint_of(1), path, _use_new_zipfile_serialization=False)
    return path


def write_published(folder):
    content = save(checkpoint_of(1)['state_dict'])
    path = folder / f'a-{content_digits(content)}.safetensors'
    path.write_bytes(content)
    return path


def write_safetensors(folder):
    return write_published(folder).rename(folder / 'a.safetensors')


@pytest.mark.parametrize('write', [write_archive, write_before_archives, write_published, write_safetensors])
def test_a_file_that_is_cut_off_anywhere(write, tmp_path):
    path = write(tmp_path)
    assert find_damage(path) is None
    whole = path.read_bytes()
    for percent in (*range(0, 100, 10), 1, 99):
        path.write_bytes(whole[: len(whole) * percent // 100])
        reason = find_damage(path)
        assert reason, percent
        with pytest.raises(ValueError, match=r'.') as raised:
            load_checkpoint(path)
        assert '\n' not in f'{reason}{raised.value}'
    path.write_bytes(whole[:-1])
    assert find_damage(path)
    path.unlink()
    assert 'there is no checkpoint' in find_damage(path)


def changed(path, whole, place):
    content = bytearray(whole)
    content[place] ^= 1 << place % 8
    path.write_bytes(content)


def has_same_tensors(path):
    loaded, expected = torch.load(path, weights_only=False), checkpoint_of(1)
    tensors = [(loaded['state_dict'][name], weight) for name, weight in expected['state_dict'].items()]
    tensors.append((loaded['optimizer']['state'][0]['step'], expected['optimizer']['state'][0]['step']))
    return all(torch.equal(*pair) for pair in tensors)


def test_a_changed_bit_is_found_or_changes_nothing(tmp_path):
    """Names, dates and padding of an archive are not weights."""
    path = write_archive(tmp_path)
    whole = path.read_bytes()
    random.seed(1)
    found = 0
    for place in random.sample(range(len(whole)), 300):
        changed(path, whole, place)
        reason = find_damage(path)
        found += reason is not None
        assert reason or has_same_tensors(path), place
    assert found > 150


def test_a_changed_bit_of_a_published_file_is_found(tmp_path):
    path = write_published(tmp_path)
    whole = path.read_bytes()
    for place in random.Random(0).sample(range(len(whole)), 50):
        changed(path, whole, place)
        assert find_damage(path)


@pytest.mark.parametrize(
    ('content', 'reason'),
    [
        (b'', 'its first bytes are not those of a checkpoint'),
        (b'not a checkpoint', 'its first bytes are not those of a checkpoint'),
        (b'\x89PNG\r\n\x1a\n' + bytes(100), 'its first bytes are not those of a checkpoint'),
        (bytes(1000), 'its first bytes are not those of a checkpoint'),
        (b'PK\x03\x04' + bytes(1000), 'it is truncated or changed'),
    ],
)
def test_other_files_are_named(content, reason, tmp_path):
    (tmp_path / 'a.pth').write_bytes(content)
    assert find_damage(tmp_path / 'a.pth').startswith(f'{tmp_path}/a.pth is damaged: {reason}')
    with pytest.raises(ValueError, match=r'a\.pth is damaged: '):
        load_checkpoint(tmp_path / 'a.pth')


class Run:
    """A work directory with three checkpoints."""

    def __init__(self, folder):
        folder.mkdir()
        self.folder = folder
        self.paths = [write_archive(folder, iteration) for iteration in (8, 9, 10)]
        for age, path in enumerate(reversed(self.paths)):  # what a copy of a folder may do
            os.utime(path, (10**9 + age, 10**9 + age))
        torch.save(dict(state_dict=checkpoint_of(20)['state_dict']), folder / 'iter_20.pth')
        torch.save(checkpoint_of(30), folder / 'best_iter_30.pth')

    def damage(self, path):
        Path(path).write_bytes(Path(path).read_bytes()[:-1000])


@pytest.fixture
def run(tmp_path):
    return Run(tmp_path / 'run')


def newest(run):
    path, passed_over = find_newest_checkpoint(run.folder)
    return path and path.name, [path.name for path, _ in passed_over]


def test_the_highest_position_is_the_newest(run):
    """Not the most recent file; not weights alone, which a line names, nor the best ones, nor names of others."""
    for name in ('iter_07.pth', 'iter_40.pt', 'mine_iter_50.pth'):
        torch.save(checkpoint_of(50), run.folder / name)
    assert newest(run) == ('iter_10.pth', ['iter_20.pth'])
    torch.save(checkpoint_of(11), run.folder / 'interrupted_iter_11.pth')
    assert newest(run) == ('interrupted_iter_11.pth', ['iter_20.pth'])
    torch.save(checkpoint_of(12), run.folder / 'epoch_2.pth')
    assert newest(run) == ('epoch_2.pth', ['iter_20.pth'])


def test_damaged_ones_are_passed_over(run):
    run.damage(run.paths[2])
    assert newest(run) == ('iter_9.pth', ['iter_20.pth', 'iter_10.pth'])
    run.damage(run.paths[1])
    path, passed_over = find_newest_checkpoint(run.folder)
    assert path == run.paths[0]
    reasons = {path.name: reason for path, reason in passed_over}
    assert reasons.pop('iter_20.pth') == f'{run.folder}/iter_20.pth contains only weights'
    assert reasons.keys() == {'iter_10.pth', 'iter_9.pth'}
    assert all('truncated' in reason for reason in reasons.values())
    run.damage(run.paths[0])
    path, passed_over = newest(run)
    assert path is None
    assert passed_over == ['iter_20.pth', 'iter_10.pth', 'iter_9.pth', 'iter_8.pth']
    assert find_newest_checkpoint(run.folder / 'nowhere') == (None, [])
