"""A sample that can't be loaded is named by its file."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mmcv.transforms import BaseTransform

from .error_messages import SampleError, allocated, describe, is_out_of_memory
from .error_place import find_innermost

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
        step = find_innermost(error, BaseTransform)
        where = f' ({type(step).__name__})' if step is not None else ''
        raise SampleError(f'{_name_of(dataset, index)} cannot be loaded{where}: {describe_loading(error)}') from error


def describe_loading(error: Exception) -> str:
    """One line that says why an image or a mask can't be loaded."""
    if is_out_of_memory(error):
        return f'out of memory{allocated(error)}: lower the size that the pipeline gives to images, or num_workers'
    line = describe(error)
    return 'it is no image, or damaged' if any(sign in line for sign in NO_IMAGE) else line


def _name_of(dataset: Any, index: int) -> str:
    try:
        info = dataset.get_data_info(index)
        files = [str(info[key]) for key in FILES if info.get(key)]
    except Exception:  # the annotation itself is broken, or there is none
        files = []
    return ' or '.join(files) or f'sample {index} of {type(dataset).__name__}'
