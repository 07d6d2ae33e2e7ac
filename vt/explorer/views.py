"""Views of a model's prediction and attention: images and tables for the page, and a report in one file."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import torch
from matplotlib import colormaps
from torch import Tensor
from torch.nn.functional import interpolate
from torchvision.utils import make_grid

from vt.analysis.attention.token_figure import FLOOR, RANGES, SCALE, describe_ranges, glow, times_uniform
from vt.analysis.figures import image_address, shrink
from vt.apis import ClassificationInferencer, SegmentationInferencer
from vt.pages import render
from vt.untrusted_text import printable

from .inspection import Inspection, ShownImage, inspect_image

TILE = 128  # pixels of the longer side
COLUMNS, MAX_TILES = 4, 64
MATRIX = 384
TOP = 5  # classes
Models = dict[str, ClassificationInferencer | SegmentationInferencer]


@dataclass
class View:
    """An image or a table with a title.

    Attributes:
        title: title.
        text: explanation in a sentence.
        name: name on the page.
        figure: RGB image, ``(height, width, 3)`` uint8; None for a table.
        rows: rows of a table; None for an image.
    """

    title: str
    text: str
    name: str
    figure: np.ndarray | None = None
    rows: list[dict[str, str]] | None = None

    @property
    def address(self) -> str:
        """The image as a data URL."""
        return image_address(self.figure)


def describe_prediction(inspection: Inspection) -> list[View]:
    """Return views of the image and of the top classes, or of segments and their shares."""
    kind = 'score' if 'score' in inspection.predictions[0] else 'share'
    rows = [{'class': each['name'], f'{kind} (%)': f'{100 * each[kind]:.2f}'} for each in inspection.predictions[:TOP]]
    text = 'Classes, highest first.' if inspection.overlay is None else 'Share of the pixels, largest first.'
    pixels = (255 * fit(inspection.image, 2 * TILE).movedim(0, -1)).byte().numpy()
    views = [
        View('Image', 'As the network sees it.', 'image', figure=pixels),
        View('Prediction', text, 'prediction', rows=rows),
    ]
    if inspection.overlay is not None:
        overlay = shrink(inspection.overlay, 2 * TILE)
        views.append(View('Segments', 'The prediction laid over the image.', 'segments', figure=overlay))
    return views


def describe_module(inspection: Inspection, name: str, head: int) -> list[View]:
    """Return views of a module: attention maps, relation of the tokens, and entropies.

    Args:
        inspection: result for an image.
        name: name of the module.
        head: number of a head, from 1; 0, or a head that a part does not have, for the mean over heads.
    """
    module, views = inspection.modules[name], []
    if module.maps is not None:
        maps = of_head(module.maps, head)
        cells = f'on a grid of {maps.shape[1]} x {maps.shape[2]} cells'
        text = f'Bright where a token looks: {_numbered(maps)}, {cells}. {SCALE} {RANGES}'
        views.append(
            View('Where each token looks', text, 'tokens', figure=draw_sheet(inspection.image, times_uniform(maps)))
        )
    if module.reads is not None:
        reads = of_head(module.reads, head)
        text = f'Bright where the pixels take much from a token: {_numbered(reads)}. {SCALE} {RANGES}'
        figure = draw_sheet(inspection.image, times_uniform(reads, 3))  # of all tokens, among which a pixel chooses
        views.append(View('Where each token is read', text, 'reads', figure=figure))
    if module.relation is not None:
        relation = of_head(module.relation, head)
        text = 'A row is a token, its columns what it takes from each token; a row sums to one, bright is much. '
        (found,) = describe_ranges(times_uniform(relation)[None])
        text += f'{found} times uniform. {SCALE}'
        views.append(View('How the tokens relate', text, 'relation', figure=draw_matrix(relation)))
        if relation.numel() <= MAX_TILES**2 // 4:
            rows = _tabulate({str(column): values for column, values in enumerate(relation.T, 1)})
            views.append(View('The same in numbers', 'Rows take from columns.', 'relation', rows=rows))
    if module.maps is not None:
        maps = of_head(module.maps, head).double()
        entropies = torch.special.entr(maps / maps.sum(dim=(-2, -1), keepdim=True)).sum(dim=(-2, -1))  # L
        text = f'In nats; {math.log(maps[0].numel()):.3f} if a token looked everywhere alike.'
        views.append(View('Entropy', text, 'entropy', rows=_tabulate({'entropy': entropies})))
    return views


def of_head(attention: Tensor, head: int) -> Tensor:
    """Select a head of ``(h, ...)``, from 1; return the mean over heads for 0 or a head that does not exist."""
    return attention[head - 1] if 0 < head <= len(attention) else attention.mean(dim=0)


def _tabulate(columns: dict[str, Tensor]) -> list[dict[str, str]]:
    """Return a row per token from columns ``(L,)``."""
    cells = zip(*([f'{value:.4f}' for value in values.tolist()] for values in columns.values()))
    return [{'token': str(index), **dict(zip(columns, row))} for index, row in enumerate(cells, 1)]


def _numbered(maps: Tensor) -> str:
    shown = min(len(maps), MAX_TILES)
    return f'tokens 1 to {shown}{f" of {len(maps)}" if shown < len(maps) else ""}, row by row'


def draw_sheet(image: Tensor, maps: Tensor) -> np.ndarray:
    """Draw the image once per token with its map overlaid by :func:`glow`, its number and range; RGB uint8."""
    tiles = glow(fit(image, TILE), maps[:MAX_TILES])
    for number, (tile, note) in enumerate(zip(tiles, describe_ranges(maps)), 1):
        for text, height in ((str(number), 14), (note, len(tile) - 6)):
            cv2.putText(tile, text, (4, height), cv2.FONT_HERSHEY_SIMPLEX, 0.4, (255, 255, 255), 1, cv2.LINE_AA)
    sheet = make_grid(torch.from_numpy(tiles).movedim(-1, 1), COLUMNS, padding=4, pad_value=255)
    return np.ascontiguousarray(sheet.movedim(0, -1).numpy())


def draw_matrix(relation: Tensor) -> np.ndarray:
    """Draw an attention matrix (rows attend to columns), black at 0, yellow at its maximum; RGB uint8.

    The maximum counts as at least twice the mean, so that a uniform matrix is not bright.
    """
    times = times_uniform(relation)
    colours = (255 * colormaps['inferno']((times / times.max().clamp(min=FLOOR)).numpy())[..., :3]).astype(np.uint8)
    cell = max(1, MATRIX // max(relation.shape))
    return np.ascontiguousarray(colours.repeat(cell, axis=0).repeat(cell, axis=1))


def fit(image: Tensor, longest: int) -> Tensor:
    """Resize an image ``(3, height, width)`` to a longer side of ``longest``; enlarge with nearest neighbours."""
    scale = longest / max(image.shape[1:])
    size = [max(1, round(side * scale)) for side in image.shape[1:]]
    return interpolate(image[None], size, mode='nearest-exact' if scale > 1 else 'area')[0].clamp(0, 1)


def write_report(models: Models, images: Sequence[ShownImage]) -> str:
    """Render an HTML report of all images and models: every module, the mean over heads and each head.

    All images are embedded in the file.

    Args:
        models: inferencers by name.
        images: images of the report.

    Raises:
        UserError: an image can't be read.
    """
    shown = []
    for image in images:
        described = []
        for model, inferencer in models.items():
            inspection = inspect_image(inferencer, image.source)
            modules = {
                name: [describe_module(inspection, name, head) for head in inspection.modules[name].heads]
                for name in inspection.modules
            }
            described.append((model, describe_prediction(inspection), modules.items()))
        shown.append((printable(image.caption), described))
    return render('explorer/report.html.j2', models=list(models), images=shown)
