"""From where the attention on an object takes what it becomes: from the object that it has to be compared with?

One measure for visual tokens and for every attention of the survey's parts, by gradients, see
:func:`vt.analysis.attention.reach.influences`.

Letters: H and W of a grid, P = H * W places of it, R of them on an object, B boxes.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import torch
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from mmengine.dataset import pseudo_collate
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d, interpolate

from vt.analysis.figures import image_cells
from vt.datasets.generated import Box, GeneratedImages
from vt.errors import UserError
from vt.models import VTModule
from vt.models.vt_module import NoProjector

from .reach import grids, influences, recorded_inputs
from .token_attention import finite

CELL = 2.0  # inches


class ObjectAttention(NamedTuple):
    """What the places on the related objects take, through one part of a model, the mean over objects.

    Attributes:
        spread: the perplexity of where a place takes from, in parts of the grid: 1 from everywhere alike.
        reach: how far away that is, in pixels.
        elsewhere: the share that is not from the object itself, 0 to 1.
        related: how many times as much of the share from elsewhere comes from a related object as its area has of
            what is elsewhere: 1 by chance.
        others: the same of an object that needn't be compared; NaN where there is none.
    """

    spread: float
    reach: float
    elsewhere: float
    related: float
    others: float


def find_parts(model: nn.Module) -> dict[str, nn.Module]:
    """Parts that bring places of a grid together, by name: VT's modules that write a map, and attentions of blocks.

    Raises:
        UserError: the model has none.
    """
    parts = {}
    for name, part in model.backbone.named_modules():
        if isinstance(part, VTModule) and not isinstance(part.projector, NoProjector):
            parts[name] = part
        elif hasattr(part, 'attention') and isinstance(getattr(part.attention, 'part', None), nn.Module):
            parts[f'{name}.attention'] = part.attention.part
    if not parts:
        raise UserError(
            f'{type(model.backbone).__name__} has neither a VTModule that writes a map nor blocks with an attention'
        )
    return parts


def measure_objects(
    model: nn.Module, dataset: GeneratedImages, indices: Iterable[int]
) -> dict[str, dict[str, float | None]]:
    """What each part of a model takes for the related objects of images: the means over images.

    Args:
        model: a classifier in evaluation mode.
        dataset: whose samples know their objects; its pipeline keeps the images' frame.
        indices: of the images.

    Raises:
        UserError: the data set knows no objects; the model has no part as :func:`find_parts` wants it.
    """
    if not isinstance(dataset, GeneratedImages):
        raise UserError(
            f'{type(dataset).__name__} does not say where its objects are; SVRT, PSVRT, SortOfCLEVR and Pathfinder do'
        )
    parts = find_parts(model)
    found: dict[str, list[ObjectAttention]] = {name: [] for name in parts}
    for index in indices:
        info, inputs = _run(model, parts, dataset, index)
        for name, args in inputs.items():
            frame = info['img'].shape[:2]
            found[name].append(measure_part(added_by(parts[name]), args, frame, info['related'], info['others']))
    means = {name: torch.tensor(images, dtype=torch.float64).nanmean(dim=0) for name, images in found.items()}
    return {name: dict(zip(ObjectAttention._fields, finite(values))) for name, values in means.items()}


def _run(model: nn.Module, parts: dict[str, nn.Module], dataset: GeneratedImages, index: int) -> tuple[dict, dict]:
    """What a data set knows of an image, and what comes to each part of a model that sees it."""
    inputs = model.data_preprocessor(pseudo_collate([dataset[index]]), False)['inputs']
    return dataset.get_data_info(index), recorded_inputs(model, parts, inputs)


def added_by(part: nn.Module) -> Callable:
    """What a part adds: an attention leaves its residual to the block, a VT module has it in itself."""
    return (lambda x, tokens=None: part(x, tokens)[0] - x) if isinstance(part, VTModule) else part


def measure_part(
    part: Callable, args: tuple, frame: tuple[int, int], related: Sequence[Box], others: Sequence[Box]
) -> ObjectAttention:
    """What one part takes for the related objects of an image.

    Args:
        part: called with ``args``.
        args: of one image: a map, or tokens and their grid's size.
        frame: height and width of the image in which the boxes stand.
        related: boxes of the objects that have to be compared.
        others: boxes of the other objects.
    """
    size, out_size = grids(part, args)
    own, here = cover(related, frame, size), cover(related, frame, out_size)  # B, P; B, P'
    bystanders = cover(others, frame, size)
    distances = torch.cdist(place_centres(frame, out_size), place_centres(frame, size))  # P', P
    measured = []
    for index, covered in enumerate(own):
        (rows,) = here[index].nonzero(as_tuple=True)
        weights = here[index][rows] / here[index][rows].sum()  # R
        taken = influences(part, args, rows.tolist()).double()
        taken = taken / taken.sum(dim=1, keepdim=True)  # R, P
        spread = weights @ torch.special.entr(taken).sum(dim=1).exp() / len(covered)
        reach = weights @ (taken * distances[rows]).sum(dim=1)
        mean, outside = weights @ taken, 1 - covered  # P
        elsewhere = mean @ outside
        partners = torch.cat([own[:index], own[index + 1 :]])
        gains = [
            ((boxes @ mean / elsewhere) / (boxes.sum(dim=1) / outside.sum())).mean() for boxes in (partners, bystanders)
        ]
        measured.append(torch.stack([spread, reach, elsewhere, *gains]))
    return ObjectAttention(*torch.stack(measured).nanmean(dim=0).tolist())


def cover(boxes: Sequence[Box], frame: tuple[int, int], size: tuple[int, int]) -> Tensor:
    """How much of each place of a grid over the frame each box covers, 0 to 1, ``(B, P)``."""
    masks = torch.zeros(len(boxes), *frame, dtype=torch.float64)
    for mask, (left, top, right, bottom) in zip(masks, boxes):
        mask[top:bottom, left:right] = 1
    return adaptive_avg_pool2d(masks, size).flatten(1)


def place_centres(frame: tuple[int, int], size: tuple[int, int]) -> Tensor:
    """Centres of a grid's places in pixels, ``(P, 2)``."""
    sides = [(torch.arange(cells, dtype=torch.float64) + 0.5) * side / cells for side, cells in zip(frame, size)]
    return torch.cartesian_prod(*sides)


