"""Damaged files are told from whole ones, and the newest whole one is found."""

import itertools
import os
import random
from functools import partial
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
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


def write_archive(folder, iteration=1, **options):
    path = folder / f'iter_{iteration}.pth'
    torch.save(checkpoint_of(iteration), path, **options)
    return path


def write_published(folder):
    content = save(checkpoint_of(1)['state_dict'])
    path = folder / f'a-{content_digits(content)}.safetensors'
    path.write_bytes(content)
    return path


write_before_archives = partial(write_archive, _use_new_zipfile_serialization=False)


@pytest.mark.parametrize('write', [write_archive, write_before_archives, write_published])
@settings(max_examples=12)
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_file_that_is_cut_off_anywhere(write, share, tmp_path_factory):
    path = write(tmp_path_factory.mktemp('cut'))
    assert find_damage(path) is None
    whole = path.read_bytes()
    for size in (int(share * len(whole)), len(whole) - 1):
        path.write_bytes(whole[:size])
        assert '\n' not in find_damage(path)
        with pytest.raises(UserError, match=r'^.+$'):
            load_checkpoint(path)
    path.unlink()
    assert 'there is no checkpoint' in find_damage(path)


def has_same_tensors(path):
    loaded, expected = load_checkpoint(path), checkpoint_of(1)
    tensors = [(loaded['state_dict'][name], weight) for name, weight in expected['state_dict'].items()]
    tensors.append((loaded['optimizer']['state'][0]['step'], expected['optimizer']['state'][0]['step']))
    return all(torch.equal(*pair) for pair in tensors)


@pytest.mark.parametrize(('write', 'kinds'), [(write_archive, {True, False}), (write_published, {True})])
def test_a_changed_bit_is_found_or_changes_nothing(write, kinds, tmp_path):
    """Names, dates and padding of an archive are not weights; of a published file everything counts."""
    path, found = write(tmp_path), []
    whole = path.read_bytes()
    for place in random.Random(1).sample(range(len(whole)), 150):
        content = bytearray(whole)
        content[place] ^= 1 << place % 8
        path.write_bytes(content)
        found.append(find_damage(path) is not None)
        assert found[-1] or has_same_tensors(path), place
    assert {*found} == kinds
    assert sum(found) > 75


@pytest.fixture
def run(tmp_path):
    """A work directory with three checkpoints, weights alone, and the best ones."""
    for age, iteration in enumerate((10, 9, 8)):
        os.utime(write_archive(tmp_path, iteration), (10**9 + age, 10**9 + age))  # what a copy of a folder may do
    torch.save(dict(state_dict=checkpoint_of(20)['state_dict']), tmp_path / 'iter_20.pth')
    torch.save(checkpoint_of(30), tmp_path / 'best_iter_30.pth')
    return tmp_path


def newest(run):
    found, passed_over = find_newest_checkpoint(run)
    return found and Path(found.name).name, {path.name: reason for path, reason in passed_over}


def test_the_highest_position_is_the_newest(run):
    """Not the most recent file; not weights alone, which a line names, nor the best ones, nor names of others."""
    for name in ('iter_07.pth', 'iter_40.pt', 'mine_iter_50.pth'):
        torch.save(checkpoint_of(50), run / name)
    weights_alone = {'iter_20.pth': f'{run}/iter_20.pth contains only weights, no training state'}
    assert newest(run) == ('iter_10.pth', weights_alone)
    for iteration, name in ((11, 'interrupted_iter_11.pth'), (12, 'epoch_2.pth')):
        torch.save(checkpoint_of(iteration), run / name)
        assert newest(run) == (name, weights_alone)


def test_damaged_ones_are_passed_over(run):
    names = ['iter_10.pth', 'iter_9.pth', 'iter_8.pth', None]
    for number, (name, following) in enumerate(itertools.pairwise(names), 1):
        (run / name).write_bytes((run / name).read_bytes()[:-1000])
        found, passed_over = newest(run)
        assert found == following
        assert [*passed_over] == ['iter_20.pth', *names[:number]]
        assert all('truncated' in reason for reason in [*passed_over.values()][1:])
    assert find_newest_checkpoint(run / 'nowhere') == (None, [])
