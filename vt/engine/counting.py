"""Multiply-adds and parameters, with matrix products and attention counted.

Counters get two things wrong for transformers: they skip fused attention and kernels of one's own, and some count an
addition and a multiplication as two. Here attention runs as plain matrix products while it is counted, and a
multiply-add is one FLOP, as in the paper's tables.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.data import Dataset
from torch.utils.flop_counter import FlopCounterMode

from vt.ops import use_path
from vt.ops.token_products import choose_token_library, token_library


@dataclass
class Complexity:
    """The cost of one forward pass.

    Attributes:
        flops: multiply-adds of convolutions, linear layers, matrix products and attention.
        parameters: number of parameters, trained or not.
    """

    flops: int
    parameters: int


@torch.no_grad()
def _count(model: nn.Module, *inputs, **options) -> FlopCounterMode:
    """Run the model once, in evaluation mode, without fused kernels, which counters can't see into."""
    training, fastpath, library = model.training, torch.backends.mha.get_fastpath_enabled(), token_library()
    torch.backends.mha.set_fastpath_enabled(False)
    choose_token_library('blas')
    model.eval()
    try:
        with sdpa_kernel(SDPBackend.MATH), use_path('plain'), FlopCounterMode(display=False) as counter:
            model(*inputs, **options)
    finally:
        model.train(training)
        torch.backends.mha.set_fastpath_enabled(fastpath)
        choose_token_library(library)
    return counter


def count_complexity(model: nn.Module, *inputs, **options) -> Complexity:
    """Count the FLOPs of ``model(*inputs, **options)`` and the parameters of ``model``.

    The model runs once, in evaluation mode, and is left in the mode it was in.
    """
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return Complexity(_count(model, *inputs, **options).get_total_flops() // 2, parameters)


def count_by_module(model: nn.Module, *inputs, **options) -> dict[str, int]:
    """FLOPs of each module inside ``model``, by its name in ``model.named_modules()``; arguments as above."""
    root = f'{type(model).__name__}.'
    counts = _count(model, *inputs, **options).get_flop_counts()
    return {
        name.removeprefix(root): sum(by_operator.values()) // 2
        for name, by_operator in counts.items()
        if name.startswith(root)
    }


def one_input(dataset: Dataset) -> Tensor:
    """What a model is given of a data set's first sample: an image ``(C, H, W)``, or one clip ``(C, T, H, W)``.

    Test-time augmentation gives a list of views, a video several clips in one tensor: it is the first of them.
    """
    inputs = dataset[0]['inputs']
    inputs = inputs[0] if isinstance(inputs, list) else inputs
    return inputs[0] if inputs.ndim == 5 else inputs


def has_neck(model: nn.Module) -> bool:
    """Whether a model has a neck worth measuring: one with parameters."""
    neck = getattr(model, 'neck', None)
    return neck is not None and any(True for _ in neck.parameters())


@torch.no_grad()
def neck_inputs(model: nn.Module, images: Tensor) -> tuple[Tensor, ...]:
    """The maps that the backbone gives to the neck for ``images``, in evaluation mode."""
    model.eval()
    return tuple(model.backbone(images))