def describe_objects(before: dict[str, dict], after: dict[str, dict] | None) -> list[dict[str, str]]:
    """A row a part, for people to read; with a trained model's beside those of its start."""
    columns = {
        'spread (%)': ('spread', 100, '.0f', ''),
        'reach (px)': ('reach', 1, '.1f', ''),
        'elsewhere (%)': ('elsewhere', 100, '.0f', ''),
        'on related': ('related', 1, '.2f', 'x'),
        'on others': ('others', 1, '.2f', 'x'),
    }
    rows = []
    for name in before:
        row = {'part': name}
        for title, (key, factor, form, unit) in columns.items():
            values = [each[name][key] for each in (before, after) if each]
            row[title] = ' -> '.join('-' if value is None else f'{factor * value:{form}}{unit}' for value in values)
        rows.append(row)
    return rows


def draw_objects(model: nn.Module, dataset: GeneratedImages, indices: Sequence[int], names: Sequence[str]) -> Figure:
    """A row an image, a cell a part: what the first related object (white) takes; the others' boxes are thin.

    Args:
        model, dataset: as in :func:`measure_objects`.
        indices: of the images.
        names: of the parts.
    """
    parts = {name: part for name, part in find_parts(model).items() if name in names}
    figure = Figure(figsize=(CELL * len(parts), CELL * len(indices) + 0.3), layout='constrained')
    axes = image_cells(figure, len(indices), len(parts))
    for row, index in zip(axes, indices):
        info, inputs = _run(model, parts, dataset, index)
        frame = info['img'].shape[:2]
        colours = ['white', *['lime'] * (len(info['related']) - 1), *['grey'] * len(info['others'])]
        for cell, (name, args) in zip(row, inputs.items()):
            size, out_size = grids(parts[name], args)
            weights = cover(info['related'][:1], frame, out_size)[0]
            rows = weights.nonzero()[:, 0].tolist()
            taken = (weights[rows] @ influences(added_by(parts[name]), args, rows).double()).unflatten(0, size)
            shown = interpolate((taken / taken.max())[None, None], frame, mode='nearest')[0, 0]
            cell.imshow(info['img'][..., ::-1], alpha=0.9)  # from BGR
            cell.imshow(shown, cmap='inferno', alpha=0.65, vmin=0, vmax=1)
            for colour, (left, top, right, bottom) in zip(colours, (*info['related'], *info['others'])):
                sides = right - left, bottom - top
                cell.add_patch(Rectangle((left - 0.5, top - 0.5), *sides, fill=False, edgecolor=colour))
    for cell, name in zip(axes[0], parts):
        cell.set_title(name, fontsize=7, parse_math=False)
    return figure
