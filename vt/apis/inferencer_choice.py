"""Which inferencer a model needs: of images, of videos or of segmentors."""

from os import PathLike
from typing import TYPE_CHECKING

import torch
from mmengine.model import BaseModel

from vt.engine.launch import is_segmentation

from .inferencers import ClassificationInferencer, VideoInferencer, given
from .model_zoo import Source

if TYPE_CHECKING:
    from .segmentation import SegmentationInferencer


def inferencer_of(
    model: Source | BaseModel,
    pretrained: str | PathLike | bool | None = True,
    device: str | torch.device | None = None,
) -> 'ClassificationInferencer | SegmentationInferencer':
    """The inferencer that a model needs; arguments as of :class:`ClassificationInferencer`."""
    cfg, _ = given(model, None)
    if is_segmentation(cfg):
        from .segmentation import SegmentationInferencer  # it imports MMSegmentation

        return SegmentationInferencer(model, pretrained, device)
    kind = VideoInferencer if 'num_frames' in cfg.model.backbone and cfg.model.backbone.num_frames else None
    return (kind or ClassificationInferencer)(model, pretrained, device)
