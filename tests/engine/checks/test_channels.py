"""The number of channels: what a config says of it in three places, and what its data have."""

import json

import numpy as np
import pytest
import tifffile
from mmengine.config import Config
from tool_runner import ROOT

from vt.apis import ClassificationInferencer, get_model
from vt.apis.folders import save_model
from vt.commands.check_dataset import print_channels, read_data
from vt.data_checks.data import check_data
from vt.datasets.bands import as_rgb
from vt.engine.checks.config import check_config
from vt.engine.launch import build_prepared
from vt.engine.preparation import check_image_channels
from vt.errors import MissingFileError, UserError

LOAD, PACK = dict(type='vt.LoadBands'), dict(type='PackInputs')


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """Two classes of TIFF files of four bands of 16 bits, of two sizes."""
    folder, rng = tmp_path_factory.mktemp('bands'), np.random.default_rng(0)
    for split in ('train', 'val'):
        for name in 'ab':
            (folder / split / name).mkdir(parents=True)
            for number in range(3):
                pixels = rng.integers(0, 10_000, (32 + 8 * number, 32, 4)) * [1, 2, 3, 6]
                path = folder / split / name / f'{number}.tif'
                tifffile.imwrite(path, pixels.astype('uint16'), photometric='minisblack', planarconfig='contig')
    return folder


def config(folder, load=LOAD, steps=(), channels=4, mean=4, wrap=False, **preprocessor):
    cfg = Config.fromfile(ROOT / 'configs/vt_resnet/vt-resnet18-half_digits.py')
    cfg.model.head.num_classes = 2
    cfg.model.backbone.in_channels = channels
    if wrap:
        cfg.model.backbone = dict(type='vt.VTBackbone', in_channels=64, backbone=cfg.model.backbone)
    numbers = dict(mean=[100.0] * mean, std=[10.0] * mean)
    cfg.data_preprocessor = cfg.data_preprocessor | dict(num_classes=2, to_rgb=False) | numbers | preprocessor
    for split in ('train', 'val', 'test'):
        images = dict(type='CustomDataset', data_root=str(folder), data_prefix='val' if split == 'test' else split)
        cfg[f'{split}_dataloader'].dataset = images | dict(pipeline=[load, *steps, PACK])
    return cfg


def test_numbers_that_agree_are_no_error(folder):
    cfg = config(folder, steps=[dict(type='Resize', scale=64, interpolation='bicubic')])
    check_config(cfg)
    check_image_channels(cfg)
    check_image_channels(config(folder, mean=1))
    check_image_channels(config(folder, wrap=True))
    check_image_channels(config(folder, dict(type='LoadImageFromFile'), channels=3, mean=3, to_rgb=True))
    assert not [note for note in check_data(cfg, ('train', 'val')) if 'channels' in note]


@pytest.mark.parametrize(
    ('options', 'words'),
    [
        (dict(to_rgb=True), "vt.LoadBands keeps a file's order of channels: set data_preprocessor.to_rgb=False"),
        (dict(bgr_to_rgb=True), "a file's order of channels: set data_preprocessor.bgr_to_rgb=False"),
        (
            dict(steps=[dict(type='RandomApply', transforms=[dict(type='Solarize', thr=128)])]),
            'train_dataloader.dataset.pipeline: Solarize needs 8-bit RGB images: remove it',
        ),
        (dict(steps=[dict(type='mmseg.PhotoMetricDistortion')]), 'PhotoMetricDistortion needs 8-bit RGB images'),
        (dict(steps=[dict(type='Brightness', magnitude=0.5)]), 'Brightness needs 8-bit RGB images'),
    ],
)
def test_numbers_and_steps_that_contradict_are_one_line(folder, options, words):
    with pytest.raises(UserError) as error:
        build_prepared(config(folder, **options))
    assert words in str(error.value)
    assert '\n' not in str(error.value)


