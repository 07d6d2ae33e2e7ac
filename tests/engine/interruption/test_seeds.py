"""Random numbers are functions of seed and place."""

import pickle
import random
from functools import partial
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from mmcv.transforms import BaseTransform
from mmengine.config import Config
from mmengine.dataset import DefaultSampler, InfiniteSampler
from mmengine.registry import DATASETS, TRANSFORMS, init_default_scope
from mmengine.runner import Runner

from vt.engine.interruption.seeds import SampleIndex, SeededDataset, find_generators, seed_random, seeded_loader
from vt.engine.launch import build_runner
from vt.engine.runner import VTRunner

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


def test_neighbouring_keys_draw_as_unrelated_ones_do():
    draws = []
    for iteration in range(2000):
        seed_random(0, 0, iteration, 0)
        draws.append(draw())
    draws = np.array(draws)
    assert np.abs(draws.mean(axis=0) - 0.5).max() < 4 / np.sqrt(12 * len(draws))
    correlations = np.corrcoef(draws[1:].T, draws[:-1].T) - np.eye(2 * draws.shape[1])
    assert np.abs(correlations).max() < 5 / np.sqrt(len(draws))


def test_an_index_keeps_its_place_on_the_way_to_a_worker():
    index = SampleIndex(7)
    index.key = 3, 2, 5
    index = pickle.loads(pickle.dumps(index))
    assert (index, index.key) == (7, (3, 2, 5))


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
    cfg = dict(
        dataset=dict(type='Noise'),
        sampler=dict(type=sampler, shuffle=True),
        batch_size=batch_size,
        num_workers=workers,
        persistent_workers=workers > 0,
        collate_fn=dict(type='default_collate'),
        **options,
    )
    return Runner.build_dataloader(seeded_loader(cfg, seed=3), seed=3)


def epochs(loader, number=2):
    result = []
    for epoch in range(number):
        loader.sampler.set_epoch(epoch)
        result.append(torch.cat(list(loader)))
    return torch.stack(result)


def test_workers_and_batches_change_nothing_and_epochs_everything():
    first, second = plain = epochs(loader(workers=0))
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


def test_albumentations_draws_by_sample():
    albumentations = pytest.importorskip('albumentations')
    step = albumentations.Compose([albumentations.OneOf([albumentations.GaussNoise(), albumentations.Blur()], p=0.9)])
    image = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)

    def draws(positions):
        dataset = SeededDataset(dict(type='Noise'))
        dataset.dataset.steps = [lambda: step(image=image)['image'].ravel() / 255]
        return torch.stack([dataset[numbered(position)] for position in positions])

    whole = draws(range(8))
    assert torch.equal(draws(range(4, 8)), whole[4:])
    assert len(whole.unique(dim=0)) == 8


def numbered(position):
    index = SampleIndex(0)
    index.key = 3, 0, position
    return index


def test_the_main_processes_draws_do_not_matter():
    first = epochs(loader(workers=0))
    torch.manual_seed(99)
    assert torch.equal(epochs(loader(workers=0)), first)


@pytest.mark.parametrize('world_size', [2, 4])
def test_processes_share_the_samples_of_one(world_size, monkeypatch):
    """The union of all processes' batches is one process's batch of the same global size, augmentation too."""
    (whole,) = epochs(loader(workers=0, batch_size=4), number=1)
    parts = []
    for rank in range(world_size):
        for module in ('mmengine.dataset.sampler', 'vt.engine.interruption.seeds'):
            monkeypatch.setattr(f'{module}.get_dist_info', partial(tuple, (rank, world_size)))
        parts.append(epochs(loader(workers=0, batch_size=4 // world_size), number=1)[0])
    shards = torch.stack(parts, dim=1).flatten(0, 1)
    assert torch.equal(shards[: len(whole)], whole)


def test_an_endless_sampler_goes_on_where_it_was():
    whole = iter(loader(workers=0, sampler='InfiniteSampler'))
    batches = [next(whole) for _ in range(12)]  # more than two passes
    resumed = loader(workers=2, sampler='InfiniteSampler')
    resumed.sampler.skip(7 * resumed.batch_size)
    rest = iter(resumed)
    assert all(torch.equal(next(rest), batch) for batch in batches[7:])


def test_a_sampler_that_ends_has_no_skip():
    assert not hasattr(loader(workers=0).sampler, 'skip')
    assert isinstance(loader(workers=0).sampler.sampler, DefaultSampler)
    assert isinstance(loader(workers=0, sampler='InfiniteSampler').sampler.sampler, InfiniteSampler)


def test_the_runner_seeds_its_loaders_and_what_is_built_stays(tmp_path):
    runner = VTRunner(torch.nn.Linear(1, 1), work_dir=str(tmp_path), experiment_name='seeds', cfg=Config(dict()))
    init_default_scope('mmengine')
    cfg = dict(dataset=dict(type='Noise'), sampler=dict(type='DefaultSampler'), batch_size=1)
    built = runner.build_dataloader(cfg, seed=3)
    assert isinstance(built.dataset, SeededDataset)
    assert built.dataset.metainfo == Noise.metainfo
    assert runner.build_dataloader(built, seed=3) is built
    assert built.sampler.sample_seed == 3
    assert len(pickle.loads(pickle.dumps(built.dataset))) == 10


def test_a_hook_changes_the_pipeline_of_a_data_set(tmp_path):
    """MMPretrain's own, which sets an attribute of the data set."""
    config = Config.fromfile(Path(__file__).parent / 'epochs.py')
    options = dict(num_workers=0, persistent_workers=False, collate_fn=dict(type='default_collate'))
    config.train_dataloader.update(options)
    config.train_dataloader.dataset.indices = 8
    steps = config.train_dataloader.dataset.pipeline
    flips = [steps[0], dict(type='RecordedStep'), steps[-1]]
    config.merge_from_dict(dict(work_dir=str(tmp_path), train_cfg=dict(max_epochs=2), val_cfg=None))
    config.val_dataloader = config.val_evaluator = None
    config.custom_hooks = [
        dict(type='mmpretrain.SwitchRecipeHook', schedule=[dict(action_epoch=2, train_pipeline=flips)])
    ]
    runner = build_runner(config)
    RecordedStep.samples = 0
    runner.train()
    assert RecordedStep.samples == 8
    assert [type(step).__name__ for step in runner.train_dataloader.dataset.dataset.pipeline][1] == 'RecordedStep'


@TRANSFORMS.register_module(force=True)
class RecordedStep(BaseTransform):
    """A step of a pipeline that counts its samples."""

    samples = 0

    def transform(self, results):
        RecordedStep.samples += 1
        return results
