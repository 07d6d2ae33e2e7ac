"""What models make of pictures as one file of HTML, with all its pictures inside."""

from collections.abc import Sequence

from vt.apis import ClassificationInferencer, SegmentationInferencer
from vt.untrusted_text import printable

from .looking import Look, Picture, look_at
from .views import STYLE, View, describe_module, describe_prediction, render

Models = dict[str, ClassificationInferencer | SegmentationInferencer]


def write_report(models: Models, pictures: Sequence[Picture]) -> str:
    """A report of each picture by each model, side by side: every module, the mean over heads and each head.

    The chosen pixel is that in the middle.

    Args:
        models: by name.
        pictures: to look at.

    Raises:
        UserError: a picture can't be read.
    """
    shown = []
    for picture in pictures:
        looks = {name: look_at(inferencer, picture.source) for name, inferencer in models.items()}
        shown.append((printable(picture.caption), [(name, *_describe(look)) for name, look in looks.items()]))
    return render('report.html.j2', models=list(models), pictures=shown, style=STYLE)


def _describe(look: Look) -> tuple[list[View], list[tuple[str, list[View], list[list[View]]]]]:
    """Views of the prediction; and of each module its name, the views of the mean over heads, and those of each."""
    height, width = look.image.shape[1:]
    pixel = width // 2, height // 2
    modules = []
    for name, module in look.modules.items():
        heads = range(1, module.num_heads + 1) if module.num_heads > 1 else ()
        views = [describe_module(look, name, head, pixel) for head in (0, *heads)]
        modules.append((name, views[0], views[1:]))
    return describe_prediction(look, pixel), modules
