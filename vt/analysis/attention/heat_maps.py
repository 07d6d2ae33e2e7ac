"""Which pixels contribute to a class: Grad-CAM and its kin, by pytorch-grad-cam, and attention rollout, of any model.

Grad-CAM needs a layer whose output still has places, and on which the score depends at all places: behind the last
attention of a vision transformer the class token alone counts. One pass finds it: the last layer of the backbone (of a
classifier, of its neck too) that gives a map, or tokens of a known grid, with a gradient at most places. The grid is
what a block is called with, and of other libraries' plain ViTs the map of their patches.

Letters: N batch, C channels, T, H and W size of a map, L tokens.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from mmengine.utils.dl_utils import is_norm
from torch import Tensor, nn
from torch.nn.functional import interpolate

from vt.errors import UserError
from vt.inference.inputs import seen_by
from vt.models import TokenizerEmbed, VTModule, record_attention
from vt.models.grid import split_class_tokens, to_map

from .token_figure import frames_of

# Methods, and their classes in pytorch-grad-cam.
METHODS = {
    'gradcam': 'GradCAM',
    'gradcam++': 'GradCAMPlusPlus',
    'hirescam': 'HiResCAM',
    'layercam': 'LayerCAM',
    'xgradcam': 'XGradCAM',
    'eigencam': 'EigenCAM',
    'eigengradcam': 'EigenGradCAM',
    'elementwise': 'GradCAMElementWise',
}
ROLLOUT = 'rollout'
WITHOUT_PLACES = {'tokenizer', 'tokenizers', 'relation'}  # parts of VT modules, whose tokens lie nowhere
MOST_PREFIX = 16  # class and register tokens of other libraries' ViTs
SHARE = 0.5  # of the places that have a gradient
Found = dict[str, tuple[Tensor, Callable[[Tensor], Tensor]]]  # outputs, and how they become maps


class HeatMapper:
    """Heat maps of a model by one method.

    Args:
        model: a classifier or segmentor, in evaluation mode.
        method: a key of :data:`METHODS`; or ``'rollout'``, which knows no class (Abnar and Zuidema, 2020).
        layer: name of a layer in ``model.named_modules()``; None to find it.

    Attributes:
        layer: name of the last map's layer; None of rollout.

    Raises:
        UserError: pytorch-grad-cam is missing; no such method or layer.
    """

    def __init__(self, model: nn.Module, method: str = 'gradcam', layer: str | None = None) -> None:
        if layer and method == ROLLOUT:
            raise UserError(f'the layer {layer} has no effect on rollout, which takes all: leave it out')
        self.model, self.method, self.chosen, self.layer = model, method, layer, layer
        self.library = check_method(method)

    @torch.enable_grad()
    def __call__(self, inputs: Tensor, target: int | None = None) -> tuple[Tensor, int]:
        """The heat map of an image or a clip.

        Args:
            inputs: as the network is given it, ``(1, C, height, width)`` or ``(1, C, frames, height, width)``.
            target: a class; None for that of the highest score, or of a segmentor of the most pixels that are no
                background.

        Returns:
            The map, of the inputs' size without N and C, 0 to 1; and the class.

        Raises:
            UserError: no such class; no layer, or no attention, to make a map of.
        """
        scores, inputs = _Scores(self.model), inputs.detach().clone().requires_grad_()
        with _find_maps(self.model, inputs.shape) as found:
            (output,) = scores(inputs)
        target = choose_class(self.model, output, target)
        if self.library is None:
            return rollout(self.model, inputs.detach()), target
        of_class = _ClassScore(target, output)
        self.layer = self.chosen or _last_layer(found, of_class(output))
        if self.layer not in found:
            known = ', '.join([*found][-3:])
            raise UserError(f'the layer {self.layer} gives no map and no tokens of a grid; such are {known}')
        layer, reshape = self.model.get_submodule(self.layer), found[self.layer][1]
        with getattr(self.library, METHODS[self.method])(scores, [layer], reshape_transform=reshape) as make:
            make.compute_input_gradient = True  # so that frozen backbones have gradients
            (heat,) = make(inputs, [of_class])
        scores.zero_grad()
        return torch.from_numpy(np.ascontiguousarray(heat)), target

    def look(self, sample: dict, is_bgr: bool, target: int | None = None) -> tuple[Tensor, Tensor, int]:
        """A sample as the network sees it, RGB in 0 to 1, its heat map and the class.

        Returns:
            The padded image ``(3, height, width)`` and its map ``(height, width)``; or of a video the frames of the
            first clip, ``(T, 3, height, width)``, and ``(T, height, width)``.
        """
        is_video = sample['inputs'].ndim > 3
        image, inputs = (frames_of if is_video else seen_by)(self.model, sample, is_bgr)
        return image, *self(inputs, target)


class _Scores(nn.Module):
    """A model that gives scores alone, ``(N, classes)`` or ``(N, classes, H, W)``."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        return self.model(x, mode='tensor')