def test_files_of_another_number_are_named(folder):
    problems = read_data(config(folder, channels=5, mean=5), ('train', 'val'), 2)[0]['problems']
    found = [problem['message'] for problem in problems if problem['kind'] == 'mode']
    assert found == ['has 4 channels, but the backbone takes 5: set in_channels'] * 12


@pytest.mark.parametrize('load', [LOAD, dict(type='LoadImageFromFile')])
@pytest.mark.parametrize('to_rgb', [False, True])
def test_the_mean_and_deviation_are_those_of_all_pixels(load, to_rgb, tmp_path, capsys):
    rng, images = np.random.default_rng(1), []
    (tmp_path / 'train/a').mkdir(parents=True)
    for number in range(3):
        images.append(rng.integers(0, 60 * (number + 1), (20 + 9 * number, 30, 3)).astype('uint8'))
        tifffile.imwrite(tmp_path / f'train/a/{number}.tif', images[-1], photometric='rgb')
    pixels = np.concatenate([image.reshape(-1, 3) for image in images]).astype(float)
    cfg = config(tmp_path, load, channels=3, mean=3, to_rgb=to_rgb)
    report, _ = read_data(cfg, ('train',), 1)
    json.dumps(report)
    capsys.readouterr()
    print_channels(report, cfg)
    line = capsys.readouterr().out.removeprefix('training images: data_preprocessor = ')
    printed = eval(line, dict(dict=dict))
    # LoadBands keeps the order, OpenCV turns it; and to_rgb turns what is loaded (after LoadBands a run refuses it).
    expected = pixels if (load is LOAD) != to_rgb else pixels[:, ::-1]
    np.testing.assert_allclose(printed['mean'], expected.mean(axis=0), atol=6e-4)
    np.testing.assert_allclose(printed['std'], expected.std(axis=0), atol=6e-4)


def test_files_and_arrays_are_predicted_alike(folder):
    cfg = config(folder, steps=[dict(type='Resize', scale=64)])
    inferencer = ClassificationInferencer(get_model(cfg, pretrained=None), None)
    path = str(folder / 'val/a/1.tif')
    pixels = tifffile.imread(path)
    (of_file,), (of_array,) = inferencer(path), inferencer(pixels)
    np.testing.assert_array_equal(of_file['pred_scores'], of_array['pred_scores'])
    shown = inferencer.pixels(path)
    assert (shown.shape, shown.dtype) == ((40, 32, 3), np.uint8)
    assert inferencer.pipeline.suffixes[-1] == '.npy'
    with pytest.raises(UserError, match=r'give \(height, width, 4\) of number'):
        inferencer(pixels[..., :3])
    tifffile.imwrite(folder / 'five.tif', np.zeros((8, 8, 5), 'u1'), photometric='minisblack', planarconfig='contig')
    with pytest.raises(UserError, match=r'five.tif has 5 channels, the model takes 4'):
        inferencer(str(folder / 'five.tif'))
    with pytest.raises(MissingFileError, match=r'^there is no image .*gone.tif$'):
        inferencer(str(folder / 'gone.tif'))


def test_a_saved_model_reads_bands(folder, tmp_path):
    cfg = config(folder, LOAD | dict(bands=[3, 2, 1, 0]), steps=[dict(type='Resize', scale=64)])
    model = get_model(cfg, pretrained=None)
    save_model(model, tmp_path / 'saved', cfg)
    path = str(folder / 'val/a/1.tif')
    (expected,), (found,) = (
        ClassificationInferencer(each, None)(path) for each in (model, get_model(tmp_path / 'saved'))
    )
    np.testing.assert_array_equal(found['pred_scores'], expected['pred_scores'])


def test_images_are_shown_between_black_and_white():
    pixels = np.linspace(0, 60_000, 1_000).reshape(25, 40, 1) * np.ones(5)
    shown = as_rgb(pixels.astype('uint16'))
    assert (shown.shape, shown.dtype, shown.min(), shown.max()) == ((25, 40, 3), np.uint8, 0, 255)
    colour = np.random.default_rng(0).integers(0, 255, (4, 5, 3), np.uint8)
    assert as_rgb(colour) is colour
