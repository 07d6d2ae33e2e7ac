"""Fashion-MNIST: 70,000 images of clothes, from the four files that are published."""

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np
from mmpretrain.datasets import BaseDataset
from mmpretrain.datasets import FashionMNIST as Published

from vt.errors import MissingFileError, UserError
from vt.registry import DATASETS

FOLDERS = 'data/fashion-mnist', '/usr/share/datasets/fashion-mnist'  # the second is of Debian's dataset-fashion-mnist
HELD_OUT = 5000  # training images at the end of the file, for choosing
# Of each split the file that it is in, the images of that file, and which of them.
SPLITS = {
    'train': ('train', 60_000, slice(None)),
    'test': ('t10k', 10_000, slice(None)),
    'fit': ('train', 60_000, slice(-HELD_OUT)),
    'held-out': ('train', 60_000, slice(-HELD_OUT, None)),
}


@DATASETS.register_module()
class FashionMNIST(BaseDataset):
    """Fashion-MNIST (Xiao et al., 2017): 60,000 training and 10,000 test images of ten kinds of clothes, 28x28, grey.

    MMPretrain's class of this name reads unpacked files alone, and the training images for ``split='test'`` unless
    ``test_mode=True`` is set too. This one reads what a mirror or Debian's package ``dataset-fashion-mnist`` has,
    packed or not, and fetches nothing. Samples are in memory: ``img`` (28, 28, 3) uint8, three equal channels, and
    ``gt_label``.

    Args:
        data_root: folder of the four files, ``train-images-idx3-ubyte.gz`` and so on, or the same without ``.gz``. By
            default ``data/fashion-mnist`` where that is a folder, else Debian's.
        split: ``'train'``; ``'test'``; or of the training images ``'held-out'``, the last 5,000, by which settings are
            chosen, and ``'fit'``, the others.
        edge: black pixels that each side gets; 2 makes images of 32x32.
        **kwargs: other options of :class:`mmpretrain.datasets.BaseDataset`, such as ``pipeline`` and ``indices``.

    Attributes:
        image_size: height and width, known without the files.

    Raises:
        UserError: ``split`` has another value; ``edge`` is negative; a file holds something else.
        MissingFileError: there is no such folder or file.
    """

    METAINFO = Published.METAINFO

    def __init__(self, data_root: str | None = None, split: str = 'train', edge: int = 0, **kwargs) -> None:
        if split not in SPLITS:
            raise UserError(f'FashionMNIST: split={split!r} is none of {", ".join(SPLITS)}')
        if edge < 0:
            raise UserError(f'FashionMNIST: edge={edge} must be 0 or more')
        self.split, self.edge, self.image_size = split, edge, (28 + 2 * edge, 28 + 2 * edge)
        super().__init__(ann_file='', data_root=data_root or '', test_mode=split in ('test', 'held-out'), **kwargs)

    def load_data_list(self) -> list[dict]:
        """One dict an image, in the order of the files."""
        name, number, chosen = SPLITS[self.split]
        folder = find_folder(self.data_root)
        images = read_array(folder / f'{name}-images-idx3-ubyte', (number, 28, 28))[chosen]
        labels = read_array(folder / f'{name}-labels-idx1-ubyte', (number,))[chosen]
        images = np.pad(images, ((0, 0), *[(self.edge, self.edge)] * 2))
        images = np.repeat(images[..., None], 3, axis=-1)  # n, height, width, 3
        return [dict(img=image, gt_label=int(label)) for image, label in zip(images, labels)]

    def extra_repr(self) -> list[str]:
        return [f'Split: \t{self.split}']


def find_folder(data_root: str) -> Path:
    """The folder of the files: the one that is named, or one of ``FOLDERS``; a MissingFileError if there is none."""
    folder = next((path for path in map(Path, [data_root] if data_root else FOLDERS) if path.is_dir()), None)
    if folder is None:
        remedy = 'correct data_root' if data_root else 'apt-get install dataset-fashion-mnist, or set data_root'
        raise MissingFileError(f'there is no Fashion-MNIST in {data_root or " or ".join(FOLDERS)}: {remedy}')
    return folder


def read_array(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    """The uint8 array of a file in the format of MNIST, ``path`` or ``path.gz``, which must have this shape."""
    packed = path.with_name(f'{path.name}.gz')
    if not (path.is_file() or packed.is_file()):
        raise MissingFileError(f'there is no {packed} and no {path.name}: put it there, or correct data_root')
    found = path if path.is_file() else packed
    try:
        content = found.read_bytes() if found is path else gzip.decompress(found.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f'{found} is damaged ({error}): fetch it again') from error
    header = struct.pack(f'>I{len(shape)}I', 0x0800 + len(shape), *shape)
    if not content.startswith(header) or len(content) != len(header) + math.prod(shape):
        sizes = 'x'.join(map(str, shape))
        raise UserError(f'{found} is no file of {sizes} bytes in the format of MNIST: fetch it again')
    return np.frombuffer(content, np.uint8, offset=len(header)).reshape(shape)