class _ClassScore:
    """A class's score; of a map the sum over the pixels that are predicted as it, or over all where none is."""

    def __init__(self, target: int, output: Tensor) -> None:
        self.target, mask = target, output.detach().argmax(dim=0) == target
        self.mask = mask if mask.any() and mask.ndim else torch.ones_like(mask)

    def __call__(self, output: Tensor) -> Tensor:
        return (output[self.target] * self.mask).sum()


def choose_class(model: nn.Module, output: Tensor, target: int | None) -> int:
    """The class of scores ``(classes, ...)`` that a map is made for."""
    if target is not None and not 0 <= target < len(output):
        raise UserError(f'there is no class {target}: they are 0 to {len(output) - 1}')
    if target is not None:
        return target
    if output.ndim == 1:
        return int(output.argmax())
    pixels = output.argmax(dim=0).flatten().bincount(minlength=len(output))
    names = (getattr(model, 'dataset_meta', None) or {}).get('classes') or ()
    if 'background' in names and pixels.count_nonzero() > 1:
        pixels[[*names].index('background')] = 0
    return int(pixels.argmax())


def check_method(method: str) -> Any:
    """The library that a method needs, None of rollout; or a UserError where the library or the method is missing."""
    if method not in (*METHODS, ROLLOUT):
        raise UserError(f'there is no method {method!r} of heat maps: take {", ".join((*METHODS, ROLLOUT))}')
    if method == ROLLOUT:
        return None
    try:
        import pytorch_grad_cam
    except ImportError as error:
        raise UserError("heat maps need grad-cam: pip install 'visual-transformers[heat-maps]'") from error
    return pytorch_grad_cam


def _last_layer(found: Found, score: Tensor) -> str:
    grads = torch.autograd.grad(score, [output for output, _ in found.values()], allow_unused=True)
    for (name, (_, reshape)), grad in [*zip(found.items(), grads)][::-1]:
        if grad is not None and reshape(grad)[0].ne(0).any(dim=0).double().mean() > SHARE:
            return name
    raise UserError('no layer of the model has places on which its scores depend, so there is no heat map')


@contextmanager
def _find_maps(model: nn.Module, shape: torch.Size) -> Iterator[Found]:
    """Fill in, during a forward pass, the layers that give maps or tokens of a grid, in the order in which they end."""
    found: Found = {}
    grids = _Grids(shape)
    roots = dict(backbone=model.backbone) | (dict(neck=model.neck) if getattr(model, 'head', None) else {})
    named = [(name, part) for root, owner in roots.items() if owner for name, part in owner.named_modules(prefix=root)]

    def keep(name: str) -> Callable:
        def hook(part: nn.Module, inputs: tuple, output: Any) -> None:
            grids.leave(part, inputs, output)
            if isinstance(output, Tensor) and output.requires_grad and (is_norm(part) or any(part.children())):
                reshape = grids.reshape_of(part, output, in_neck=name.startswith('neck'))
                if reshape and not WITHOUT_PLACES & {*name.split('.')}:
                    found.pop(name, None)
                    found[name] = output, reshape

        return hook

    handles = [part.register_forward_pre_hook(grids.enter) for _, part in named]
    handles += [part.register_forward_hook(keep(name)) for name, part in named]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


