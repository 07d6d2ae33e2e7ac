"""Views of a model's prediction and attention: images and tables for the page, and a report in one file."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import cv2
import numpy as np
import torch
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from matplotlib import colormaps
from torch import Tensor
from torch.nn.functional import interpolate
from torchvision.utils import make_grid

from vt.analysis.attention.token_figure import glow
from vt.analysis.attention.token_measures import attention_entropy, uniform_entropy
from vt.analysis.tables import to_csv
from vt.apis import ClassificationInferencer, SegmentationInferencer
from vt.untrusted_text import printable

from .looking import Look, Module, ShownImage, look_at

FIGURE, TILE = 448, 128  # pixels of the longer side
COLUMNS, MAX_TILES = 4, 64
MATRIX = 384
CHOSEN = (0, 255, 255)  # colour of markers of the selected pixel
TOP = 5  # classes
TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True
)
STYLE = (Path(__file__).parent / 'style.css').read_text()
Models = dict[str, ClassificationInferencer | SegmentationInferencer]


@dataclass
class View:
    """An image or a table with a title.

    Attributes:
        title: title.
        text: explanation in a sentence.
        name: file name for downloads, without suffix.
        figure: RGB image, ``(height, width, 3)`` uint8; None for a table.
        rows: rows of a table; None for an image.
    """

    title: str
    text: str
    name: str
    figure: np.ndarray | None = None
    rows: list[dict[str, str]] | None = None

    @property
    def file(self) -> str:
        """File name for downloads."""
        return f'{self.name}.csv' if self.figure is None else f'{self.name}.jpg'

    @property
    def address(self) -> str:
        """Content as a data URL."""
        if self.figure is None:
            return f'data:text/csv;charset=utf-8,{quote(to_csv(self.rows))}'
        _, content = cv2.imencode('.jpg', self.figure[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 92])
        return f'data:image/jpeg;base64,{base64.b64encode(content).decode()}'


def describe_prediction(look: Look, pixel: tuple[int, int]) -> list[View]:
    """Return views of the image with the selected pixel and of the top classes, or of segments and their shares."""
    kind = 'score' if 'score' in look.predictions[0] else 'share'
    rows = [{'class': each['name'], f'{kind} (%)': f'{100 * each[kind]:.2f}'} for each in look.predictions[:TOP]]
    text = 'Classes, highest first.' if look.overlay is None else 'Share of the pixels, largest first.'
    views = [
        View('Image', 'As the network sees it, with the chosen pixel.', 'image', figure=mark(look.image, pixel)),
        View('Prediction', text, 'prediction', rows=rows),
    ]
    if look.overlay is not None:
        scale = max(1, 2 * TILE // max(look.overlay.shape))
        overlay = look.overlay.repeat(scale, axis=0).repeat(scale, axis=1)
        views.append(View('Segments', 'The prediction laid over the image.', 'segments', figure=overlay))
    if look.heat is not None:
        heat = glow(fit(look.image, 2 * TILE), look.heat[None])[0]
        views.append(View('Heat map', look.heat_text, 'heat-map', figure=heat))
    return views


def describe_module(look: Look, name: str, head: int, pixel: tuple[int, int] | None = None) -> list[View]:
    """Return views of a module: attention maps, attention of a pixel, relation of the tokens, and measures.

    Args:
        look: result for an image.
        name: name of the module.
        head: number of a head, from 1; 0, or a head that a part does not have, for the mean over heads.
        pixel: column and row in the image of ``look``.
    """
    module, views = look.modules[name], []
    if module.maps is not None:
        maps = of_head(module.maps, head)
        text = f'Bright where a token looks: {_numbered(maps)}, on a grid of {maps.shape[1]} x {maps.shape[2]} cells.'
        views.append(View('Where each token looks', text, 'tokens', figure=draw_sheet(look.image, maps)))
    if module.reads is not None:
        reads = of_head(module.reads, head)
        text = f'Bright where the pixels take much from a token: {_numbered(reads)}.'
        views.append(View('Where each token is read', text, 'reads', figure=draw_sheet(look.image, reads)))
    if pixel is not None and (module.maps is not None or module.reads is not None):
        text = f'Of the pixel at column {pixel[0]}, row {pixel[1]}, by the cell of the grid that it lies in.'
        views.append(View('The chosen pixel', text, 'pixel', rows=tabulate_pixel(look, module, head, pixel)))
    if module.relation is not None:
        relation = of_head(module.relation, head)
        text = 'A row is a token, its columns what it takes from each token; a row sums to one, bright is much.'
        views.append(View('How the tokens relate', text, 'relation', figure=draw_matrix(relation)))
        if relation.numel() <= MAX_TILES**2 // 4:
            rows = _tabulate({str(column): values for column, values in enumerate(relation.T, 1)}, digits=4)
            views.append(View('The same in numbers', 'Rows take from columns.', 'relation', rows=rows))
    if module.maps is not None:
        text = (
            f'Entropy in nats, {uniform_entropy(*module.maps.shape[-2:]):.3f} if a token looked everywhere alike. '
            'Spread of its look, reach, the distance of pixels that meet in it, in diagonals of the image, and what '
            'it takes from others, are those of the mean over heads.'
        )
        views.append(View('Entropy and reach', text, 'measures', rows=tabulate_tokens(module, head)))
    return views


def of_head(attention: Tensor, head: int) -> Tensor:
    """Select a head of ``(h, ...)``, from 1; return the mean over heads for 0 or a head that does not exist."""
    return attention[head - 1] if 0 < head <= len(attention) else attention.mean(dim=0)


def cell_of(look: Look, pixel: tuple[int, int], grid: tuple[int, int]) -> tuple[int, int]:
    """Return row and column of the grid cell that contains a pixel, given as column and row."""
    height, width = look.image.shape[1:]
    return pixel[1] * grid[0] // height, pixel[0] * grid[1] // width


def tabulate_pixel(look: Look, module: Module, head: int, pixel: tuple[int, int]) -> list[dict[str, str]]:
    """Return a row per token: attention of the pixel to the token, and of the token to the cell of the pixel."""
    columns = {}
    for title, attention in {'the pixel takes (%)': module.reads, "of the token's look (%)": module.maps}.items():
        if attention is not None:
            row, column = cell_of(look, pixel, attention.shape[-2:])
            columns[title] = 100 * of_head(attention, head)[:, row, column]
    return _tabulate(columns, digits=3)


def tabulate_tokens(module: Module, head: int) -> list[dict[str, str]]:
    """Return a row per token with the available measures."""
    maps = of_head(module.maps, head).double()
    columns = {'entropy': attention_entropy(maps / maps.sum(dim=(-2, -1), keepdim=True))}
    if 'reach' in module.measures:
        columns |= {key: module.measures[key].sqrt() for key in ('spread', 'reach')}
        columns['from others (%)'] = 100 * module.measures['to_others']
    return _tabulate({key: values for key, values in columns.items() if values.isfinite().all()}, digits=4)


def _tabulate(columns: dict[str, Tensor], digits: int) -> list[dict[str, str]]:
    """Return a row per token from columns ``(L,)``."""
    cells = zip(*([f'{value:.{digits}f}' for value in values.tolist()] for values in columns.values()))
    return [{'token': str(index), **dict(zip(columns, row))} for index, row in enumerate(cells, 1)]


def _numbered(maps: Tensor) -> str:
    shown = min(len(maps), MAX_TILES)
    return f'tokens 1 to {shown}{f" of {len(maps)}" if shown < len(maps) else ""}, row by row'


def mark(image: Tensor, pixel: tuple[int, int]) -> np.ndarray:
    """Draw a cross on a pixel (column and row) of an image; RGB uint8."""
    figure = _pixels(fit(image, 2 * TILE))
    scale = max(figure.shape) / max(image.shape)
    place = [int((each + 0.5) * scale) for each in pixel]
    return cv2.drawMarker(figure, place, CHOSEN, cv2.MARKER_CROSS, markerSize=12, thickness=1)


def draw_sheet(image: Tensor, maps: Tensor) -> np.ndarray:
    """Draw the image once per token with its map overlaid by :func:`glow`, and the token's number; RGB uint8."""
    tiles = glow(fit(image, TILE), maps[:MAX_TILES])
    for number, tile in enumerate(tiles, 1):
        cv2.putText(tile, str(number), (4, 14), cv2.FONT_HERSHEY_SIMPLEX, 0.45, (255, 255, 255), 1, cv2.LINE_AA)
    sheet = make_grid(torch.from_numpy(tiles).movedim(-1, 1), COLUMNS, padding=4, pad_value=255)
    return np.ascontiguousarray(sheet.movedim(0, -1).numpy())


