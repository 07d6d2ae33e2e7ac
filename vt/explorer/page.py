"""The web page of the explorer: images to select or upload, and a panel per model."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware

from vt.apis import ClassificationInferencer, SegmentationInferencer
from vt.engine.errors import describe
from vt.errors import UserError
from vt.untrusted_text import printable

from .looking import Look, ShownImage, look_at, open_image
from .views import STYLE, Models, View, describe_module, describe_prediction, draw_token, render

HOST = '127.0.0.1'
MAX_FILE_SIZE = '32mb'
KEEP = 3600  # seconds after which uploads are deleted
THEME = gr.themes.Default(font=['system-ui', 'sans-serif'], font_mono=['ui-monospace', 'monospace'])
MAX_TEXT = 1000  # characters of a line of the page
NO_TOKENS = '<p>This model has no part with attention over tokens.</p>'


class Panel:
    """The panel of one model: its controls, and the views below them.

    Args:
        name: name of the model.
        inferencer: inferencer of the model.
    """

    def __init__(self, name: str, inferencer: ClassificationInferencer | SegmentationInferencer) -> None:
        self.name = name
        self.inferencer = inferencer
        with gr.Column(min_width=300):
            gr.HTML(f'<h2>{escape(printable(name))}</h2>')
            self.look = gr.State()
            self.module = gr.Dropdown([], label='Module', interactive=True)
            self.head = gr.Dropdown([], label='Head', interactive=True)
            self.token = gr.Slider(1, 2, 1, step=1, label='Token')
            self.figure = gr.Image(
                label='Where the token looks; click a pixel',
                interactive=False,
                format='jpeg',
                buttons=['download'],
                elem_classes='figure',
            )
            with gr.Row():
                self.column = gr.Number(precision=0, minimum=0, min_width=120, label='Pixel, column')
                self.row = gr.Number(precision=0, minimum=0, min_width=120, label='Pixel, row')
            self.views = gr.HTML()
        self.choices = [self.module, self.head, self.token, self.column, self.row]
        self.outputs = [self.look, *self.choices, self.figure, self.views]

    def connect(self) -> None:
        """Update the views whenever a control changes."""
        inputs, drawn = [self.look, *self.choices], [self.figure, self.views]
        options = dict(show_progress='hidden', trigger_mode='always_last', api_visibility='private')
        self.module.input(self.settle, inputs, [*self.choices, *drawn], **options)
        for choice in self.choices[1:]:
            choice.input(self.draw, inputs, drawn, **options)
        self.figure.select(self.click, inputs, [self.column, self.row, *drawn], **options)

    def show(self, source: str | np.ndarray, *chosen: Any) -> list[Any]:
        """Show an image; the selected controls are kept if the model has them.

        Raises:
            UserError: the image can't be read.
        """
        look = look_at(self.inferencer, source)
        return [look, *self.settle(look, *chosen)]

    def settle(
        self, look: Look, name: str | None, head: int | None, token: int | None, column: int | None, row: int | None
    ) -> list[Any]:
        """Return the controls, limited to what the look and the module have, and the views; None means not selected."""
        if not look.modules:
            hidden = [gr.update(visible=False)] * (len(self.choices) + 1)
            return [*hidden, self._render(describe_prediction(look, look.middle)) + NO_TOKENS]
        chosen = name, head, token, column, row
        name = name if name in look.modules else next(iter(look.modules))
        module = look.modules[name]
        heads = module.num_heads if module.num_heads > 1 else 0
        pixel = [middle if own is None else own for own, middle in zip((column, row), look.middle)]
        last = [side - 1 for side in look.image.shape[:0:-1]]  # column and row
        now = name, min(head or 0, heads), min(token or 1, module.num_tokens), *map(min, pixel, last)
        limits = [
            dict(choices=list(look.modules)),
            dict(choices=[('mean', 0), *((str(number), number) for number in range(1, heads + 1))]),
            dict(maximum=max(module.num_tokens, 2)),
            dict(maximum=last[0]),
            dict(maximum=last[1]),
        ]
        # Values that are still valid are not sent back, since the user may have changed them meanwhile.
        choices = [
            gr.update(**limit, **({} if before == value else dict(value=value)))
            for limit, before, value in zip(limits, chosen, now)
        ]
        return [*choices, *self.draw(look, *now)]

    def draw(self, look: Look, name: str, head: int, token: int, column: int, row: int) -> list[Any]:
        """Return the image with the map of a token, and the views."""
        pixel = column, row
        views = [*describe_prediction(look, pixel), *describe_module(look, name, head, pixel)]
        return [draw_token(look, look.modules[name], head, token, pixel), self._render(views)]

    def click(
        self, look: Look, name: str, head: int, token: int, column: int, row: int, place: gr.SelectData
    ) -> list[Any]:
        """Select the pixel that was clicked."""
        shown = draw_token(look, look.modules[name], head, token, (column, row)).shape[1::-1]
        sides = look.image.shape[:0:-1]  # width and height
        pixel = [min(side - 1, int(index * side / own)) for index, side, own in zip(place.index, sides, shown)]
        return [*pixel, *self.draw(look, name, head, token, *pixel)]

    def _render(self, views: list[View]) -> str:
        return render('views.html.j2', views=views, prefix=self.name)


def build_page(models: Models, images: Sequence[ShownImage]) -> gr.Blocks:
    """Build the page of models, by name, with a gallery of images."""
    with gr.Blocks(title='Visual tokens', analytics_enabled=False, delete_cache=(KEEP, KEEP)) as page:
        gr.Markdown('# Visual tokens')
        known = gr.State(list(images))
        with gr.Row():
            files = gr.File(
                label='Drop images here, or click to choose them',
                file_count='multiple',
                file_types=['image', '.npy', '.tif', '.tiff'],
                height=160,
                min_width=300,
                elem_id='files',
            )
            gallery = gr.Gallery(
                _thumbnails(images),
                label='Images',
                columns=6,
                height=160,
                min_width=300,
                allow_preview=False,
                interactive=False,
                buttons=[],
                elem_id='images',
            )
        status = gr.HTML(_say('Drop an image, or choose one.'), elem_id='status')
        with gr.Row():
            panels = [Panel(name, inferencer) for name, inferencer in models.items()]
        chosen = [choice for panel in panels for choice in panel.choices]
        outputs = [status, *(output for panel in panels for output in panel.outputs)]

        def show(image: ShownImage, *chosen: Any) -> list[Any]:
            shown: list[Any] = []
            each = len(chosen) // len(panels)
            try:
                for index, panel in enumerate(panels):
                    shown += panel.show(image.source, *chosen[index * each :][:each])
            except Exception as error:
                return [_say(_explain(error), 'alert'), *[gr.skip()] * (len(outputs) - 1)]
            return [_say(f'Shown: {image.caption}'), *shown]

        def pick(known: list[ShownImage], event: gr.SelectData, *chosen: Any) -> list[Any]:
            return show(known[event.index], *chosen)

        def add(paths: list[str] | None, known: list[ShownImage], *chosen: Any) -> list[Any]:
            added, refused = [], []
            for path in paths or []:
                try:
                    added.append(open_image(path))
                except Exception as error:
                    refused.append(_explain(error).replace(path, Path(path).name))
            known = [*added, *known]
            shown = show(added[0], *chosen) if added else [gr.skip()] * len(outputs)
            if refused:
                shown[0] = _say('; '.join(refused), 'alert')
            return [None, known, _thumbnails(known), *shown]

        options = dict(api_visibility='private', concurrency_id='model', show_progress='minimal')
        files.upload(add, [files, known, *chosen], [files, known, gallery, *outputs], **options)
        gallery.select(pick, [known, *chosen], outputs, **options)
        if images:
            page.load(lambda known: show(known[0], *[None] * len(chosen)), [known], outputs, **options)
        for panel in panels:
            panel.connect()
    return page


def launch(page: gr.Blocks, port: int) -> None:
    """Serve a page on this machine only, until it is interrupted.

    Raises:
        UserError: the port cannot be served.
    """
    hosts = Middleware(TrustedHostMiddleware, allowed_hosts=[HOST, 'localhost'])  # against DNS rebinding
    try:
        page.launch(
            server_name=HOST,
            server_port=port,
            share=False,
            max_file_size=MAX_FILE_SIZE,
            strict_cors=True,
            app_kwargs=dict(middleware=[hosts]),
            run_history=False,
            ssr_mode=False,
            footer_links=[],
            theme=THEME,
            css=STYLE,
            quiet=True,
            prevent_thread_lock=True,
        )
    except (OSError, OverflowError) as error:
        raise UserError(f'port {port} cannot be served: give another one with --port') from error
    print(f'http://{HOST}:{port}/ until Ctrl-C', flush=True)
    page.block_thread()


def _thumbnails(images: Sequence[ShownImage]) -> list[tuple[np.ndarray, str]]:
    return [(image.thumbnail, printable(image.caption, MAX_TEXT)) for image in images]


def _say(text: str, role: str = 'status') -> str:
    return f'<p role="{role}">{escape(printable(text, MAX_TEXT))}</p>'


def _explain(error: Exception) -> str:
    """Return the message of a user error; raise any other error."""
    line = describe(error)
    if line is None:
        raise error
    return line
