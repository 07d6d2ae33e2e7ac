"""Fashion-MNIST from files in its published format, packed or not, which are made here."""

import gzip
import struct

import numpy as np
import pytest

from vt.datasets import FashionMNIST
from vt.errors import MissingFileError, UserError

NUMBERS = dict(train=5_400, t10k=300)


@pytest.fixture(scope='module')
def arrays():
    numbers = np.random.default_rng(0)
    return {
        f'{name}-{kind}-idx{len(shape)}-ubyte': numbers.integers(0, high, shape, dtype=np.uint8)
        for name, number in NUMBERS.items()
        for kind, shape, high in (('images', (number, 28, 28), 256), ('labels', (number,), 10))
    }


@pytest.fixture(scope='module')
def folder(arrays, tmp_path_factory):
    """The training files unpacked, those of the test packed."""
    folder = tmp_path_factory.mktemp('fashion')
    for name, array in arrays.items():
        content = struct.pack(f'>I{array.ndim}I', 0x0800 + array.ndim, *array.shape) + array.tobytes()
        path = folder / (name if 'train' in name else f'{name}.gz')
        path.write_bytes(content if 'train' in name else gzip.compress(content))
    return folder


@pytest.mark.parametrize(
    ('split', 'name', 'chosen'),
    [('train', 'train', ()), ('test', 't10k', ()), ('fit', 'train', (0, 400)), ('held-out', 'train', (400, 5_400))],
)
def test_splits_are_what_the_files_hold(split, name, chosen, arrays, folder):
    chosen = slice(*chosen or (None,))
    dataset = FashionMNIST(str(folder), split, serialize_data=False)
    images, labels = arrays[f'{name}-images-idx3-ubyte'][chosen], arrays[f'{name}-labels-idx1-ubyte'][chosen]
    assert len(dataset) == len(images)
    assert np.array_equal(dataset.get_gt_labels(), labels)
    for index in (0, len(images) // 2, len(images) - 1):
        info = dataset.get_data_info(index)
        assert np.array_equal(info['img'], np.repeat(images[index][..., None], 3, -1))
        assert info['gt_label'] == labels[index]


def test_what_is_no_such_file_raises(folder, tmp_path):
    with pytest.raises(UserError, match="split='val' must be one of train, test, fit, held-out"):
        FashionMNIST(str(folder), 'val')
    with pytest.raises(MissingFileError, match=r'there is neither .*train-images-idx3-ubyte.gz nor train-images'):
        FashionMNIST(str(tmp_path))
    (tmp_path / 't10k-labels-idx1-ubyte.gz').write_bytes((folder / 't10k-labels-idx1-ubyte.gz').read_bytes())
    images = gzip.decompress((folder / 't10k-images-idx3-ubyte.gz').read_bytes())
    (tmp_path / 't10k-images-idx3-ubyte.gz').write_bytes(gzip.compress(images[: 16 + 28 * 28 * 9], 0))
    with pytest.raises(ValueError, match=r'zip\(\) argument 2 is longer'):
        FashionMNIST(str(tmp_path), 'test')
