"""Images of many channels and bits: what is read is what was written, and what cannot be read is one line."""

import struct
import zlib
from io import BytesIO
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
import tifffile
from mmcv.transforms import LoadImageFromFile
from PIL import Image

import vt
from vt.data_checks.samples import SampleReader
from vt.datasets.bands import MAX_PIECE, read_bands, why_unread
from vt.engine.reporting import naming_sample
from vt.errors import UserError
from vt.image_bounds import check_image_size
from vt.inference.image_files import load_image


def image(channels, dtype='uint16', size=(20, 30)):
    values = np.random.default_rng(channels).random((*size, channels)) * 200
    return (values - 100 * (dtype[0] == 'i')).astype(dtype)


def load(path, **options):
    return vt.LoadBands(**options)(dict(img_path=str(path)))


@pytest.mark.parametrize('layout', ['contig', 'separate', 'pages', 'array', 'channels first'])
@pytest.mark.parametrize('dtype', ['uint8', 'int16', 'float32'])
def test_a_file_of_any_layout_is_read(layout, dtype, tmp_path):
    for channels in (1, 4):
        pixels = image(channels, dtype)
        first = np.moveaxis(pixels, -1, 0)
        path = tmp_path / ('a.npy' if layout in ('array', 'channels first') else 'a.tif')
        if path.suffix == '.npy':
            np.save(path, pixels if layout == 'array' else first)
        elif layout == 'pages':
            with tifffile.TiffWriter(path) as file:
                for band in first:
                    file.write(band, contiguous=True, compression='zlib' if channels == 1 else None)
        else:
            planarconfig = layout if channels > 1 else None
            planes = pixels if layout == 'contig' else first
            tifffile.imwrite(path, planes, photometric='minisblack', planarconfig=planarconfig)
        results = load(path, channels_first=layout == 'channels first')
        assert results['img'].dtype == np.float32
        assert results['img_shape'] == results['ori_shape'] == (20, 30)
        np.testing.assert_array_equal(results['img'], pixels.astype('float32'))


@pytest.mark.parametrize(
    ('name', 'pixels', 'words'),
    [
        ('a.tif', image(1, 'float32'), 'has 20x30x1 values of float32, not 8-bit colours: load it with vt.Load'),
        ('a.tif', image(3, 'float64'), 'has 20x30x3 values of float64'),
        ('a.tif', image(1, 'int32'), 'has 20x30x1 values of int32'),
        ('a.npy', image(5, 'uint8'), 'has 20x30x5 values of uint8'),
        ('a.tga', image(3, 'uint8'), 'is TGA, which OpenCV does not read: convert it to PNG'),
        ('cut.tif', image(1, 'float32'), 'is not a readable image'),
    ],
)
def test_images_that_only_another_reader_reads(name, pixels, words, tmp_path):
    path = tmp_path / name
    if path.suffix == '.tga':
        Image.fromarray(pixels).save(path)
    else:
        np.save(path, pixels) if path.suffix == '.npy' else tifffile.imwrite(path, pixels)
    if name == 'cut.tif':
        path.write_bytes(path.read_bytes()[:-100])
    info = dict(img_path=str(path))
    with pytest.raises(UserError, match=f'{name} {words}'):
        load_image(path, lambda: LoadImageFromFile()(info)['img'], why_unread)
    reader = SampleReader('data', 2, 255, LoadImageFromFile(), None, None)
    dataset = SimpleNamespace(get_data_info=lambda index: info)
    with pytest.raises(UserError) as caught, naming_sample(dataset, 0):
        LoadImageFromFile()(info)
    for found in (str(caught.value), *map(str, reader(info).problems)):
        assert (words in found) == (name != 'cut.tif')


