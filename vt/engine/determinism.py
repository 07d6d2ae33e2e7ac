"""Random numbers that depend only on the seed and the position in a run, so that resuming reproduces them.

A training step is seeded by (seed, iteration, rank), the augmentation of a sample by (seed, epoch, position in the
epoch). No state has to be saved, and augmentation does not depend on the number of workers or processes. The generators
are those of ``random``, ``numpy.random``, OpenCV and PyTorch, and those that transforms hold, such as albumentations'.
"""

import gc
import random
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from types import FunctionType, ModuleType
from typing import Any

import cv2
import numpy as np
import torch
from mmengine.dist import get_dist_info
from mmengine.hooks import Hook
from mmengine.registry import DATA_SAMPLERS as ALL_SAMPLERS
from mmengine.registry import DATASETS as ALL_DATASETS
from mmengine.runner import Runner
from torch.utils.data import Dataset, Sampler

from vt.engine.reporting import files_of, naming_sample
from vt.image_bounds import check_image_size
from vt.registry import DATA_SAMPLERS, DATASETS, HOOKS

STEP, SAMPLE = 0, 1  # keys of two independent streams
GENERATORS = (random.Random, np.random.Generator, np.random.RandomState, torch.Generator)
OF_LIBRARIES = [random.seed.__self__, np.random.rand.__self__, torch.default_generator]
WITHOUT = (str, bytes, int, float, type, ModuleType, np.ndarray, torch.Tensor)  # these hold no generators
MOST_ITEMS = 1000  # of a container that may hold transforms; larger ones hold data


def seed_random(*key: int, own: Sequence[Any] = ()) -> None:
    """Seed the libraries' generators of this process, and ``own`` ones, by a key of non-negative integers."""
    seeds = np.random.SeedSequence(key).generate_state(6 + len(own), np.uint64).tolist()
    for_python, for_torch, *for_numpy = seeds[:6]
    random.seed(for_python)
    cv2.setRNGSeed(for_torch & 0x7FFFFFFF)
    np.random.seed([part & 0xFFFFFFFF for part in for_numpy])
    # torch.manual_seed would also queue a seed for GPUs that are not initialised, which is slow.
    torch.default_generator.manual_seed(for_torch)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed(for_torch)

    for generator, seed in zip(own, seeds[6:]):
        match generator:
            case np.random.Generator():
                bits = generator.bit_generator
                bits.state = type(bits)(seed).state
            case np.random.RandomState():
                generator.seed([seed & 0xFFFFFFFF, seed >> 32])
            case torch.Generator():
                generator.manual_seed(seed)
            case _:
                generator.seed(seed)


def find_generators(holder: Any) -> list[Any]:
    """Find the random number generators stored in an object, without those of libraries, in a fixed order.

    They are in attributes, containers, closures and default values, in classes, and in the modules of these.
    """
    found: list[Any] = []
    seen: dict[int, Any] = {id(generator): generator for generator in OF_LIBRARIES}
    waiting = [holder]
    while waiting:
        item = waiting.pop()
        kind = type(item)
        if id(item) in seen or issubclass(kind, WITHOUT):
            continue
        seen[id(item)] = item
        if issubclass(kind, GENERATORS):
            found.append(item)
        elif kind is FunctionType:
            waiting += [item.__closure__, item.__defaults__, item.__kwdefaults__, *_global_ones(item)]
        elif not (issubclass(kind, (list, tuple, dict, set)) and len(item) > MOST_ITEMS):
            waiting += gc.get_referents(item)
            if id(kind) not in seen:
                waiting += [each for owner in kind.__mro__ for each in _global_ones(owner)]
                seen[id(kind)] = kind
    return found


def _global_ones(item: type | FunctionType) -> list[Any]:
    """Return the generators in a class, and those in the module of a class or function."""
    names = (vars(item), vars(sys.modules.get(item.__module__, item)))
    return [value for part in names for value in part.values() if isinstance(value, GENERATORS)]


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
        self.__dict__.update(dataset=ALL_DATASETS.build(dataset), _found=(None, []))

    def __getitem__(self, index: int) -> Any:
        if isinstance(index, SampleIndex):
            seed, epoch, position = index.key
            if self._found[0] != epoch:  # hooks may have changed the transforms
                self.__dict__['_found'] = epoch, find_generators(self.dataset)
            seed_random(seed, SAMPLE, epoch, position, own=self._found[1])
        with naming_sample(self.dataset, int(index)):
            for file in files_of(self.dataset, int(index)):
                check_image_size(file)
            return self.dataset[int(index)]

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
