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
from vt.engine.reporting import describe
from vt.errors import UserError
from vt.pages import COLOURS, RULES, render
from vt.untrusted_text import printable

from .inspection import Inspection, ShownImage, inspect_image, open_image
from .views import Models, describe_module, describe_prediction

HOST = '127.0.0.1'
MAX_FILE_SIZE = '32mb'
KEEP = 3600  # seconds after which uploads are deleted
PLACES = dict(  # in Gradio's theme, of each colour
    page=('body_background_fill', 'background_fill_primary'),
    panel=('background_fill_secondary', 'block_background_fill', 'input_background_fill'),
    line=('border_color_primary', 'block_border_color', 'input_border_color'),
    text=('body_text_color', 'block_title_text_color', 'block_label_text_color'),
    faint=('body_text_color_subdued',),
    accent=('border_color_accent', 'loader_color'),
)
THEME = gr.themes.Default(font=['system-ui', 'sans-serif'], font_mono=['ui-monospace', 'monospace']).set(
    **{place + end: f'var(--{name})' for name, places in PLACES.items() for place in places for end in ('', '_dark')}
)
MAX_TEXT = 1000  # characters of a line of the page
NO_TOKENS = '<p>This model has no part with attention over tokens.</p>'


class Panel:
    """The panel of one model: its name, its controls, and the views below them."""

    def __init__(self, name: str, inferencer: ClassificationInferencer | SegmentationInferencer) -> None:
        self.inferencer = inferencer
        with gr.Column(min_width=300):
            gr.HTML(f'<h2>{escape(printable(name))}</h2>')
            inspection = gr.State()
            self.choices = [gr.Dropdown([], label=label, interactive=True) for label in ('Module', 'Head')]
            views = gr.HTML()
        self.outputs = [inspection, *self.choices, views]
        options = dict(show_progress='hidden', trigger_mode='always_last', api_visibility='private')
        for choice in self.choices:
            choice.input(self.draw, [inspection, *self.choices], [*self.choices, views], **options)

    def show(self, source: str | np.ndarray, name: str | None, head: int | None) -> list[Any]:
        """Show an image, or raise a UserError; the selected module and head are kept if the model has them."""
        inspection = inspect_image(self.inferencer, source)
        return [inspection, *self.draw(inspection, name, head)]

    def draw(self, inspection: Inspection, name: str | None, head: int | None) -> list[Any]:
        """Return the controls, with what the inspection and the module have, and the views; None means not selected."""
        views = describe_prediction(inspection)
        if not inspection.modules:
            return [gr.update(visible=False)] * 2 + [render('explorer/views.html.j2', views=views) + NO_TOKENS]
        shown = name if name in inspection.modules else next(iter(inspection.modules))
        heads = inspection.modules[shown].heads
        number = head if head in heads else 0
        named = [(str(each) if each else 'mean', each) for each in heads]
        # Values that are still valid are not sent back, since the user may have changed them meanwhile.
        modules = gr.update(choices=[*inspection.modules], **({} if shown == name else dict(value=shown)))
        numbers = gr.update(choices=named, **({} if number == head else dict(value=number)))
        views += describe_module(inspection, shown, number)
        return [modules, numbers, render('explorer/views.html.j2', views=views)]


def build_page(models: Models, images: Sequence[ShownImage]) -> gr.Blocks:
    """Build the page of models, by name, with a gallery of images."""
    with gr.Blocks(title='Visual tokens', analytics_enabled=False, delete_cache=(KEEP, KEEP)) as page:
        gr.HTML(render('head.html.j2', title='Visual tokens'))
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
            try:
                for panel, name, head in zip(panels, chosen[::2], chosen[1::2]):
                    shown += panel.show(image.source, name, head)
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
        page.load(lambda known, *chosen: show(known[0], *chosen), [known, *chosen], outputs, **options)
    return page


def launch(page: gr.Blocks, port: int) -> None:
    """Serve a page on this machine only, until it is interrupted; a port that cannot be served is a UserError."""
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
            css=RULES,
            head=f'<style>{COLOURS}</style>',  # Gradio changes the selectors of css
            quiet=True,
            prevent_thread_lock=True,
        )
    except (OSError, OverflowError) as error:
        raise UserError(f'cannot serve on port {port}: choose another one with --port') from error
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
