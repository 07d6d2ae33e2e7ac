"""How local the self-attention of a ViT is by depth, in numbers and drawn (paper, section 6 and figure 5).

Letters: N batch, h heads, S tokens of the sequence, H and W rows and columns of patches, P = H * W patches.
"""

import argparse
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import mmpretrain
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from torch.overrides import TorchFunctionMode
from torch.utils.data import Dataset

from docs.reports.records import write_measured
from vt.analysis.tables import print_table
from vt.commands.attention import check_figure, write
from vt.errors import UserError

from .trained import prepare, preprocessed

MMPRETRAIN = 'mmpretrain::'


def report_locality(args: argparse.Namespace) -> None:
    """How local a ViT's attention is by depth; draw and write it on request."""
    if args.config.startswith(MMPRETRAIN):
        configs = Path(mmpretrain.__file__).parent / '.mim/configs'
        args.config = str(configs / args.config.removeprefix(MMPRETRAIN))
    check_figure(args.plot, args.config, args.checkpoint)
    model, dataset, indices, source = prepare(args)
    locality = measure_locality(model, dataset, indices)
    weights = Path(args.checkpoint).name if args.checkpoint else 'random weights, as initialised'
    title = f'{Path(args.config).stem} ({weights}), {len(indices)} test images'
    print_table(describe_locality(locality), title=title)
    if args.plot:
        write(draw_locality(locality, title), args.plot, dpi=150)
    write_measured(args.out, **source, **locality.shares())


class RecordScaledDotProduct(TorchFunctionMode):
    """Record every ``scaled_dot_product_attention`` inside the block: its attention, ``(N, h, S, S)``, in ``maps``.

    It is what PyTorch itself multiplies the values with, biases, masks and scale included: the same function is called
    once more with the identity as values.
    """

    def __init__(self) -> None:
        super().__init__()
        self.maps: list[Tensor] = []

    def __torch_function__(self, func: Callable, types: Sequence, args: Sequence = (), kwargs: dict | None = None):
        options = kwargs or {}
        if func is scaled_dot_product_attention:
            self.maps.append(_read_attention(*args, **options))
        return func(*args, **options)


@torch.no_grad()
def _read_attention(query: Tensor, key: Tensor, value: Tensor, *args, **options) -> Tensor:
    identity = torch.eye(key.shape[-2], dtype=key.dtype, device=key.device)
    return scaled_dot_product_attention(query, key, identity.expand(*key.shape[:-2], -1, -1), *args, **options)


def read_patch_attention(model: nn.Module, inputs: Tensor) -> tuple[list[Tensor], tuple[int, int]]:
    """Attention of every layer of a ViT, and the grid of patches, H and W, in one forward pass of preprocessed images.

    It reads MMPretrain's backbones whose layers attend by PyTorch's ``scaled_dot_product_attention`` from every token
    to every token: VisionTransformer, DistilledVisionTransformer, DeiT3, RevVisionTransformer. Of each layer
    ``(N, h, P, S)``: what the patches give to all tokens, the patches being the last P of the S.

    Raises:
        UserError: the backbone is not of this kind.
    """
    backbone = model.backbone
    grids: list[tuple[int, int]] = []
    if not all(hasattr(backbone, name) for name in ('patch_embed', 'layers')):
        raise _not_a_vit(backbone, 'it has no patch_embed and layers')
    hook = backbone.patch_embed.register_forward_hook(lambda part, images, output: grids.append(tuple(output[1])))
    try:
        with torch.no_grad(), RecordScaledDotProduct() as recorder:
            model(inputs, mode='tensor')
    finally:
        hook.remove()
    if len(recorder.maps) != len(backbone.layers):
        seen = f'{len(recorder.maps)} of its {len(backbone.layers)} layers call scaled_dot_product_attention'
        raise _not_a_vit(backbone, seen)
    patches = math.prod(grids[-1])
    length = patches + backbone.num_extra_tokens
    for rows, columns in (attention.shape[-2:] for attention in recorder.maps):
        if (rows, columns) != (length, length):
            reason = f'attention is {rows}x{columns} where {length} tokens should meet each other'
            raise _not_a_vit(backbone, reason)
    return [attention[:, :, -patches:] for attention in recorder.maps], grids[-1]


def _not_a_vit(backbone: nn.Module, reason: str) -> UserError:
    return UserError(
        f'{type(backbone).__name__}: {reason}; locality is read from VisionTransformer, DistilledVisionTransformer, '
        'DeiT3 and RevVisionTransformer'
    )


