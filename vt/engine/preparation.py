"""How images come to a network: what a config says, read once; silent faults of images that are not 8-bit RGB."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from mmengine.config import Config

from vt.errors import UserError

from .config_parts import LOADERS, leaves, model_of, steps_in

# Steps that assume values up to 255, without an error for others.
EIGHT_BIT = (
    *('AdjustGamma', 'AutoAugment', 'Brightness', 'CLAHE', 'ColorJitter', 'ColorTransform', 'Invert'),
    *('PhotoMetricDistortion', 'RandAugment', 'RandomGrayscale', 'Sharpness', 'Solarize', 'SolarizeAdd'),
)
TURNS = ('to_rgb', 'bgr_to_rgb', 'rgb_to_bgr')


@dataclass(frozen=True)
class Preparation:
    """How images come to a network.

    Attributes:
        steps: steps of the test pipeline, without those that load labels.
        mean, std: mean and standard deviation of each channel, for pixels from 0 to 255; empty without normalisation.
        channels: number of channels of the network's input; None if it is unknown.
        is_bgr: whether the pipeline gives BGR, OpenCV's order of channels.
        turn: setting of the preprocessor that exchanges BGR and RGB; None if it keeps the order.
        classes: class names, if published weights have them.
    """

    steps: tuple[dict, ...]
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    channels: int | None = 3
    is_bgr: bool = False
    turn: str | None = None
    classes: tuple[str, ...] = ()

    @property
    def takes_bgr(self) -> bool:
        """Whether the network takes BGR."""
        return self.is_bgr and self.channels in (3, None) and self.turn is None


def preparation_of(cfg: Config) -> Preparation:
    """Read the preparation of images from the test pipeline, the preprocessor and the backbone of a config.

    Images from files are BGR. Images in memory are BGR in segmentation, and if the preprocessor converts them to RGB.
    """
    model, loader = model_of(cfg), cfg.get('test_dataloader') or {}
    preprocessor = model.get('data_preprocessor') or cfg.get('data_preprocessor') or {}
    pipeline = next(iter(leaves(loader.get('dataset'))), {}).get('pipeline') or ()
    from_files = any(step in str(loader) for step in ('LoadImageFromFile', 'LoadClips'))
    backbone = model.get('backbone')
    while isinstance(backbone, dict) and isinstance(backbone.get('backbone'), dict):  # as in vt.VTBackbone
        backbone = backbone['backbone']
    return Preparation(
        steps=tuple(step for step in pipeline if 'LoadAnnotations' not in str(step.get('type'))),
        mean=_per_channel(preprocessor.get('mean')),
        std=_per_channel(preprocessor.get('std')),
        channels=backbone.get('in_channels', 3) if isinstance(backbone, dict) else None,
        is_bgr=from_files or 'decode_head' in model or bool(preprocessor.get('to_rgb')),
        turn=next((name for name in TURNS if preprocessor.get(name)), None),
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
            if wrong := next((kind for kind in kinds if kind in EIGHT_BIT), None):
                raise UserError(f'{name}.dataset.pipeline: {wrong} needs 8-bit RGB images: remove it')
