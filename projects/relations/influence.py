"""From where an attention takes what its tokens become: the commands ``reach`` and ``objects`` of ``attention.py``.

One measure for visual tokens and for every attention of blocks, by gradients: :func:`influences`.

Letters: N batch, K class tokens, H and W of a grid, P = H * W places of it, R of them on an object, B boxes,
C channels.
"""

import argparse
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import mmcv
import torch
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from mmengine.dataset import pseudo_collate
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d, interpolate

from docs.reports.records import write_measured
from vt.analysis.figures import image_cells
from vt.analysis.tables import print_table
from vt.commands.attention import check_figure, write
from vt.datasets import DigitScenes
from vt.engine.config.steps import read_config
from vt.errors import UserError
from vt.files import as_plain
from vt.inference.inputs import read_image
from vt.models import VTModule
from vt.models.grid import Identity

from .tasks.generated_images import Box, GeneratedImages
from .trained import build, prepare

CELL, REACH_CELL = 2.0, 1.5  # inches
COLUMNS = 8
NONE = 1e-9  # of the strongest place; what is less is rounding
DRAWN = 4  # images of a figure
SIZE = 224  # of an image for which no config has another one


def report_reach(args: argparse.Namespace) -> None:
    """Draw from which places one token takes what it becomes, in each kind of attention of some models' configs."""
    check_figure(args.out, *args.configs, args.image)
    image = DigitScenes('test')[0]['img'] if args.image is None else read_image(args.image)
    image = mmcv.bgr2rgb(image)
    reaches = []
    for path in args.configs:
        cfg = read_config(path, args.cfg_options)
        model = build(cfg, None)
        size = cfg.model.backbone.get('image_size', SIZE)
        shown = mmcv.imresize(image, (size, size))
        inputs = model.data_preprocessor(dict(inputs=[torch.from_numpy(shown).movedim(-1, 0)]), False)['inputs']
        name = Path(path).stem.split('_')[0]
        reaches += measure_reaches(model.backbone, inputs, name, args.stage - 1, args.place)
    shown = torch.from_numpy(mmcv.imresize(image, (SIZE, SIZE))).movedim(-1, 0) / 255
    write(draw_reaches(shown, reaches), args.out)


def report_objects(args: argparse.Namespace) -> None:
    """What each part of a model takes for the objects that have to be compared, before and after it was trained."""
    check_figure(args.plot, args.config, args.checkpoint)
    model, dataset, indices, source = prepare(args)
    after = measure_objects(model, dataset, indices)
    names = args.parts or list(after)
    if unknown := set(names) - set(after):
        raise UserError(f'--parts {" ".join(sorted(unknown))}: the model has {", ".join(after)}')
    before = measure_objects(build(read_config(args.config, args.cfg_options), None), dataset, indices)
    print_table(describe_objects(before, after), title=f'{Path(args.config).stem}, {len(indices)} test images')
    if args.plot:
        write(draw_objects(model, dataset, indices[:DRAWN], names), args.plot)
    write_measured(args.out, **source, before=before, after=after)