def test_two_dimensions_are_one_channel_and_bands_are_chosen(tmp_path):
    pixels = image(5)
    np.save(tmp_path / 'a.npy', pixels[..., 0])
    np.save(tmp_path / 'b.npy', pixels)
    assert load(tmp_path / 'a.npy')['img'].shape == (20, 30, 1)
    np.testing.assert_array_equal(load(tmp_path / 'b.npy', bands=[3, 0])['img'], pixels[..., [3, 0]])
    with pytest.raises(UserError, match=r'b.npy has 5 channels, too few for LoadBands.bands=\[5\]'):
        load(tmp_path / 'b.npy', bands=[5])


@pytest.mark.parametrize('channels', [1, 3, 4])
def test_a_png_of_16_bits_keeps_them_and_is_red_green_blue(channels, tmp_path):
    pixels = image(channels) * 300
    cv2.imwrite(str(tmp_path / 'a.png'), pixels[..., [2, 1, 0, 3][:channels]] if channels > 1 else pixels)
    np.testing.assert_array_equal(load(tmp_path / 'a.png')['img'], pixels)


def npy(shape, dtype='<f4'):
    header = repr(dict(descr=dtype, fortran_order=False, shape=shape)).encode().ljust(118) + b'\n'
    return b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header)) + header


def tiff(tags):
    entries = b''.join(struct.pack('<HHII', tag, 4, 1, value) for tag, value in sorted(tags.items()))
    return b'II*\0' + struct.pack('<IH', 8, len(tags)) + entries + bytes(68)


SIZES = {256: 4, 257: 4, 258: 8, 259: 1, 262: 1, 273: 8, 277: 1, 278: 4, 279: 16}
HOSTILE = {
    'wide.npy': (npy((19_000, 10_000, 4)), 'more than 178,956,970 pixels'),
    'cut.npy': (npy((20, 30, 4)) + bytes(100), 'is damaged: '),
    'objects.npy': (npy((4, 4, 1), '|O') + bytes(100), 'is damaged: '),
    'nan.npy': (npy((2, 2)) + np.array([0, 1, np.nan, np.inf], 'f4').tobytes(), 'has 2 values that are NaN'),
    'cut.tif': (tiff(SIZES | {273: 8_000}), 'is damaged: '),
    'wide.tif': (tiff(SIZES | {256: 90_000, 257: 90_000}), 'more than 178,956,970 pixels'),
    'deep.tif': (tiff(SIZES | {256: 2_000, 257: 2_000, 277: 60_000}), 'more than 2,147,483,640 values'),
}


@pytest.mark.parametrize('name', HOSTILE)
def test_a_file_that_cannot_be_read_is_one_line(name, tmp_path):
    content, words = HOSTILE[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=words) as error:
        load(tmp_path / name)
    assert name in str(error.value)
    assert '\n' not in str(error.value)
    if 'more than' in words:  # wherever an image's size is looked at
        with pytest.raises(UserError, match=words):
            check_image_size(tmp_path / name)
        with pytest.raises(UserError, match=words):
            check_image_size(BytesIO(content), name)


def test_a_small_tiff_that_unfolds_is_refused(tmp_path):
    """Python's zlib has no bound: 5 MB may stand for 5 GB."""
    piece = zlib.compress(bytes(10_000), 0).ljust(MAX_PIECE + 1, b'\0')
    data = tiff(SIZES | {259: 8, 273: 200, 279: len(piece)}).ljust(200, b'\0') + piece
    with pytest.raises(UserError, match='pip install imagecodecs'):
        read_bands(data, 'a.tif')


@pytest.mark.parametrize(('marked', 'refused'), [('-9999', True), ('-9999.0\0', True), ('0', False), ('nan', False)])
def test_pixels_without_data_are_refused(marked, refused, tmp_path):
    pixels = image(3, 'float32')
    pixels[0, :2] = -9999
    pixels[1] = 0
    tifffile.imwrite(tmp_path / 'a.tif', pixels, photometric='rgb', extratags=[(42113, 's', 0, marked, True)])
    if refused:
        with pytest.raises(UserError, match=r'a\.tif has 6 values -9999.*, which it marks as nodata: replace them'):
            load(tmp_path / 'a.tif')
    else:
        assert np.array_equal(load(tmp_path / 'a.tif')['img'], pixels)