def locality_ratio(attention: Tensor, grid: tuple[int, int]) -> Tensor:
    """Share of a patch's attention that falls on the 3x3 patches around it, the mean over patches: ``R`` of section 6.

    Tokens that are no patches, such as the class token, have no place: neither their attention nor the attention on
    them counts, and the total ``T`` is what a patch gives to patches. At the border fewer than nine patches are there.

    Args:
        attention: among patches, ``(N, h, P, P)``: each row what a patch gives; its sum needn't be one.
        grid: H and W, rows and columns of patches.

    Returns:
        ``(N, h)``, 0 to 1; :func:`uniform_locality` for uniform attention.
    """
    rows, columns = torch.meshgrid(*(torch.arange(cells, device=attention.device) for cells in grid), indexing='ij')
    places = torch.stack([rows.flatten(), columns.flatten()], dim=-1)  # P, 2
    near = (places[:, None] - places).abs().amax(dim=-1) <= 1  # P, P
    return ((attention * near).sum(dim=-1) / attention.sum(dim=-1)).mean(dim=-1)


def uniform_locality(height: int, width: int) -> float:
    """What :func:`locality_ratio` is for uniform attention: 0.0416 on 14x14 patches."""
    return (3 * height - 2) * (3 * width - 2) / (height * width) ** 2


class Locality(NamedTuple):
    """How local a ViT's attention is, the mean over images.

    Attributes:
        ratios: share of local attention of each layer's heads, ``(layers, h)``.
        on_no_patch: share of each layer's attention that the class token and its like get, ``(layers,)``.
        uniform: the share of local attention if it were uniform.
    """

    ratios: Tensor
    on_no_patch: Tensor
    uniform: float

    @property
    def mean(self) -> Tensor:
        """Over heads, ``(layers,)``."""
        return self.ratios.mean(dim=1)

    @property
    def std(self) -> Tensor:
        """Standard deviation over heads, ``(layers,)``."""
        return self.ratios.std(dim=1, correction=0)

    def shares(self) -> dict:
        """All of it as JSON has it."""
        shares = dict(mean=self.mean, std_over_heads=self.std, of_heads=self.ratios, on_no_patch=self.on_no_patch)
        return {key: value.tolist() for key, value in shares.items()} | dict(uniform=self.uniform)


def measure_locality(model: nn.Module, dataset: Dataset, indices: Iterable[int]) -> Locality:
    """The locality by depth of a ViT of MMPretrain, in evaluation mode, on images of a test set."""
    ratios, to_patches, uniform = [], [], []
    for inputs, _ in preprocessed(model, dataset, indices):
        attention, grid = read_patch_attention(model, inputs)
        among = [layer[..., -math.prod(grid) :].double() for layer in attention]  # of each layer 1, h, P, P
        ratios.append(torch.cat([locality_ratio(layer, grid) for layer in among]))  # layers, h
        to_patches.append(torch.stack([layer.sum(dim=-1).mean() for layer in among]))  # layers
        uniform.append(uniform_locality(*grid))
    by_head, on_patches = (torch.stack(images).mean(dim=0).cpu() for images in (ratios, to_patches))
    elsewhere = (1 - on_patches).clamp(min=0)  # layers; a rounded 0 stays 0
    return Locality(by_head, elsewhere, sum(uniform) / len(uniform))


def describe_locality(locality: Locality) -> list[dict[str, str]]:
    """A row a layer, for people to read."""
    percent = [100 * each for each in (locality.ratios, locality.mean, locality.std, locality.on_no_patch)]
    return [
        {
            'layer': str(layer),
            'local attention (%)': f'{mean:.2f}',
            'std over heads': f'{std:.2f}',
            'of heads': f'{heads.min():.1f} to {heads.max():.1f}',
            'uniform attention (%)': f'{100 * locality.uniform:.2f}',
            'left out: on no patch (%)': f'{elsewhere:.2f}',
        }
        for layer, (heads, mean, std, elsewhere) in enumerate(zip(*percent), start=1)
    ]


def draw_locality(locality: Locality, title: str) -> Figure:
    """The share of local attention by depth, mean and standard deviation over heads, as in the paper's figure 5."""
    figure = Figure(figsize=(6, 4), layout='constrained')
    axes = figure.subplots()
    layers, mean, std = range(1, len(locality.ratios) + 1), 100 * locality.mean, 100 * locality.std
    axes.plot(layers, mean, marker='o', markersize=4, label='mean of the heads')
    axes.fill_between(layers, mean - std, mean + std, alpha=0.25, label='standard deviation over heads')
    axes.axhline(100 * locality.uniform, color='grey', linestyle='--', label='uniform attention')
    axes.set(xlabel='layer', ylabel='attention on the 3x3 patches around (%)', title=title)
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(fontsize=9)
    return figure
