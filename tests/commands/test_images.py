"""Images: of tokens on a user's own images, of predictions in folders, and no input is ever written over."""

from argparse import Namespace

import cv2
import numpy as np
import pytest
import torch
from bad_input.small_runs import FOLDER, SCENES
from mmengine.config import Config
from mmengine.structures import PixelData
from tool_runner import assert_one_line, call, succeed

import vt
from vt.analysis.attention.token_figure import look, name_part
from vt.apis import get_model
from vt.commands.test import WriteMaps
from vt.engine.config.parts import preparation_of
from vt.engine.run.launch import build_model
from vt.inference.inputs import Samples

RED = (0, 0, 255)  # as OpenCV has it
DIGITS = 'vt-resnet18-half_digits'


@pytest.fixture(scope='module')
def scenes(small_model):
    return small_model('vt-fpn_r18_digit-scenes')[:2]


@pytest.fixture(scope='module')
def animals(tmp_path_factory):
    """A config of two classes of files, and a checkpoint of arbitrary weights."""
    folder = tmp_path_factory.mktemp('animals')
    (folder / 'animals.py').write_text(FOLDER)
    torch.save(build_model(Config.fromfile(folder / 'animals.py')).state_dict(), folder / 'animals.pth')
    return folder / 'animals.py', folder / 'animals.pth'


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
    succeed(call('analysis/show_tokens.py', config, animals[1], *images, '--out', 'out.svg', cwd=tmp_path))
    text = (tmp_path / 'out.svg').read_text()
    assert all(path.name in text for path in images)
    assert text.count('seen as cat') + text.count('seen as dog') == 3
    assert 'token 4' in text
    assert photo.read_bytes() == before


def test_heat_maps_of_a_users_images(small_model, tmp_path):
    pytest.importorskip('pytorch_grad_cam', reason='grad-cam is not installed')
    photo = write(tmp_path / 'photo.png', size=(150, 210))
    options = ['--method', 'gradcam', 'eigencam', '--target', '7', '--out', 'out.svg']
    result = succeed(call('analysis/show_heat_maps.py', *small_model(DIGITS)[:2], photo, *options, cwd=tmp_path))
    text = (tmp_path / 'out.svg').read_text()
    assert all(words in text for words in ('photo.png', 'seen as ', 'for 7', 'gradcam', 'eigencam'))
    assert 'gradcam: backbone.layer4.0.projector' in result.stdout


def test_the_image_of_tokens_goes_to_the_work_directory_or_here(scenes, tmp_path):
    photo = write(tmp_path / 'photo.png', size=(50, 30))
    drawn = []
    for images, out in (([photo], 'tokens.png'), (['--images', '2'], f'work_dirs/{scenes[0].stem}/tokens.png')):
        (tmp_path / out).parent.mkdir(parents=True, exist_ok=True)
        result = succeed(call('analysis/show_tokens.py', *scenes, *images, cwd=tmp_path))
        assert result.stdout.splitlines()[-1] == f'written to {out}'
        drawn.append(cv2.imread(str(tmp_path / out)).shape[0])
    assert drawn[0] < drawn[1]  # one row, two rows


def test_images_have_the_order_of_channels_that_the_network_expects(animals, small_model, scenes, tmp_path):
    photo, digits = write(tmp_path / 'photo.png'), small_model(DIGITS)[:2]
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
    names = 'cat/0.jpg', 'cat/0.jpg.png', 'dog/\x1b[31m.png', 'dog/more/A.png'
    files = [write(tmp_path / 'data/images' / name) for name in names]
    succeed(call('test.py', *animals, '--show-dir', 'images', cwd=tmp_path))
    places = ['cat/0.jpg-2.png', 'cat/0.jpg.png', 'dog/_x1b[31m.png', 'dog/more/A.png']
    assert drawn_in(tmp_path / 'images') == places
    blue, _, red = cv2.imread(str(tmp_path / 'images/dog/more/A.png'))[-1, -1].tolist()
    assert (blue, red) == (0, 255)
    before = [file.read_bytes() for file in files]
    result = call('test.py', *animals, '--show-dir', 'data/images', cwd=tmp_path)
    assert_one_line(result, '.png: choose another folder')
    assert [file.read_bytes() for file in files] == before


@pytest.mark.parametrize(('largest', 'first'), [(255, 0), (254, 1), (255, 1), (65534, 1)])
def test_a_map_has_the_numbers_of_the_annotations_in_8_or_16_bits(largest, first, tmp_path):
    path, labels = str(write(tmp_path / 'a.jpg')), torch.tensor([[[0, largest], [1, 2]]])
    data = vt.ImagesAndMasks(data_root=str(tmp_path), data_prefix=dict(img_path=''), reduce_zero_label=bool(first))
    hook = WriteMaps(tmp_path / 'maps')
    hook.before_test(Namespace(test_dataloader=Namespace(dataset=data)))
    hook.after_test_iter(None, 0, outputs=[Namespace(img_path=path, pred_sem_seg=PixelData(data=labels))])
    found = cv2.imread(str(tmp_path / 'maps/a.png'), cv2.IMREAD_UNCHANGED)
    assert (found.tolist(), found.dtype) == ((labels[0] + first).tolist(), 'u1' if largest + first < 256 else 'u2')


def test_maps_and_overlays_have_names_of_their_own_and_overwrite_no_input(scenes, tmp_path):
    (tmp_path / 'masks.py').write_text(f'{SCENES}\nmodel = dict(neck=dict(num_tokens=3, token_channels=64))\n')
    model = 'masks.py', scenes[1]
    for name in ('a/0.png', 'b/0.png'):
        write(tmp_path / 'data/images' / name, size=(64, 64))
        write(tmp_path / 'data/masks' / name, (0,), size=(64, 64))
    succeed(call('test.py', *model, '--out', 'maps', '--show-dir', 'images', cwd=tmp_path))
    assert drawn_in(tmp_path / 'maps') == drawn_in(tmp_path / 'images') == ['a/0.png', 'b/0.png']
    result = call('test.py', *model, '--out', 'data/masks', cwd=tmp_path)
    assert_one_line(result, 'data/masks/a/0.png would be overwritten: choose another folder for --out')
    assert cv2.imread(str(tmp_path / 'data/masks/a/0.png')).max() == 0
