"""Which pixels contribute to a class: Grad-CAM and related methods of pytorch-grad-cam, for any model.

Grad-CAM needs a layer whose output has spatial positions, most of which affect the score: after the last attention of a
vision transformer only the class token does. One pass finds it: the last layer of the backbone (of a classifier, of its
neck too) that gives a map, or tokens of a grid, with a gradient at most positions.

Letters: N batch, C channels, T, H and W size of a map, L tokens.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
from mmengine.utils.dl_utils import is_norm
from torch import Tensor, nn
from torch.nn.functional import interpolate

from vt.errors import UserError
from vt.inference.inputs import model_input
from vt.models.grid import Size, split_class_tokens, to_map
from vt.models.visual_transformers.tokenizer import Tokenizer

CLASSES = ('GradCAM', 'GradCAMPlusPlus', 'HiResCAM', 'LayerCAM', 'XGradCAM', 'EigenCAM', 'EigenGradCAM')
METHODS = {name.lower(): name for name in (*CLASSES, 'GradCAMElementWise')}  # names in pytorch-grad-cam
MOST_PREFIX = 16  # class and register tokens of other libraries' ViTs
SHARE = 0.5  # of the places that have a gradient


class HeatMapper:
    """Heat maps of a model by one method.

    Args:
        model: a classifier or segmentor, in evaluation mode.
        method: a key of :data:`METHODS`.
        layer: name of a layer in ``model.named_modules()``; None to find it.

    Attributes:
        layer: name of the last map's layer.

    Raises:
        UserError: pytorch-grad-cam is missing; no such method or layer.
    """

    def __init__(self, model: nn.Module, method: str = 'gradcam', layer: str | None = None) -> None:
        if method not in METHODS:
            raise UserError(f'there is no heat map method {method!r}: use {", ".join(METHODS)}')
        try:
            import pytorch_grad_cam
        except ImportError as error:
            raise UserError('heat maps require grad-cam: pip install grad-cam') from error
        self.model, self.method, self.chosen, self.layer = model, method, layer, layer
        self.make = getattr(pytorch_grad_cam, METHODS[method])

    @torch.enable_grad()
    def __call__(self, inputs: Tensor, target: str | int | None = None) -> tuple[Tensor, int]:
        """The heat map of an image or a clip.

        Args:
            inputs: as the network is given it, ``(1, C, height, width)`` or ``(1, C, frames, height, width)``.
            target: name or number of a class; None for that of the highest score, or of a segmentor of the most pixels
                that are not background.

        Returns:
            The map, of the inputs' size without N and C, from 0 or more to 1; and the class.

        Raises:
            UserError: no such class; no layer to make a map of.
        """
        inputs = inputs.detach().clone().requires_grad_()  # so that frozen backbones have gradients
        with _record_layers(self.model, inputs) as (outputs, sizes):
            (output,) = self.model(inputs)
        target = choose_class(self.model, output, target)
        mask = output.detach().argmax(dim=0) == target  # of a map, the pixels that are predicted as the class

        def score(output: Tensor) -> Tensor:
            return (output[target] * (mask if mask.ndim and mask.any() else 1)).sum()

        parts = dict(self.model.named_modules())
        found = {name: make for name, x in outputs.items() if (make := _reshape_of(parts[name], x, sizes))}
        self.layer = self.chosen or _last_layer(outputs, found, score(output))
        if self.layer not in found:
            known = ', '.join([*found][-3:])
            raise UserError(f'the output of layer {self.layer} is neither a map nor a grid of tokens; use {known}')
        with self.make(self.model, [parts[self.layer]], reshape_transform=found[self.layer]) as make:
            compute, maps = make.get_cam_image, []

            def keep(*args: Any) -> np.ndarray:  # what the library then stretches from its minimum to its maximum
                maps.append(np.maximum(compute(*args), 0))
                return maps[0]

            make.get_cam_image = keep
            make(inputs, [score])
        self.model.zero_grad()
        size, mode = inputs.shape[2:], 'bilinear' if inputs.ndim == 4 else 'trilinear'
        heat = interpolate(torch.from_numpy(maps[0][None]).float(), size, mode=mode)[0, 0]
        return heat / heat.max().clamp(min=torch.finfo(heat.dtype).tiny), target

    def look(self, sample: dict, is_bgr: bool, target: str | int | None = None) -> tuple[Tensor, Tensor, int]:
        """A sample as the network sees it, RGB in 0 to 1, its heat map and the class.

        Returns:
            The padded image ``(3, height, width)`` and its map ``(height, width)``; or of a video the frames of the
            first clip, ``(T, 3, height, width)``, and ``(T, height, width)``.
        """
        image, inputs = model_input(self.model, sample, is_bgr)
        return image, *self(inputs, target)


def choose_class(model: nn.Module, output: Tensor, target: str | int | None) -> int:
    """The class of scores ``(classes, ...)`` that a map is made for."""
    names = (getattr(model, 'dataset_meta', None) or {}).get('classes') or ()
    if target is not None:
        numbers = {kind(number): number for kind in (int, str) for number in range(len(output))}
        known = numbers | {str(name): number for number, name in enumerate(names)}
        if target not in known:
            named = f', or {", ".join(names[:10])}' if names else ''
            raise UserError(f'there is no class {target}: classes are 0 to {len(output) - 1}{named}')
        return known[target]
    if output.ndim == 1:
        return int(output.argmax())
    pixels = output.argmax(dim=0).flatten().bincount(minlength=len(output))
    if 'background' in names and pixels.count_nonzero() > 1:
        pixels[[*names].index('background')] = 0
    return int(pixels.argmax())


def _last_layer(outputs: dict[str, Tensor], reshapes: dict[str, Callable], score: Tensor) -> str:
    """The last layer whose map has a gradient at most places."""
    for name, reshape in [*reshapes.items()][::-1]:
        (grad,) = torch.autograd.grad(score, outputs[name], retain_graph=True, allow_unused=True)
        if grad is not None and reshape(grad)[0].ne(0).any(dim=0).double().mean() > SHARE:
            return name
    raise UserError('no layer of the model has spatial positions on which its scores depend: no heat map is possible')


@contextmanager
def _record_layers(model: Any, inputs: Tensor) -> Iterator[tuple[dict[str, Tensor], set[Size]]]:
    """Fill in outputs that may have places, in the order in which layers end, and all sizes of grids in the network.

    Sizes are those of maps of convolutions, and those that blocks are called with or give beside their tokens.
    """
    outputs: dict[str, Tensor] = {}
    sizes: set[Size] = set()
    tokenizers: list[str] = []  # that have ended: tokens are visual tokens from then on, which lie nowhere

    def record(name: str, part: nn.Module, given: tuple, output: Any) -> None:
        if isinstance(part, Tokenizer):
            tokenizers.append(name)
        if isinstance(part, (nn.Conv2d, nn.Conv3d)):
            sizes.add(tuple(output.shape[2:]))
        sizes.update(tuple(each[1]) for each in (given, output) if isinstance(each, tuple) and _is_size(each[1:]))
        is_layer = (is_norm(part) or any(part.children())) and '.tokenizer' not in name
        if not is_layer or not isinstance(output, Tensor) or not output.requires_grad or len(output) != len(inputs):
            return  # a single product, something else, or windows
        is_grid = output.ndim == 3 and not tokenizers and not name.startswith('neck')
        if is_grid or output.ndim == inputs.ndim:
            outputs.pop(name, None)
            outputs[name] = output

    roots = dict(backbone=model.backbone) | (dict(neck=model.neck) if getattr(model, 'head', None) else {})
    parts = [each for root, owner in roots.items() if owner for each in owner.named_modules(prefix=root)]
    handles = [part.register_forward_hook(partial(record, name)) for name, part in parts]
    try:
        yield outputs, sizes
    finally:
        for handle in handles:
            handle.remove()


def _is_size(values: tuple) -> bool:
    return bool(values) and isinstance(values[0], tuple) and all(isinstance(side, int) for side in values[0])


def _reshape_of(part: nn.Module, output: Tensor, sizes: set[Size]) -> Callable[[Tensor], Tensor] | None:
    """How an output becomes a map ``(N, C, H, W)`` or ``(N, C, T, H, W)``; None where it has no places."""
    if output.ndim == 3:
        length = output.shape[1]
        sizes = {size for size in sizes if 1 < math.prod(size) <= length <= math.prod(size) + MOST_PREFIX}
        size = max(sizes, key=math.prod, default=None)
        return (lambda x: to_map(split_class_tokens(x, size)[1], size)) if size else None
    widths = [norm.normalized_shape for norm in part.modules() if isinstance(norm, nn.LayerNorm)]
    is_last = any(width == output.shape[-1:] != output.shape[1:2] for width in widths)
    reshape = (lambda x: x.movedim(-1, 1)) if is_last else (lambda x: x)
    return reshape if math.prod(reshape(output).shape[2:]) > 1 else None
