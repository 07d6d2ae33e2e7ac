"""Images: of tokens on a user's own images, of predictions in folders, and no input is ever written over."""

import cv2
import mmpretrain
import mmseg
import numpy as np
import pytest
import torch
from forked_tools import run_forked
from mmengine.config import Config
from tool_runner import ROOT, assert_one_line

from vt.analysis.attention.token_figure import look, name_part
from vt.apis import get_model
from vt.engine.image_hooks import output_paths_of
from vt.engine.launch import build_model
from vt.engine.preparation import preparation_of
from vt.inference.inputs import Samples

DIGITS = ROOT / 'configs/vt_resnet/vt-resnet18_digits.py'
SCENES = ROOT / 'configs/vt_fpn/vt-fpn_r18_digit-scenes.py'
CLASSIFIER = 'dict(backbone=dict(num_tokens=4, token_channels=64), head=dict(in_channels=64, num_classes={}))'
SEGMENTOR = 'dict(neck=dict(num_tokens=3, token_channels=64))'
RED = (0, 0, 255)  # as OpenCV has it
FOLDER = """
data_preprocessor = dict(num_classes=2)
pipeline = [dict(type='LoadImageFromFile'), dict(type='Resize', scale=32), dict(type='PackInputs')]
dataset = dict(_delete_=True, type='CustomDataset', data_root='data', pipeline=pipeline)
test_dataloader = dict(batch_size=3, dataset=dataset)
"""
MASKS = """
pipeline = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations'), dict(type='PackSegInputs')]
dataset = dict(
    _delete_=True, type='BaseSegDataset', data_root='data', data_prefix=dict(img_path='images', seg_map_path='masks'),
    img_suffix='.png', metainfo=dict(classes=tuple('abcdefghijk'), palette=[[10, 20, 30]] * 11), pipeline=pipeline)
test_dataloader = dict(batch_size=2, dataset=dataset)
"""


def make(folder, name, base, model, data=''):
    """A config and a checkpoint of arbitrary weights."""
    config, checkpoint = folder / f'{name}.py', folder / f'{name}.pth'
    config.write_text(f'_base_ = {str(base)!r}\nmodel = {model}\n{data}')
    torch.save(build_model(Config.fromfile(config)).state_dict(), checkpoint)
    return config, checkpoint


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp('some images')


@pytest.fixture(scope='module')
def digits(folder):
    return make(folder, 'digits', DIGITS, CLASSIFIER.format(10))


@pytest.fixture(scope='module')
def scenes(folder):
    return make(folder, 'scenes', SCENES, SEGMENTOR)


@pytest.fixture(scope='module')
def animals(folder):
    return make(folder, 'animals', DIGITS, CLASSIFIER.format(2), FOLDER)


def write(path, colour=RED, size=(40, 60)):
    path.parent.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(path), np.full((*size, len(colour)), colour, np.uint8))
    return path


