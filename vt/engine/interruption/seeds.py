"""Random numbers as a function of where a run stands, so that a resumed run draws those of an uninterrupted one.

A step of training draws by (seed, iteration, rank), a sample's augmentation by (seed, epoch, position in the epoch's
order). Nothing has to be saved, no worker remembers anything, and augmentation does not depend on the number of workers
or of processes. It covers ``random``, ``numpy.random`` and PyTorch's default generators.
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

STEP, SAMPLE = 0, 1  # two streams of random numbers


def seed_random(*key: int) -> None:
    """Seed every generator of this process by a key of integers, each at least 0."""
    for_python, for_torch, *for_numpy = np.random.SeedSequence(key).generate_state(6, np.uint64).tolist()
    random.seed(for_python)
    np.random.seed([part & 0xFFFFFFFF for part in for_numpy])
    # torch.manual_seed would also queue a seed for GPUs that this process has not touched, which takes long.
    torch.default_generator.manual_seed(for_torch)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed(for_torch)


class SampleIndex(int):
    """An index of a data set that knows what its sample is drawn by: seed, epoch, position among all processes'."""

    key: tuple[int, int, int]


@DATA_SAMPLERS.register_module()
class NumberedSampler(Sampler):
    """A sampler whose indices know their position.

    Args:
        sampler: config of the sampler.
        sample_seed: of the run.
        **kwargs: further arguments of the sampler, such as ``dataset`` and ``seed``.

    Attributes:
        begin: how many indices the next pass leaves out, after an interruption.
    """

    def __init__(self, sampler: dict, sample_seed: int, **kwargs) -> None:
        self.sampler = ALL_SAMPLERS.build(sampler, default_args=kwargs)
        self.sample_seed = sample_seed
        self.rank, self.world_size = get_dist_info()
        self.begin = 0
        if hasattr(self.sampler, 'skip'):  # what mmengine calls to go on in the middle of an endless one
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
        if name == 'sampler':  # not there yet while a copy is made
            raise AttributeError(name)
        return getattr(self.sampler, name)


@DATASETS.register_module()
class SeededDataset(Dataset):
    """A data set that loads and augments a sample with random numbers of its position, and names the file of an error.

    Everything else of it is the data set's own, to be read and to be set: hooks may give it another pipeline.

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
        if name == 'dataset':  # not there yet while a copy is made
            raise AttributeError(name)
        return getattr(self.dataset, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.dataset, name, value)


def seeded_loader(loader: dict, seed: int | None) -> dict:
    """A dataloader's config whose samples are functions of seed and position."""
    if seed is None or not isinstance(loader.get('dataset'), dict) or not isinstance(loader.get('sampler'), dict):
        return loader
    return {
        **loader,
        'dataset': dict(type='vt.SeededDataset', dataset=loader['dataset']),
        'sampler': dict(type='vt.NumberedSampler', sampler=loader['sampler'], sample_seed=seed),
    }


@HOOKS.register_module()
class SeedHook(Hook):
    """Seed every step of training by its iteration and process: dropout, stochastic depth, Mixup and CutMix."""

    priority = 'VERY_HIGH'

    def before_train_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None) -> None:
        seed_random(runner.seed, STEP, runner.iter, runner.rank)