@torch.enable_grad()
def influences(part: Callable, args: tuple, places: Sequence[int | None]) -> Tensor:
    """How much some places of a part's result change with each place that comes, by the gradient of a random sum.

    Args:
        part: called with ``args``; of several results the first counts.
        args: of one image: a map ``(1, C, H, W)`` or tokens ``(1, K + P, C)`` first; what follows is held fixed.
        places: of the result's grid, counted row by row; None is the first class token.

    Returns:
        ``(len(places), P)``, the norm over the channels that come.
    """
    size, out_size = grids(part, args)
    number = len(places)
    x = args[0].detach().repeat_interleave(number, dim=0).requires_grad_()
    fixed = [each.detach().repeat_interleave(number, dim=0) if isinstance(each, Tensor) else each for each in args[1:]]
    result = part(x, *fixed)
    tokens = _as_tokens(result[0] if isinstance(result, tuple) else result)
    classes = max(0, tokens.shape[1] - math.prod(out_size))
    rows = [0 if place is None else classes + place for place in places]
    directions = torch.randn(tokens.shape[-1], generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    (gradient,) = torch.autograd.grad((tokens[range(number), rows] @ directions.to(tokens)).sum(), x)
    return _as_tokens(gradient)[:, -math.prod(size) :].norm(dim=-1)


def grids(part: Callable, args: tuple) -> tuple[tuple[int, int], tuple[int, int]]:
    """H and W of the grid that comes to a part and of the one that leaves it; of tokens the size is the second arg."""
    size = tuple(args[0].shape[-2:]) if args[0].dim() == 4 else tuple(args[1])
    return size, part.out_size(size) if hasattr(part, 'out_size') else size


@torch.no_grad()
def recorded_inputs(model: nn.Module, parts: dict, images: Tensor) -> dict:
    """What comes to each part of a model in a forward pass, by the parts' keys."""
    inputs: dict = {}
    hooks = [
        part.register_forward_pre_hook(lambda _, args, key=key: inputs.update({key: args}))
        for key, part in parts.items()
    ]
    try:
        model(images)
    finally:
        for hook in hooks:
            hook.remove()
    return {key: inputs[key] for key in parts}


def _as_tokens(x: Tensor) -> Tensor:
    """A map ``(N, C, H, W)`` as tokens ``(N, P, C)``; tokens as they are."""
    return x.flatten(2).transpose(1, 2) if x.dim() == 4 else x


class Reach(NamedTuple):
    """What one token of a block sees.

    Attributes:
        title: the model, and where in it the block stands.
        strengths: of each place, ``(H, W)``, 1 for the strongest and 0 where nothing is seen.
        place: row and column of the token; None for the class token.
    """

    title: str
    strengths: Tensor
    place: tuple[int, int] | None


def measure_reaches(
    backbone: nn.Module, image: Tensor, name: str, stage: int, place: tuple[float, float]
) -> list[Reach]:
    """The reach of each block of a stage that differs from those before it.

    Args:
        backbone: of blocks with an attention, :class:`vt.models.TokenBackbone`.
        image: ``(1, 3, height, width)``, as the backbone takes it.
        name: of the model, for the titles.
        stage: number of the stage; the last one where there are fewer.
        place: of the token whose reach it is, row and column in parts of the grid, 0 to 1.

    Raises:
        UserError: the backbone has no such stages.
    """
    stages = [each for each in getattr(backbone, 'stages', []) if hasattr(each, 'blocks') and len(each.blocks)]
    if not stages:
        raise UserError(f'{type(backbone).__name__} has no stages of blocks; reach is read from vt.TokenBackbone')
    stage = min(stage, len(stages) - 1)
    parts = dict(enumerate(block.attention.part for block in stages[stage].blocks))
    inputs = recorded_inputs(backbone, parts, image)
    reaches: list[Reach] = []
    for index, part in parts.items():
        strengths, cell = measure_reach(part, *inputs[index], place)
        if not any(torch.equal(each.strengths > 0, strengths > 0) for each in reaches):
            reaches.append(Reach(f'{name}\nstage {stage + 1}, block {index + 1}', strengths, cell))
    return reaches


def measure_reach(
    part: nn.Module, x: Tensor, size: tuple[int, int], place: tuple[float, float]
) -> tuple[Tensor, tuple[int, int] | None]:
    """How much one token of an attention's result changes with each token that comes, see :func:`influences`.

    Args:
        part: called with ``(x, size)``.
        x: ``(1, K + P, C)``.
        size: H and W.
        place: of the token, as in :func:`measure_reaches`; of an attention of class tokens alone it is the first one.

    Returns:
        ``(H, W)``, in parts of the largest; and the row and column of the token.
    """
    part, args = part.double(), (x.double(), size)
    out_size = grids(part, args)[1]
    with torch.no_grad():
        is_of_classes = part(*args).shape[1] < math.prod(out_size)
    row, column = (min(side - 1, int(share * side)) for share, side in zip(place, out_size))
    strengths = influences(part, args, [None if is_of_classes else row * out_size[1] + column])[0].unflatten(0, size)
    part.float()
    strengths = strengths / strengths.max()
    shown = tuple(int((own + 0.5) * side / out) for own, side, out in zip((row, column), size, out_size))
    return strengths.where(strengths > NONE, 0).float(), None if is_of_classes else shown


def draw_reaches(image: Tensor, reaches: Sequence[Reach]) -> Figure:
    """A cell a reach: the image where it is seen, glowing where it counts for more; a square stands on the token.

    Args:
        image: RGB in 0 to 1, ``(3, height, width)``.
        reaches: as :func:`measure_reaches` gives them.
    """
    rows, columns = -(-len(reaches) // COLUMNS), min(COLUMNS, len(reaches))
    figure = Figure(figsize=(REACH_CELL * columns, (REACH_CELL + 0.35) * rows), layout='constrained')
    pixels, sides = image.permute(1, 2, 0).numpy(), image.shape[1:]
    for cell, reach in zip(image_cells(figure, rows, columns).flat, reaches):
        strengths = interpolate(reach.strengths[None, None], sides, mode='nearest')[0, 0].numpy()
        cell.imshow(pixels * (0.15 + 0.85 * (strengths > 0))[..., None])
        cell.imshow(strengths, cmap='inferno', alpha=0.7 * strengths**0.5, vmin=0, vmax=1)
        cell.set_title(reach.title, fontsize=7)
        if reach.place is not None:
            row, column = (
                (own + 0.5) * side / cells for own, side, cells in zip(reach.place, sides, reach.strengths.shape)
            )
            cell.plot(column, row, marker='s', markersize=3, color='white', markeredgecolor='black')
    return figure


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
        if isinstance(part, VTModule) and not isinstance(part.projector, Identity):
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
    return {name: dict(zip(ObjectAttention._fields, as_plain(values))) for name, values in means.items()}


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
