"""The tokens of a model, by name."""

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike

import numpy as np
import torch
from mmengine.dataset import pseudo_collate
from mmengine.model import BaseModel
from torch import Tensor

from vt.errors import UserError
from vt.inference.inputs import Pictures
from vt.models import record_attention


@dataclass
class Tokens:
    """What the parts of a model that attend made of a batch, by their names in ``model.named_modules()``.

    Attributes:
        tokens: ``(N, L, C_T)``, of tokenizers, relations, and blocks of a transformer.
        maps: ``(N, C, H, W)``, of projectors.
        attention: where each part looked: of tokenizers and projectors ``(N, heads, L, H, W)``, of relations ``(N,
            heads, L, L)``.
    """

    tokens: dict[str, Tensor]
    maps: dict[str, Tensor]
    attention: dict[str, Tensor]


@torch.no_grad()
def extract_tokens(model: BaseModel, images: Tensor | Sequence[str | PathLike | np.ndarray]) -> Tokens:
    """Run a model once and keep what its parts made.

    Args:
        model: as :func:`vt.apis.get_model` makes it; it computes in evaluation mode, and keeps its own.
        images: as the network takes them, normalised, ``(N, 3, H, W)`` (of a video model ``(N, 3, T, H, W)``); or
            image files, or ``(height, width, 3)`` uint8 in OpenCV's order of channels, which go through the test
            pipeline.

    Raises:
        UserError: an image can't be read; no part of the model attends.
    """
    if not isinstance(images, Tensor):
        samples = [*map(Pictures(model.cfg), images)]
        images = model.data_preprocessor(pseudo_collate(samples), False)['inputs']
    training = model.training
    model.eval()
    try:
        with record_attention(model) as records:
            model(images.to(next(model.parameters()).device), mode='tensor')
    finally:
        model.train(training)
    if not records:
        raise UserError('no part of the model attends: it has no tokens')
    return Tokens(
        tokens={name: record.output for name, record in records.items() if record.output.ndim == 3},
        maps={name: record.output for name, record in records.items() if record.output.ndim == 4},
        attention={name: record.attention for name, record in records.items()},
    )
