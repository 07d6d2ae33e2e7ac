"""The number of channels: what a config says of it in three places, and what its data have."""

import json

import numpy as np
import pytest
import tifffile
from mmengine.config import Config
from tool_runner import ROOT

from vt.apis import ClassificationInferencer, get_model
from vt.commands.check_dataset import print_channels, read_data
from vt.data_checks.data import check_data
from vt.engine.config.check_settings import check_config
from vt.engine.config.data import Data
from vt.engine.config.parts import check_image_channels, preparation_of
from vt.engine.config.steps import Run
from vt.engine.run.launch import build_prepared
from vt.errors import UserError
from vt.serialization.model_folder import save_model

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
    assert not [note for note in check_data(Data(cfg), ('train', 'val')) if 'channels' in note]


ORDER = "vt.LoadBands keeps a file's order of channels: set data_preprocessor"
SOLARIZE = dict(type='RandomApply', transforms=[dict(type='Solarize', thr=128)])


@pytest.mark.parametrize(
    ('options', 'words'),
    [
        (dict(to_rgb=True), f'{ORDER}.to_rgb=False'),
        (dict(bgr_to_rgb=True), f'{ORDER}.bgr_to_rgb=False'),
        (dict(steps=[SOLARIZE]), 'train_dataloader.dataset.pipeline: Solarize needs 8-bit RGB images: remove it'),
        (dict(steps=[dict(type='mmseg.PhotoMetricDistortion')]), 'PhotoMetricDistortion needs 8-bit RGB images'),
        (dict(steps=[dict(type='Brightness', magnitude=0.5)]), 'Brightness needs 8-bit RGB images'),
    ],
)
def test_numbers_and_steps_that_contradict_are_one_line(folder, options, words):
    with pytest.raises(UserError) as error:
        build_prepared(Run(config(folder, **options)))
    assert words in str(error.value)
    assert '\n' not in str(error.value)


def test_files_of_another_number_are_named(folder):
    problems = read_data(Data(config(folder, channels=5, mean=5)), ('train', 'val'), 2)[0]['problems']
    found = [problem['message'] for problem in problems if problem['kind'] == 'mode']
    assert found == ['has 4 channels, but the backbone requires 5: set in_channels'] * 12


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
    report, _ = read_data(Data(cfg), ('train',), 1)
    json.dumps(report)
    capsys.readouterr()
    print_channels(report, preparation_of(cfg))
    line = capsys.readouterr().out.partition(': data_preprocessor = ')[2]
    printed = eval(line, dict(dict=dict))
    # LoadBands keeps the order, OpenCV turns it; and to_rgb turns what is loaded (after LoadBands a run refuses it).
    expected = pixels if (load is LOAD) != to_rgb else pixels[:, ::-1]
    np.testing.assert_allclose(printed['mean'], expected.mean(axis=0), atol=6e-4)
    np.testing.assert_allclose(printed['std'], expected.std(axis=0), atol=6e-4)


def scores(model, image):
    (result,) = ClassificationInferencer(model, None)(image)
    return result['pred_scores']


def test_files_and_arrays_are_predicted_alike_by_a_saved_model_too(folder, tmp_path):
    path, steps = str(folder / 'val/a/1.tif'), [dict(type='Resize', scale=64)]
    pixels, cfg = tifffile.imread(path), config(folder, LOAD | dict(bands=[3, 2, 1, 0]), steps=steps)
    model = get_model(cfg, pretrained=None)
    save_model(model, tmp_path / 'saved', cfg)
    np.testing.assert_array_equal(scores(model, path), scores(get_model(tmp_path / 'saved'), path))
    model = get_model(config(folder, steps=steps), pretrained=None)
    np.testing.assert_array_equal(scores(model, path), scores(model, pixels))
    inferencer = ClassificationInferencer(model, None)
    shown = inferencer.pixels(path)
    assert (shown.shape, shown.dtype) == ((40, 32, 3), np.uint8)
    assert inferencer.pipeline.suffixes[-1] == '.npy'
    with pytest.raises(UserError, match=r'pass \(height, width, 4\) of number'):
        inferencer(pixels[..., :3])
