"""The scale of the map that VT modules start on: estimated from a ResNet stage's weights, and changed.

It is not in the paper, which gives no initialisation; :class:`vt.models.VTResNet` says why the scale matters.

Letters: C channels.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn


@torch.no_grad()
def predict_rms(stage: Sequence[nn.Module]) -> float:
    """Estimate the root mean square of the output of a stage of residual blocks from its weights, without data.

    After a normalisation, the mean of each channel is its bias and the standard deviation its weight. The two branches
    of a block are assumed to be independent and their sum normally distributed, so the moments after ReLU have a closed
    form. They are propagated from block to block.

    Args:
        stage: MMPretrain's residual blocks; the first has a shortcut with a normalisation.

    Returns:
        The root mean square over channels and pixels.
    """
    mean, variance = _moments(_shortcut_norm(stage))
    for block in stage:
        branch_mean, branch_variance = _moments(_last_norm(block))
        mean, square = _rectify(mean + branch_mean, variance + branch_variance)
        variance = square - mean.square()
    return square.mean().sqrt().item()


@torch.no_grad()
def scale_output(stage: Sequence[Any], factor: float, readers: Iterable[Any] = ()) -> None:
    """Multiply the output of a stage by ``factor`` by changing its weights; nothing else of the network changes.

    ReLU commutes with a positive factor, so the factor is applied to the normalisations of the first shortcut and at
    the end of each block. Later blocks read the scaled map; their first normalisation undoes the factor, because its
    running mean, and its running variance plus epsilon, are scaled too. (Channels whose variance is about epsilon are
    undone only approximately.)

    Args:
        stage: as in :func:`predict_rms`.
        factor: positive.
        readers: normalisations after other convolutions that read the map; they undo the factor too.
    """
    for norm in (_shortcut_norm(stage), *map(_last_norm, stage)):
        norm.weight.mul_(factor)
        norm.bias.mul_(factor)
    for norm in (*(block.norm1 for block in list(stage)[1:]), *readers):
        if getattr(norm, 'running_var', None) is not None:
            norm.running_mean.mul_(factor)
            norm.running_var.add_(norm.eps).mul_(factor**2).sub_(norm.eps).clamp_(min=0)


def scale_stage(stage: Iterable[nn.Module], rms: float, readers: Iterable[nn.Module] = ()) -> None:
    """Rescale a stage's output to the root mean square ``rms`` by :func:`scale_output`."""
    blocks = list(stage)
    scale_output(blocks, rms / predict_rms(blocks), readers)


def _shortcut_norm(stage: Sequence[Any]) -> Any:
    return stage[0].downsample[-1]


def _last_norm(block: Any) -> Any:
    """The last normalisation of a block's residual branch: the third of a bottleneck, the second of a basic block."""
    return getattr(block, 'norm3', None) or block.norm2


def _moments(norm: Any) -> tuple[Tensor, Tensor]:
    """Mean and variance of each channel after a normalisation, ``(C,)`` each."""
    return norm.bias.double(), norm.weight.double().square()


def _rectify(mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean of ReLU(x) and of its square, for normally distributed x."""
    deviation = variance.sqrt().clamp(min=torch.finfo(variance.dtype).tiny)
    z = mean / deviation
    above = torch.special.ndtr(z)  # P(x > 0)
    density = (-z.square() / 2).exp() / math.sqrt(2 * math.pi)
    return mean * above + deviation * density, (mean.square() + variance) * above + mean * deviation * density
