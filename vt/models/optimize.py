"""Choose the implementations of a model's operations: see :func:`optimize_for`."""

import sys
from collections.abc import Callable
from typing import Any

import torch
from mmengine.model import BaseDataPreprocessor
from torch import Tensor, nn

from vt.ops.token_products import choose_token_library, multiply

from .visual_transformers.grouped_linear import GroupedLinear

VT_FPN = 'vt.models.visual_transformers.vt_fpn'


def optimize_for(
    model: nn.Module,
    device: torch.device | str | None = None,
    channels_last: bool = True,
    token_products: str = 'auto',
    is_sharded: bool = False,
) -> nn.Module:
    """Choose the fastest implementations for a model on a device, in place, for training and inference.

    Names, shapes and values of weights do not change, and results only by rounding:

    - 4-D weights and images are in channels_last, see :func:`to_channels_last`.
    - On a CPU the faster library computes linear layers and token-side matrices, see :func:`choose_products`.
    - VT-FPN computes its levels at once, if their parts are alike, see
      :class:`vt.models.visual_transformers.fused_levels.FusedVTFPN`.
    - A classifier's logits of mixed precision are float32 before its softmax in evaluation.

    Another call chooses again, for another device or a changed model. Call it before wrapping the model for DDP, whose
    buckets take over the strides of the weights.

    Args:
        model: any module.
        device: device on which the model will run; None for the one on which it is.
        channels_last: whether to use channels_last.
        token_products: as in :func:`vt.ops.token_products.choose_token_library`.
        is_sharded: whether FSDP2 will shard the weights: it requires contiguous ones.

    Returns:
        The model.

    Raises:
        UserError: an unknown library.
    """
    device = torch.device(device or next((each.device for each in model.parameters()), 'cpu'))
    head = getattr(model, 'head', None)
    if isinstance(head, nn.Module):
        _hook_once(head, _logits_to_float32)
    if channels_last:
        to_channels_last(model, weights=not is_sharded)
    choose_products(model, choose_token_library(token_products if device.type == 'cpu' else 'blas'))
    if VT_FPN in sys.modules:  # it needs MMSegmentation, whose import takes seconds
        from .visual_transformers.fused_levels import fuse_levels

        fuse_levels(model)
    return model


def _hook_once(part: nn.Module, hook: Callable) -> None:
    """Register a forward hook, unless an earlier call did."""
    hooks = vars(part).setdefault('optimizing_hooks', [])
    if hook not in hooks:
        hooks.append(hook)
        part.register_forward_hook(hook)


def _logits_to_float32(head: nn.Module, args: tuple, logits: Any) -> Any:
    """On a CPU the softmax would be bfloat16, whose scores have three digits and are equal for similar classes."""
    is_lower = isinstance(logits, Tensor) and logits.dtype in (torch.bfloat16, torch.float16)
    return logits.float() if is_lower and not head.training else logits


def to_channels_last(model: nn.Module, weights: bool = True) -> None:
    """Convert a model's weights, and the images from its data preprocessor, to channels_last in place.

    Convolutions then read and write ``(N, H, W, C)`` in memory, also without ``weights``. The scores of a segmentation
    head are converted back to the default layout before they are resized for the loss. Only 4-D tensors are converted.
    """
    for tensor in (*model.parameters(), *model.buffers()) if weights else ():
        tensor.data = _tensor_to_channels_last(tensor.data)
    for part in model.modules():
        if isinstance(part, BaseDataPreprocessor):
            _hook_once(part, _images_to_channels_last)
        scores = getattr(part, 'conv_seg', None)  # last layer of a segmentation head
        if isinstance(scores, nn.Module):
            _hook_once(scores, _scores_to_contiguous)


def _tensor_to_channels_last(tensor: Tensor) -> Tensor:
    if tensor.dim() != 4:
        return tensor
    # contiguous() does not change the strides of 1x1 convolutions; they would differ from those of the gradients, and
    # DDP would copy instead of sharing memory.
    result = torch.empty_like(tensor, memory_format=torch.channels_last)
    return tensor if tensor.stride() == result.stride() else result.copy_(tensor)


def _images_to_channels_last(preprocessor: nn.Module, args: tuple, output: dict) -> None:
    images = output.get('inputs') if isinstance(output, dict) else None
    if isinstance(images, Tensor):
        output['inputs'] = _tensor_to_channels_last(images)


def _scores_to_contiguous(layer: nn.Module, args: tuple, scores: Tensor) -> Tensor:
    """Convert scores to the layout that is fast for softmax over classes, before resizing makes them larger."""
    return scores.contiguous()


class Linear(nn.Linear):
    """A linear layer whose product is computed by :func:`vt.ops.token_products.multiply`.

    It has the name of PyTorch's class, because the name is printed, also in messages.
    """

    def forward(self, input: Tensor) -> Tensor:
        """``(..., in_features)`` to ``(..., out_features)``."""
        return multiply(input, self.weight, self.bias)


def choose_products(model: nn.Module, library: str) -> None:
    """Let ``'blas'`` or ``'onednn'`` compute the linear layers and token-side matrices of a model, in place.

    For oneDNN, linear layers become :class:`Linear`, and token-side matrices are stored with output channels outermost,
    which it reads fastest; pixel-side matrices, whose transpose is applied, keep their layout.
    """
    linear, other = (Linear, nn.Linear) if library == 'onednn' else (nn.Linear, Linear)
    for part in model.modules():
        if type(part) is other:
            part.__class__ = linear
        elif isinstance(part, GroupedLinear):
            vars(part).pop('multiply', None)
            if library == 'onednn':
                vars(part)['multiply'] = multiply
                if not part.pixel_side:
                    part.weight.data = part.weight.data.mT.contiguous().mT
