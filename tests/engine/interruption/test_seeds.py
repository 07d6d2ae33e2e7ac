"""Random numbers are functions of seed and place."""

import pickle
import random
from functools import partial
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.dataset import DefaultSampler
from mmengine.registry import DATASETS, init_default_scope
from mmengine.runner import Runner

from vt.engine.determinism import SeededDataset, SeedHook, find_generators, seed_random, seeded_loader
from vt.engine.run.runner import VTRunner

OF_MODULE = np.random.default_rng(2)


def draw():
    return random.random(), *np.random.rand(2), *torch.rand(2).tolist(), *cv2.randu(np.zeros((1, 2)), 0, 1)[0]


def test_a_key_decides_what_all_generators_draw():
    seed_random(1, 2, 3)
    first = draw()
    seed_random(1, 2, 4)
    assert not set(first) & set(draw())
    seed_random(1, 2, 3)
    assert draw() == first


def test_steps_of_iterations_and_of_processes_draw_different_numbers():
    drawn = set()
    for place in (dict(iter=0, rank=0), dict(iter=1, rank=0), dict(iter=0, rank=1), dict(iter=1, rank=1)):
        SeedHook().before_train_iter(SimpleNamespace(seed=3, **place), 0)
        drawn.add(draw())
    assert len(drawn) == 4


def test_neighbouring_keys_draw_as_unrelated_ones_do():
    draws = []
    for iteration in range(2000):
        seed_random(0, 0, iteration, 0)
        draws.append(draw())
    draws = np.array(draws)
    assert np.abs(draws.mean(axis=0) - 0.5).max() < 4 / np.sqrt(12 * len(draws))
    correlations = np.corrcoef(draws[1:].T, draws[:-1].T) - np.eye(2 * draws.shape[1])
    assert np.abs(correlations).max() < 5 / np.sqrt(len(draws))


class Holder:
    """A step with generators of its own."""

    of_class = np.random.default_rng(3)

    def __init__(self):
        self.python, self.others = random.Random(4), [dict(numpy=np.random.RandomState(5))]
        self.twice = self.python, partial(torch.rand, 1, generator=torch.Generator())
        self.bound = np.random.Generator(np.random.Philox(6)).random

    def __call__(self):
        numbers = self.of_class.random(), self.python.random(), self.others[0]['numpy'].rand(), OF_MODULE.random()
        return *numbers, self.twice[0].random(), self.twice[1]().item(), self.bound()


class Noise(torch.utils.data.Dataset):
    """Samples of noise of many kinds, with their index."""

    metainfo = dict(classes=('noise',))

    def __init__(self):
        self.steps = [Holder()]

    def __getitem__(self, index):
        return torch.tensor([index, *draw(), *self.steps[0]()], dtype=torch.float64)

    def __len__(self):
        return 10


@pytest.fixture(autouse=True, scope='module')
def _register_noise():
    DATASETS.register_module(module=Noise, force=True)
    yield
    DATASETS.module_dict.pop('Noise')


def loader(workers, batch_size=2, sampler='DefaultSampler', build=None, **options):
    cfg = dict(dataset=dict(type='Noise'), sampler=dict(type=sampler, shuffle=True), batch_size=batch_size, **options)
    cfg |= dict(num_workers=workers, persistent_workers=workers > 0, collate_fn=dict(type='default_collate'))
    return Runner.build_dataloader(seeded_loader(cfg, seed=3), seed=3)


def epochs(loader, number=2):
    result = []
    for epoch in range(number):
        loader.sampler.set_epoch(epoch)
        result.append(torch.cat(list(loader)))
    return torch.stack(result)


def test_workers_and_batches_change_nothing_and_epochs_everything():
    first, second = plain = epochs(loader(workers=0))
    torch.manual_seed(99)  # what the main process draws does not matter
    assert torch.equal(plain, epochs(loader(workers=0)))
    assert torch.equal(plain, epochs(loader(workers=2, batch_size=3)))
    order = first[:, 0].sort().indices, second[:, 0].sort().indices
    assert torch.equal(first[order[0], 0], second[order[1], 0])  # each sample once
    assert not torch.isin(first[:, 1:], second[:, 1:]).any()
    assert len(first[:, 1:].unique()) == first[:, 1:].numel()


def test_generators_are_found_once_and_those_of_libraries_are_not_among_them():
    holder, in_closure = Holder(), random.Random(7)
    libraries = random.random, np.random.rand, torch.default_generator
    found = find_generators([holder, holder.python, lambda: in_closure.random(), *libraries])
    assert len(found) == 7
    assert {id(each) for each in found} >= {id(holder.python), id(Holder.of_class), id(OF_MODULE)}
    assert find_generators([*range(10**6)]) == []


@pytest.mark.parametrize('world_size', [2, 4])
def test_processes_share_the_samples_of_one(world_size, monkeypatch):
    """The union of all processes' batches is one process's batch of the same global size, augmentation too."""
    (whole,) = epochs(loader(workers=0, batch_size=4), number=1)
    parts = []
    for rank in range(world_size):
        for module in ('mmengine.dataset.sampler', 'vt.engine.determinism'):
            monkeypatch.setattr(f'{module}.get_dist_info', partial(tuple, (rank, world_size)))
        parts.append(epochs(loader(workers=0, batch_size=4 // world_size), number=1)[0])
    assert torch.equal(torch.stack(parts, dim=1).flatten(0, 1)[: len(whole)], whole)


def test_an_endless_sampler_goes_on_where_it_was():
    whole = iter(loader(workers=0, sampler='InfiniteSampler'))
    batches = [next(whole) for _ in range(12)]  # more than two passes
    resumed = loader(workers=2, sampler='InfiniteSampler')
    resumed.sampler.skip(7 * resumed.batch_size)
    rest = iter(resumed)
    assert all(torch.equal(next(rest), batch) for batch in batches[7:])

    ending = loader(workers=0).sampler
    assert isinstance(ending.sampler, DefaultSampler)
    assert not hasattr(ending, 'skip')


def test_the_runner_seeds_its_loaders_and_what_is_built_stays(tmp_path):
    runner = VTRunner(torch.nn.Linear(1, 1), work_dir=str(tmp_path), experiment_name='seeds', cfg=Config(dict()))
    init_default_scope('mmengine')
    cfg = dict(dataset=dict(type='Noise'), sampler=dict(type='DefaultSampler'), batch_size=1)
    built = runner.build_dataloader(cfg, seed=3)
    assert isinstance(built.dataset, SeededDataset)
    assert built.dataset.metainfo == Noise.metainfo
    built.dataset.steps = []  # as hooks change the pipeline of a data set
    assert built.dataset.dataset.steps == []
    assert runner.build_dataloader(built, seed=3) is built
    assert built.sampler.sample_seed == 3
    assert len(pickle.loads(pickle.dumps(built.dataset))) == 10
