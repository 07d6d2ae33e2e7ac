"""The parts of a config: its model, its data sets inside wrappers, the steps of a pipeline."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from mmengine.config import Config

LOADERS = ('train_dataloader', 'val_dataloader', 'test_dataloader')


def model_of(cfg: Config) -> dict:
    """Return the config of the model, without a wrapper for test-time augmentation."""
    model = cfg.get('model') or {}
    return model.get('module') or model


def datasets_of(cfg: Config) -> list[dict]:
    """Return the data sets of all loaders, inside wrappers."""
    loaders = [cfg.get(name) for name in LOADERS]
    return [leaf for loader in loaders if isinstance(loader, dict) for leaf in leaves(loader.get('dataset'))]


def leaves(dataset: Any) -> list[dict]:
    """Return the data sets inside wrappers such as ``RepeatDataset`` and ``ConcatDataset``."""
    if not isinstance(dataset, dict):
        return []
    inner = dataset.get('datasets') or ([dataset['dataset']] if 'dataset' in dataset else [])
    return [leaf for part in inner for leaf in leaves(part)] if inner else [dataset]


def find_wrapper(dataset: Any, kinds: str | tuple[str, ...]) -> dict | None:
    """Return the outermost wrapper of a data set whose type is of these kinds; None without."""
    while isinstance(dataset, dict) and not str(dataset.get('type')).endswith(kinds):
        dataset = dataset.get('dataset')
    return dataset if isinstance(dataset, dict) else None


def steps_in(pipeline: Any) -> Iterator[dict]:
    """Yield the steps of a pipeline, and after each step those nested in it, as in test-time augmentation."""
    for step in pipeline if isinstance(pipeline, (list, tuple)) else ():
        if isinstance(step, dict):
            yield step
        yield from steps_in(step.get('transforms') if isinstance(step, dict) else step)


def flatten(value: Any, key: str = '') -> Iterator[tuple[str, Any]]:
    """Yield the dotted keys of all settings in the plain data of a config, and their values."""
    is_list = isinstance(value, list) and any(isinstance(item, dict) for item in value)
    if not (is_list or isinstance(value, dict)):
        yield key, value
        return
    for name, item in enumerate(value) if is_list else value.items():
        yield from flatten(item, f'{key}.{name}' if key else str(name))


def shorten_keys(keys: Iterable[str], known: Iterable[str] = ()) -> dict[str, str]:
    """Shorten dotted keys to their shortest ends that no other of them, and of the ``known`` ones, has."""

    def ends(key: str) -> list[str]:
        parts = key.split('.')
        return ['.'.join(parts[start:]) for start in range(len(parts) - 1, -1, -1) if not parts[start].isdecimal()]

    counts = Counter(end for key in {*keys, *known} for end in ends(key))
    return {key: next((end for end in ends(key) if counts[end] == 1), key) for key in keys}