def test_tokens_on_a_users_images_of_any_size(animals, tmp_path):
    """There is no test set where the config names the classes; what stands where an output once stood is left alone."""
    config = tmp_path / 'named.py'
    names = "test_dataloader = dict(dataset=dict(metainfo=dict(classes=('cat', 'dog'))))"
    config.write_text(f'_base_ = {str(animals[0])!r}\n{names}\n')
    photo, small = write(tmp_path / 'photo.png', size=(150, 210)), write(tmp_path / 'small.jpg', (9,), size=(5, 7))
    images = photo, small, write(tmp_path / 'clear.png', (*RED, 128))
    before = photo.read_bytes()
    result = run_forked('analysis/show_tokens.py', config, animals[1], *images, '--out', 'out.svg', cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    text = (tmp_path / 'out.svg').read_text()
    assert all(path.name in text for path in images)
    assert text.count('seen as cat') + text.count('seen as dog') == 3
    assert 'token 4' in text
    assert photo.read_bytes() == before


def test_heat_maps_of_a_users_images(digits, tmp_path):
    pytest.importorskip('pytorch_grad_cam', reason='the extra [heat-maps] is not installed')
    photo = write(tmp_path / 'photo.png', size=(150, 210))
    options = ['--method', 'gradcam', 'eigencam', '--target', '7', '--out', 'out.svg']
    result = run_forked('analysis/show_heat_maps.py', *digits, photo, *options, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    text = (tmp_path / 'out.svg').read_text()
    assert all(words in text for words in ('photo.png', 'seen as ', 'for 7', 'gradcam', 'eigencam'))
    assert 'gradcam: backbone.layer4.0.projector' in result.stdout


def test_the_image_of_tokens_goes_to_the_work_directory_or_here(scenes, tmp_path):
    photo = write(tmp_path / 'photo.png', size=(50, 30))
    result = run_forked('analysis/show_tokens.py', *scenes, photo, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == 'written to tokens.png'
    (tmp_path / 'work_dirs/scenes').mkdir(parents=True)
    result = run_forked('analysis/show_tokens.py', *scenes, '--images', '2', cwd=tmp_path)
    assert result.stdout.splitlines()[-1] == 'written to work_dirs/scenes/tokens.png'
    drawn = [cv2.imread(str(tmp_path / path)).shape[0] for path in ('tokens.png', 'work_dirs/scenes/tokens.png')]
    assert drawn[0] < drawn[1]  # one row, two rows


def test_images_have_the_order_of_channels_that_the_network_expects(animals, digits, scenes, tmp_path):
    photo = write(tmp_path / 'photo.png')
    for config, checkpoint in (animals, digits, scenes):
        cfg = Config.fromfile(config)
        model = get_model(cfg, str(checkpoint))
        is_bgr = preparation_of(cfg).is_bgr
        sample = Samples(cfg)(photo)
        assert sample['inputs'].flatten(1).float().mean(dim=1).tolist() == list(RED if is_bgr else RED[::-1])
        assert is_bgr == (config != digits[0])
        image, attention = look(model, name_part(model, -1), sample, is_bgr)
        assert image.flatten(1).mean(dim=1).tolist() == [1, 0, 0]
        assert attention.flatten(1).sum(dim=-1).tolist() == pytest.approx([1] * len(attention))


def drawn_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob('*.*'))


def test_predictions_are_images_of_their_own_and_overwrite_no_input(animals, tmp_path):
    names = 'cat/0.jpg', 'cat/0.jpg.png', 'cat/A.png', 'cat/a.png', 'dog/\x1b[31m.png', f'dog/{"x" * 250}.jpg'
    files = [write(tmp_path / 'data' / name) for name in (*names, 'dog/more/A.png')]
    result = run_forked('test.py', *animals, '--show-dir', 'images', cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    expected = ['cat/0.jpg.png', 'cat/0.jpg-2.png', 'cat/A.png', 'cat/a-2.png', 'dog/_x1b[31m.png', 'dog/more/A.png']
    assert drawn_in(tmp_path / 'images') == sorted([*expected, f'dog/{"x" * 200}.png'])
    blue, _, red = cv2.imread(str(tmp_path / 'images/cat/A.png'))[-1, -1].tolist()
    assert (blue, red) == (0, 255)
    before = [file.read_bytes() for file in files]
    result = run_forked('test.py', *animals, '--show-dir', 'data', cwd=tmp_path)
    assert_one_line(result, '.png: choose another folder')
    assert [file.read_bytes() for file in files] == before


def test_maps_and_overlays_have_names_of_their_own_and_overwrite_no_input(folder, tmp_path):
    config, checkpoint = make(folder, 'masks', SCENES, SEGMENTOR, MASKS)
    for name in ('a/0.png', 'b/0.png'):
        write(tmp_path / 'data/images' / name, size=(64, 64))
        write(tmp_path / 'data/masks' / name, (0,), size=(64, 64))
    result = run_forked('test.py', config, checkpoint, '--out', 'maps', '--show-dir', 'images', cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert drawn_in(tmp_path / 'maps') == drawn_in(tmp_path / 'images') == ['a/0.png', 'b/0.png']
    result = run_forked('test.py', config, checkpoint, '--out', 'data/masks', cwd=tmp_path)
    assert_one_line(result, 'data/masks/a/0.png would be overwritten: give another folder than --out')
    assert cv2.imread(str(tmp_path / 'data/masks/a/0.png')).max() == 0


@pytest.mark.parametrize(
    ('path', 'prefix', 'place'),
    [
        ('data/val/cat/0.jpg', 'data/val', 'cat/0.jpg.png'),
        ('data/value/0.png', 'data/val', 'data/value/0.png'),
        ('/far/away/0.png', 'data', 'far/away/0.png'),
        ('../data/0.png', '', 'data/0.png'),
    ],
)
def test_an_image_stays_below_its_folder(path, prefix, place):
    class Images:
        data_prefix = dict(img_path=prefix)

        def __len__(self):
            return 1

        def get_data_info(self, index):
            return dict(img_path=path)

    assert {path: str(place) for path, place in output_paths_of(Images()).items()} == {path: place}


@pytest.mark.parametrize(
    ('library', 'tool', 'config', 'options'),
    [
        (mmseg, 'analysis_tools/browse_dataset.py', SCENES, ['train_dataloader.dataset.num_scenes=2']),
        (mmpretrain, 'visualization/browse_dataset.py', DIGITS, ['train_dataloader.dataset.indices=2']),
    ],
)
def test_the_libraries_own_tools_show_the_data(library, tool, config, options, tmp_path):
    script = f'{library.__path__[0]}/.mim/tools/{tool}'
    mode = ['--mode', 'original'] if library is mmpretrain else []
    result = run_forked(script, config, '--output-dir', 'out', '--not-show', *mode, cwd=tmp_path, options=options)
    assert result.returncode == 0, result.stderr
    assert len(list((tmp_path / 'out').iterdir())) == 2
