"""Count FLOPs and parameters of a model, including matrix products and attention.

A multiply-add is one FLOP, as in the paper's tables. Attention runs as plain matrix products while it is counted,
because counters skip fused attention and custom kernels.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.data import Dataset
from torch.utils.flop_counter import FlopCounterMode

from vt.ops import use_path


@dataclass
class Complexity:
    """Cost of one forward pass.

    Attributes:
        flops: multiply-adds of convolutions, linear layers, matrix products and attention.
        parameters: number of parameters, trainable or not.
    """

    flops: int
    parameters: int


@torch.no_grad()
def count_complexity(model: nn.Module, *inputs, **options) -> Complexity:
    """Count the FLOPs of ``model(*inputs, **options)`` and the parameters of ``model``.

    The model runs once in evaluation mode, without fused kernels, which counters skip; its mode is restored.
    """
    training, fastpath = model.training, torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    model.eval()
    try:
        with sdpa_kernel(SDPBackend.MATH), use_path('plain'), FlopCounterMode(display=False) as counter:
            model(*inputs, **options)
    finally:
        model.train(training)
        torch.backends.mha.set_fastpath_enabled(fastpath)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return Complexity(counter.get_total_flops() // 2, parameters)


def one_input(dataset: Dataset) -> Tensor:
    """Return the model's input for the first sample of a data set: an image ``(C, H, W)`` or a clip ``(C, T, H, W)``.

    Of several views (test-time augmentation) or several clips of a video it is the first.
    """
    inputs = dataset[0]['inputs']
    inputs = inputs[0] if isinstance(inputs, list) else inputs
    return inputs[0] if inputs.ndim == 5 else inputs
