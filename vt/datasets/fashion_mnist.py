"""Fashion-MNIST, read from its four published files."""

from pathlib import Path

import numpy as np
from mmpretrain.datasets import BaseDataset
from mmpretrain.datasets import FashionMNIST as Published
from mmpretrain.datasets.utils import open_maybe_compressed_file

from vt.errors import MissingFileError, UserError
from vt.registry import DATASETS

FOLDERS = 'data/fashion-mnist', '/usr/share/datasets/fashion-mnist'  # the second: Debian's dataset-fashion-mnist
HELD_OUT = 5000  # number of training images at the end of the file for choosing settings
# File of each split, and the part to use.
SPLIT_FILES = {
    'train': ('train', slice(None)),
    'test': ('t10k', slice(None)),
    'fit': ('train', slice(-HELD_OUT)),
    'held-out': ('train', slice(-HELD_OUT, None)),
}


@DATASETS.register_module()
class FashionMNIST(BaseDataset):
    """Fashion-MNIST (Xiao et al., 2017): 60,000 training and 10,000 test images of ten kinds of clothes, 28x28, grey.

    It reads the published files or those of Debian's package ``dataset-fashion-mnist``, compressed or not, and
    downloads nothing. MMPretrain's class of this name reads only uncompressed files, and needs ``test_mode=True`` in
    addition to ``split='test'``. Samples are in memory: ``img`` (28, 28, 3) uint8 with three equal channels, and
    ``gt_label``.

    Args:
        data_root: folder of the four files ``train-images-idx3-ubyte.gz`` etc., or the same without ``.gz``. By default
            ``data/fashion-mnist`` if that is a folder, else Debian's.
        split: ``'train'`` or ``'test'``; ``'held-out'`` (the last 5,000 training images, for choosing settings) or
            ``'fit'`` (the other training images).
        edge: width of a black border in pixels; 2 gives images of 32x32.
        **kwargs: other options of :class:`mmpretrain.datasets.BaseDataset`, such as ``pipeline`` and ``indices``.

    Attributes:
        image_size: height and width, available without the files.

    Raises:
        UserError: ``split`` has another value.
        MissingFileError: the folder or a file does not exist.
    """

    METAINFO = Published.METAINFO

    def __init__(self, data_root: str | None = None, split: str = 'train', edge: int = 0, **kwargs) -> None:
        if split not in SPLIT_FILES:
            raise UserError(f'FashionMNIST: split={split!r} must be one of {", ".join(SPLIT_FILES)}')
        self.split, self.edge, self.image_size = split, edge, (28 + 2 * edge, 28 + 2 * edge)
        super().__init__(ann_file='', data_root=data_root or '', test_mode=split in ('test', 'held-out'), **kwargs)

    def load_data_list(self) -> list[dict]:
        """Return one dict per image, in the order of the files."""
        name, chosen = SPLIT_FILES[self.split]
        folder = find_folder(self.data_root)
        images = read_array(folder / f'{name}-images-idx3-ubyte', (-1, 28, 28))[chosen]
        labels = read_array(folder / f'{name}-labels-idx1-ubyte', (-1,))[chosen]
        images = np.pad(images, ((0, 0), *[(self.edge, self.edge)] * 2))
        images = np.repeat(images[..., None], 3, axis=-1)  # n, height, width, 3
        return [dict(img=image, gt_label=int(label)) for image, label in zip(images, labels, strict=True)]


def find_folder(data_root: str) -> Path:
    """Return the folder of the files: ``data_root``, or the first of ``FOLDERS``; MissingFileError without any."""
    folder = next((path for path in map(Path, [data_root] if data_root else FOLDERS) if path.is_dir()), None)
    if folder is None:
        remedy = 'correct data_root' if data_root else 'apt-get install dataset-fashion-mnist, or set data_root'
        raise MissingFileError(f'there is no Fashion-MNIST in {data_root or " or ".join(FOLDERS)}: {remedy}')
    return folder


def read_array(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    """Read a uint8 array of a given shape from a file in the format of MNIST, ``path`` or ``path.gz``."""
    packed = path.with_name(f'{path.name}.gz')
    if not (path.is_file() or packed.is_file()):
        raise MissingFileError(f'there is neither {packed} nor {path.name}: add the file, or correct data_root')
    with open_maybe_compressed_file(str(path if path.is_file() else packed)) as file:
        header = 4 * (1 + len(shape))  # a number that tells the format, and one per axis
        return np.frombuffer(file.read(), np.uint8, offset=header).reshape(shape)
