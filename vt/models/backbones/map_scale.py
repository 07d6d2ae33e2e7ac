"""How large the map of a ResNet's stage is, read off its normalisations; and another size that changes nothing else."""

import math
from collections.abc import Iterable, Sequence

import torch
from mmengine.logging import print_log
from torch import Tensor, nn


@torch.no_grad()
def predict_rms(stage: Sequence[nn.Module]) -> float:
    """Root mean square of what a stage of residual blocks puts out, estimated from its weights alone.

    A normalisation leaves each channel the mean and the standard deviation that its bias and its weight say, whatever
    comes in. The two paths of a block are taken as independent and their sum as normally distributed, ReLU's moments of
    which are known in closed form; so the moments pass from block to block.

    Args:
        stage: MMPretrain's residual blocks, the first with a normalised shortcut.
    """
    mean, variance = _moments(_shortcut_norm(stage))
    for block in stage:
        branch_mean, branch_variance = _moments(_last_norm(block))
        mean, square = _rectify(mean + branch_mean, variance + branch_variance)
        variance = square - mean.square()
    return square.mean().sqrt().item()


@torch.no_grad()
def scale_output(stage: Sequence[nn.Module], factor: float, readers: Iterable[nn.Module] = ()) -> None:
    """Make a stage put out ``factor`` times its map, and change nothing else in what it computes.

    ReLU lets a factor pass, so it goes to all that is added up: the first shortcut and the end of each block. Blocks
    after the first read the scaled map, which their first normalisation takes out again: its running mean is scaled
    with its input, and its running variance so that variance and epsilon are, together. (A channel whose variance is
    as small as epsilon can't be scaled down so, and is left a little smaller.)

    Args:
        stage: as in :func:`predict_rms`.
        factor: above zero.
        readers: normalisations behind the convolutions that read the map elsewhere, which take the factor out as well.
    """
    for norm in (_shortcut_norm(stage), *map(_last_norm, stage)):
        norm.weight.mul_(factor)
        norm.bias.mul_(factor)
    for norm in (*(block.norm1 for block in list(stage)[1:]), *readers):
        if getattr(norm, 'running_var', None) is not None:
            norm.running_mean.mul_(factor)
            norm.running_var.add_(norm.eps).mul_(factor**2).sub_(norm.eps).clamp_(min=0)


def scale_stage(name: str, stage: Iterable[nn.Module], rms: float, readers: Iterable[nn.Module] = ()) -> None:
    """Give a stage's map a root mean square, see :func:`scale_output`, and say so in the log."""
    blocks = list(stage)
    found = predict_rms(blocks)
    scale_output(blocks, rms / found, readers)
    print_log(f'{name}: its map is scaled from {found:.2f} to {rms:.2f} (root mean square)', 'current')


def _shortcut_norm(stage: Sequence[nn.Module]) -> nn.Module:
    return stage[0].downsample[-1]


def _last_norm(block: nn.Module) -> nn.Module:
    """The normalisation that ends a block's branch: a bottleneck's third, a basic block's second."""
    return getattr(block, 'norm3', None) or block.norm2


def _moments(norm: nn.Module) -> tuple[Tensor, Tensor]:
    """Mean and variance of each channel, ``(C,)``, as a normalisation leaves it."""
    return norm.bias.double(), norm.weight.double().square()


def _rectify(mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
    """Mean of ReLU(x) and of its square, for normally distributed x."""
    deviation = variance.sqrt().clamp(min=torch.finfo(variance.dtype).tiny)
    z = mean / deviation
    above = torch.special.ndtr(z)  # the share of x above zero
    density = (-z.square() / 2).exp() / math.sqrt(2 * math.pi)
    return mean * above + deviation * density, (mean.square() + variance) * above + mean * deviation * density
