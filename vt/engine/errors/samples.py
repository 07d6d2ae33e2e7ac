"""A sample that can't be loaded is named by its file."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mmcv.transforms import BaseTransform

from .messages import SampleError, allocated, describe, is_out_of_memory
from .place import find_innermost

MAX_STEP = 400  # characters of a step and its settings
DAMAGED = 'it is no image, or damaged'
FILES = ('img_path', 'seg_map_path')
# What OpenCV, mmcv and Pillow say of a file that is no image.
NO_IMAGE = ('!buf.empty()', 'failed to load image', 'cannot identify image file', "'NoneType' object has no attribute")


@contextmanager
def naming_sample(dataset: Any, index: int) -> Iterator[None]:
    """Name the files of a sample, and the step of the pipeline, in whatever error loading it raises.

    Args:
        dataset: has ``get_data_info``, as OpenMMLab's data sets do.
        index: of the sample.

    Raises:
        SampleError: loading failed; its message is one line.
    """
    try:
        yield
    except SampleError:
        raise
    except Exception as error:
        line = describe_loading(error)
        where = _step_of(error, isinstance(error, OSError) or line == DAMAGED)
        raise SampleError(f'{_name_of(dataset, index)} cannot be loaded{where}: {line}') from error


def describe_loading(error: Exception) -> str:
    """One line that says why an image or a mask can't be loaded."""
    if is_out_of_memory(error):
        return f'out of memory{allocated(error)}: lower the size that the pipeline gives to images, or num_workers'
    step = find_innermost(error, BaseTransform)
    if isinstance(error, KeyError) and error.args and str(error.args[0]) not in _settings_of(step):
        return f'it needs {error.args[0]!r}, which no earlier step of the pipeline gives'
    line = describe(error)
    return DAMAGED if any(sign in line for sign in NO_IMAGE) else line


def _step_of(error: Exception, is_the_files_fault: bool) -> str:
    """The step of the pipeline that failed, with its settings where they may be at fault."""
    step = find_innermost(error, BaseTransform)
    if step is None:
        return ''
    text = type(step).__name__ if is_the_files_fault else _settings_of(step)
    return f' ({text})' if len(text) <= MAX_STEP else f' ({text[: MAX_STEP - 2]} …)'


def _settings_of(step: BaseTransform | None) -> str:
    try:
        return ' '.join(repr(step).split())
    except Exception:  # one of them can't be printed
        return type(step).__name__


def _name_of(dataset: Any, index: int) -> str:
    try:
        info = dataset.get_data_info(index)
        files = [str(info[key]) for key in FILES if info.get(key)]
    except Exception:  # the annotation itself is broken, or there is none
        files = []
    return ' or '.join(files) or f'sample {index} of {type(dataset).__name__}'
