"""Random numbers that depend only on the seed and the position in a run, so that resuming reproduces them.

A training step is seeded by (seed, iteration, rank), the augmentation of a sample by (seed, epoch, position in the
epoch). No state has to be saved, and augmentation does not depend on the number of workers or processes. The generators
are ``random``, ``numpy.random`` and PyTorch's default generators.
"""

import random
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import torch
from mmengine.dist import get_dist_info
from mmengine.hooks import Hook
from mmengine.registry import DATA_SAMPLERS as ALL_SAMPLERS
from mmengine.registry import DATASETS as ALL_DATASETS
from mmengine.runner import Runner
from torch.utils.data import Dataset, Sampler

from vt.engine.errors import files_of, naming_sample
from vt.image_bounds import check_image_size
from vt.registry import DATA_SAMPLERS, DATASETS, HOOKS

STEP, SAMPLE = 0, 1  # keys of two independent streams


def seed_random(*key: int) -> None:
    """Seed all generators of this process by a key of non-negative integers."""
    for_python, for_torch, *for_numpy = np.random.SeedSequence(key).generate_state(6, np.uint64).tolist()
    random.seed(for_python)
    np.random.seed([part & 0xFFFFFFFF for part in for_numpy])
    # torch.manual_seed would also queue a seed for GPUs that are not initialised, which is slow.
    torch.default_generator.manual_seed(for_torch)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed(for_torch)


class SampleIndex(int):
    """Index of a sample, with the key of its random numbers: seed, epoch, position among those of all processes."""

    key: tuple[int, int, int]


@DATA_SAMPLERS.register_module()
class NumberedSampler(Sampler):
    """Wrapper around a sampler that yields :class:`SampleIndex`.

    Args:
        sampler: config of the sampler.
        sample_seed: seed of the run.
        **kwargs: further arguments of the sampler, such as ``dataset`` and ``seed``.

    Attributes:
        begin: number of indices that the next pass skips, after an interruption.
    """

    def __init__(self, sampler: dict, sample_seed: int, **kwargs) -> None:
        self.sampler = ALL_SAMPLERS.build(sampler, default_args=kwargs)
        self.sample_seed = sample_seed
        self.rank, self.world_size = get_dist_info()
        self.begin = 0
        if hasattr(self.sampler, 'skip'):  # mmengine calls it to resume an infinite sampler
            self.skip = partial(setattr, self, 'begin')

    def __iter__(self) -> Iterator[SampleIndex]:
        begin, self.begin = self.begin, 0
        epoch = getattr(self.sampler, 'epoch', 0)
        for number, index in enumerate(islice(self.sampler, begin, None), start=begin):
            numbered = SampleIndex(index)
            numbered.key = self.sample_seed, epoch, number * self.world_size + self.rank
            yield numbered

    def __len__(self) -> int:
        return len(self.sampler)

    def __getattr__(self, name: str) -> Any:
        if name == 'sampler':  # not set yet during a copy
            raise AttributeError(name)
        return getattr(self.sampler, name)


@DATASETS.register_module()
class SeededDataset(Dataset):
    """Wrapper around a data set that seeds the augmentation of each sample and names the file in errors.

    All other attributes are read from and set on the data set, so hooks can replace its pipeline.

    Args:
        dataset: config of the data set.
    """

    def __init__(self, dataset: dict) -> None:
        self.__dict__['dataset'] = ALL_DATASETS.build(dataset)

    def __getitem__(self, index: int) -> Any:
        if isinstance(index, SampleIndex):
            seed, epoch, position = index.key
            seed_random(seed, SAMPLE, epoch, position)
        with naming_sample(self.dataset, int(index)):
            for file in files_of(self.dataset, int(index)):
                check_image_size(file)
            return self.dataset[int(index)]

    def __getitems__(self, indices: list[int]) -> list:
        """The samples of a batch; a data set with ``read_ahead`` may fetch them at once before."""
        if hasattr(self.dataset, 'read_ahead'):
            self.dataset.read_ahead(indices)
        return [self[index] for index in indices]

    def __len__(self) -> int:
        return len(self.dataset)

    def __getattr__(self, name: str) -> Any:
        if name == 'dataset':  # not set yet during a copy
            raise AttributeError(name)
        return getattr(self.dataset, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.dataset, name, value)


def seeded_loader(loader: dict, seed: int | None) -> dict:
    """Return the config of a dataloader whose samples depend only on the seed and their position."""
    if seed is None or not isinstance(loader.get('dataset'), dict) or not isinstance(loader.get('sampler'), dict):
        return loader
    return {
        **loader,
        'dataset': dict(type='vt.SeededDataset', dataset=loader['dataset']),
        'sampler': dict(type='vt.NumberedSampler', sampler=loader['sampler'], sample_seed=seed),
    }


@HOOKS.register_module()
class SeedHook(Hook):
    """Seed each training step by iteration and rank, for dropout, stochastic depth, Mixup and CutMix."""

    priority = 'VERY_HIGH'

    def before_train_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None) -> None:
        seed_random(runner.seed, STEP, runner.iter, runner.rank)