class _Grids:
    """The grid of the tokens at each moment of a forward pass, and how many tokens there are with those of classes."""

    def __init__(self, shape: torch.Size) -> None:
        self.shape = shape  # of the inputs
        self.size: tuple[int, ...] | None = None
        self.length: int | None = None  # where a block was called with all tokens
        self.patches: tuple[int, ...] = ()
        self.is_lost = False  # few tokens took the place of the grid's
        self.is_pixels = False  # visual tokens stand beside a map

    def enter(self, part: nn.Module, inputs: tuple) -> None:
        """Note what a part is called with."""
        self.is_pixels |= isinstance(part, VTModule)
        self.note(inputs)

    def leave(self, part: nn.Module, inputs: tuple, output: Any) -> None:
        """Note what a part gives."""
        if isinstance(part, TokenizerEmbed):
            self.is_lost = True
        if isinstance(part, (nn.Conv2d, nn.Conv3d)):
            self.patches = tuple(output.shape[2:])
        if isinstance(output, tuple) and self.note(output):
            self.length = None  # class tokens may join them
        elif self.note(inputs) and callable(getattr(part, 'out_size', None)):
            self.note((output, part.out_size(tuple(inputs[1]))))

    def note(self, values: tuple) -> bool:
        """Take the grid of tokens ``(N, L, C)`` that are followed by its size, if they are."""
        if len(values) < 2 or not isinstance(values[0], Tensor) or not isinstance(values[1], (tuple, list)):
            return False
        x, size = values[0], tuple(values[1])
        is_grid = x.ndim == 3 and size and all(isinstance(side, int) for side in size)
        if not is_grid or x.shape[1] < math.prod(size):
            return False
        self.size, self.length = size, x.shape[1]
        return True

    def reshape_of(self, part: nn.Module, output: Tensor, in_neck: bool) -> Callable | None:
        """How a part's output becomes a map ``(N, C, H, W)``; None where it has no places."""
        if self.is_lost or len(output) != self.shape[0]:
            return None
        if output.ndim == len(self.shape):
            widths = [norm.normalized_shape for norm in part.modules() if isinstance(norm, nn.LayerNorm)]
            is_last = any(width == output.shape[-1:] != output.shape[1:2] for width in widths)
            reshape = (lambda x: x.movedim(-1, 1)) if is_last else (lambda x: x)
            return reshape if math.prod(reshape(output).shape[2:]) > 1 else None
        size = None if output.ndim != 3 or in_neck or self.is_pixels else self.size_of(output.shape[1])
        return size and (lambda x: to_map(split_class_tokens(x, size)[1], size))

    def size_of(self, length: int) -> tuple[int, ...] | None:
        """The grid of so many tokens, if they have one."""
        if self.size and self.length:
            return self.size if length == self.length else None
        sizes = [self.size or self.patches] if self.size or self.patches else []
        if self.shape[-1] == self.shape[-2]:  # patches that no convolution makes
            sides = [math.isqrt(number) for number in (length - 1, length) if math.isqrt(number) ** 2 == number]
            sizes += [(side, side) for side in sides if side > 1]
        return next((size for size in sizes if 0 <= length - math.prod(size) <= MOST_PREFIX), None)


@torch.no_grad()
def rollout(model: nn.Module, inputs: Tensor) -> Tensor:
    """The product of all attention maps ``(A + 1) / 2``: what the class token, or the mean token, has of each pixel.

    Args:
        model: of self-attention among all tokens of one grid.
        inputs: ``(1, C, height, width)``.

    Returns:
        ``(height, width)``, 0 to 1.

    Raises:
        UserError: it attends otherwise.
    """
    with record_attention(model) as records:
        model(inputs, mode='tensor')
    maps, sizes = [record.attention for record in records.values()], {record.size for record in records.values()}
    shapes = {attention.shape[2:] for attention in maps if len(attention) == 1}
    size = next(iter(sizes), None)
    length = next(iter(shapes))[0] if shapes else 0
    if size is None or len(sizes) > 1 or shapes != {(length, length)} or any(len(attention) > 1 for attention in maps):
        found = 'none' if not maps else 'windows, pooled tokens or visual tokens'
        raise UserError(
            f'rollout needs self-attention among all tokens of one grid, the model has {found}: take gradcam'
        )
    joint = torch.eye(length, dtype=maps[0].dtype, device=inputs.device)  # L, L
    for attention in maps:
        joint = (attention[0].mean(dim=0) @ joint + joint) / 2
    number = length - math.prod(size)
    row = joint[0, number:] if number else joint.mean(dim=0)
    heat = interpolate(row.unflatten(0, size)[None, None], inputs.shape[2:], mode='bilinear')[0, 0].cpu()
    return (heat - heat.min()) / (heat.max() - heat.min()).clamp(min=torch.finfo(heat.dtype).tiny)
