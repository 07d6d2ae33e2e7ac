"""The parts of a config: its model, its data sets inside wrappers, the steps of a pipeline, the preprocessing."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from mmengine.config import Config

from vt.errors import UserError

AUTO = 'auto'  # ``num_classes`` of the data
LOADERS = ('train_dataloader', 'val_dataloader', 'test_dataloader')
# Steps that assume values up to 255, without an error for others.
EIGHT_BIT_STEPS = (
    *('AdjustGamma', 'AutoAugment', 'Brightness', 'CLAHE', 'ColorJitter', 'ColorTransform', 'Invert'),
    *('PhotoMetricDistortion', 'RandAugment', 'RandomGrayscale', 'Sharpness', 'Solarize', 'SolarizeAdd'),
)
MASK_STEPS = ('LoadAnnotations', 'LoadColourMasks', 'LoadCocoMasks')  # steps that load a mask
TURNS = ('to_rgb', 'bgr_to_rgb', 'rgb_to_bgr')


def model_of(cfg: Config) -> dict:
    """Return the config of the model, without a wrapper for test-time augmentation."""
    model = cfg.get('model') or {}
    return model.get('module') or model


def drop_pretrained(cfg: Config) -> None:
    """Remove the weights that the config of a backbone begins with, in place."""
    backbone = model_of(cfg).get('backbone') or {}
    if (backbone.get('init_cfg') or {}).get('type') == 'Pretrained':
        backbone['init_cfg'] = None


def is_segmentation(cfg: Config) -> bool:
    """Return whether the model of a config predicts segmentation maps."""
    return 'decode_head' in model_of(cfg)


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


def is_mask_step(step: dict) -> bool:
    """Return whether a step of a pipeline loads a mask."""
    return any(name in str(step.get('type')) for name in MASK_STEPS)


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


@dataclass(frozen=True)
class Preparation:
    """How images are preprocessed for a network.

    Attributes:
        steps: steps of the test pipeline, without those that load labels.
        mean, std: mean and standard deviation of each channel, for pixels from 0 to 255; empty without normalisation.
        channels: number of channels of the network's input; None if it is unknown.
        is_bgr: whether the pipeline gives BGR, OpenCV's order of channels.
        turn: setting of the preprocessor that exchanges BGR and RGB; None if it keeps the order.
        classes: class names, if published weights have them.
        dataset: config of the test set, without wrappers.
        scope: library of types without a prefix.
        shape: shape of the network's inputs, ``(C, H, W)`` or ``(C, T, H, W)``, if the config gives it.
    """

    steps: tuple[dict, ...]
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    channels: int | None = 3
    is_bgr: bool = False
    turn: str | None = None
    classes: tuple[str, ...] = ()
    dataset: dict[str, Any] = field(default_factory=dict)
    scope: str = 'mmpretrain'
    shape: tuple[int, ...] = ()

    @property
    def takes_bgr(self) -> bool:
        """Whether the network takes BGR."""
        return self.is_bgr and self.channels in (3, None) and self.turn is None


def preparation_of(cfg: Config) -> Preparation:
    """Read the preprocessing of images from the test pipeline, the preprocessor and the backbone of a config.

    Images from files are BGR. Images in memory are BGR in segmentation, and if the preprocessor converts them to RGB.
    """
    model, loader = model_of(cfg), cfg.get('test_dataloader') or {}
    preprocessor = model.get('data_preprocessor') or cfg.get('data_preprocessor') or {}
    dataset = next(iter(leaves(loader.get('dataset'))), {})
    from_files = any(step in str(loader) for step in ('LoadImageFromFile', 'LoadClips'))
    backbone = model.get('backbone')
    while isinstance(backbone, dict) and isinstance(backbone.get('backbone'), dict):  # as in vt.VTBackbone
        backbone = backbone['backbone']
    channels = backbone.get('in_channels', 3) if isinstance(backbone, dict) else None
    size = preprocessor.get('size')  # of a segmentor's training
    return Preparation(
        steps=tuple(step for step in dataset.get('pipeline') or () if not is_mask_step(step)),
        mean=_per_channel(preprocessor.get('mean')),
        std=_per_channel(preprocessor.get('std')),
        channels=channels,
        is_bgr=from_files or 'decode_head' in model or bool(preprocessor.get('to_rgb')),
        turn=next((name for name in TURNS if preprocessor.get(name)), None),
        dataset=dataset,
        scope=cfg.get('default_scope') or 'mmpretrain',
        shape=tuple(cfg.get('input_shape') or ((channels or 3, *size) if size else ())),  # the first of a saved model
    )


def _per_channel(value: Any) -> tuple:
    """Return a setting of one number, or one per channel, as a tuple."""
    return () if value is None else tuple(np.ravel(value).tolist())


def check_image_channels(cfg: Config) -> None:
    """Raise a UserError if images of ``vt.LoadBands`` get swapped channels, or a step that assumes 8-bit values."""
    turn = preparation_of(cfg).turn
    for name in LOADERS:
        for dataset in leaves((cfg.get(name) or {}).get('dataset')):
            kinds = [str(step.get('type')).split('.')[-1] for step in steps_in(dataset.get('pipeline'))]
            if 'LoadBands' not in kinds:
                continue
            if turn:
                raise UserError(f"vt.LoadBands keeps a file's order of channels: set data_preprocessor.{turn}=False")
            if wrong := next((kind for kind in kinds if kind in EIGHT_BIT_STEPS), None):
                raise UserError(f'{name}.dataset.pipeline: {wrong} needs 8-bit RGB images: remove it')
