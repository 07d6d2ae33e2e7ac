"""The parts of a config: its model, its data sets inside wrappers, the steps of a pipeline."""

from collections.abc import Iterator
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


def steps_in(pipeline: Any) -> Iterator[dict]:
    """Yield the steps of a pipeline, and after each step those nested in it, as in test-time augmentation."""
    for step in pipeline if isinstance(pipeline, (list, tuple)) else ():
        if isinstance(step, dict):
            yield step
        yield from steps_in(step.get('transforms') if isinstance(step, dict) else step)
