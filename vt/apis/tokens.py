"""Tokens and attention of a model, by the names of its parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
import torch
from mmengine.dataset import pseudo_collate
from mmengine.model import BaseModel
from torch import Tensor

from vt.errors import UserError
from vt.inference.inputs import Samples
from vt.models import record_attention


@dataclass
class Tokens:
    """Outputs and attention of a model's parts for a batch, by their names in ``model.named_modules()``.

    Attributes:
        tokens: ``(N, L, C_T)``, outputs of tokenizers, relations, and blocks of a transformer.
        maps: ``(N, C, H, W)``, outputs of projectors.
        attention: ``(N, heads, L, H, W)`` of tokenizers and projectors, ``(N, heads, L, L)`` of relations.
    """

    tokens: dict[str, Tensor]
    maps: dict[str, Tensor]
    attention: dict[str, Tensor]


@torch.no_grad()
def extract_tokens(model: BaseModel, images: Tensor | Sequence[str | PathLike | np.ndarray]) -> Tokens:
    """Run a model once, in evaluation mode, and return the tokens, maps and attention of its parts.

    Args:
        model: a model of :func:`vt.apis.get_model`.
        images: normalised images ``(N, 3, H, W)``, or ``(N, 3, T, H, W)`` for a video model; or a list of image files
            or arrays ``(height, width, 3)`` of uint8 in OpenCV's channel order, which go through the test pipeline.

    Returns:
        The tokens, maps and attention.

    Raises:
        UserError: an image cannot be read; no part of the model has attention.
    """
    images = _as_batch(model, images)
    training = model.training
    model.eval()
    try:
        with record_attention(model) as records:
            model(images.to(next(model.parameters()).device), mode='tensor')
    finally:
        model.train(training)
    if not records:
        raise UserError('the model has no module with attention, so there are no tokens')
    return Tokens(
        tokens={name: record.output for name, record in records.items() if record.output.ndim == 3},
        maps={name: record.output for name, record in records.items() if record.output.ndim == 4},
        attention={name: record.attention for name, record in records.items()},
    )


def _as_batch(model: BaseModel, images: Any) -> Tensor:
    """Return images as inputs of the network; a UserError for a single image or an image that cannot be read."""
    if isinstance(images, (str, PathLike)) or (isinstance(images, np.ndarray) and images.ndim < 4):
        raise UserError('images is a single image: pass a list of images')
    if not isinstance(images, Tensor):
        samples = [*map(Samples(model.cfg), images)]
        if not samples:
            raise UserError('images is empty')
        return model.data_preprocessor(pseudo_collate(samples), False)['inputs']
    return images