def draw_token(look: Look, module: Module, head: int, token: int, pixel: tuple[int, int]) -> np.ndarray:
    """Draw the map of one token, with a rectangle around the cell of a pixel; RGB uint8."""
    image = fit(look.image, FIGURE)
    maps = module.reads if module.maps is None else module.maps
    if maps is None:
        return _pixels(image)
    figure = glow(image, of_head(maps, head)[token - 1 : token])[0]
    grid = maps.shape[-2:]
    row, column = cell_of(look, pixel, grid)
    (top, bottom), (left, right) = (
        (cell * side // cells, (cell + 1) * side // cells - 1)
        for cell, side, cells in zip((row, column), figure.shape, grid)
    )
    return cv2.rectangle(np.ascontiguousarray(figure), (left, top), (right, bottom), CHOSEN, 2)


def draw_matrix(relation: Tensor) -> np.ndarray:
    """Draw an attention matrix (rows attend to columns) from 0, black, to its maximum, yellow; RGB uint8."""
    colours = (255 * colormaps['inferno']((relation / relation.max()).numpy())[..., :3]).astype(np.uint8)
    cell = max(1, MATRIX // max(relation.shape))
    return np.ascontiguousarray(colours.repeat(cell, axis=0).repeat(cell, axis=1))


def fit(image: Tensor, longest: int) -> Tensor:
    """Resize an image ``(3, height, width)`` to a longer side of ``longest``; enlarge with nearest neighbours."""
    height, width = image.shape[1:]
    scale = longest / max(height, width)
    size = [max(1, round(side * scale)) for side in (height, width)]
    mode = dict(mode='nearest-exact') if scale > 1 else dict(mode='area')
    return interpolate(image[None], size, **mode)[0].clamp(0, 1)


def _pixels(image: Tensor) -> np.ndarray:
    return np.ascontiguousarray((255 * image.permute(1, 2, 0)).byte().numpy())


def render(template: str, **context: object) -> str:
    """Render a template of this package as HTML."""
    return TEMPLATES.get_template(template).render(**context)


def write_report(models: Models, images: Sequence[ShownImage]) -> str:
    """Render an HTML report of all images and models: every module, the mean over heads and each head.

    The selected pixel is the central one. All images are embedded in the file.

    Args:
        models: inferencers by name.
        images: images of the report.

    Raises:
        UserError: an image can't be read.
    """
    shown = []
    for image in images:
        looks = {name: look_at(inferencer, image.source) for name, inferencer in models.items()}
        shown.append((printable(image.caption), [(name, *_describe(look)) for name, look in looks.items()]))
    return render('report.html.j2', models=list(models), images=shown, style=STYLE)


def _describe(look: Look) -> tuple[list[View], list[tuple[str, list[list[View]]]]]:
    """Return views of the prediction, and for each module its name and views, of the mean over heads and each head."""
    modules = []
    for name, module in look.modules.items():
        heads = range(module.num_heads + 1) if module.num_heads > 1 else (0,)
        modules.append((name, [describe_module(look, name, head, look.middle) for head in heads]))
    return describe_prediction(look, look.middle), modules
