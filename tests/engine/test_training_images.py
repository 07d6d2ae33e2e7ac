"""The picture of the first training images shows what the network gets: pixels before normalisation, and labels."""

import numpy as np
import pytest
import torch
from engine.interruption.small_runs import KINDS, small_runner, train
from forked_tools import run_forked
from mmengine.hooks import Hook
from mmengine.structures import PixelData
from mmpretrain.models import ClsDataPreprocessor
from mmpretrain.structures import DataSample
from mmseg.models import SegDataPreProcessor
from mmseg.structures import SegDataSample
from PIL import Image

from vt.engine.hooks import training_images
from vt.engine.hooks.training_images import IMAGES, TrainingImagesHook, draw_inputs
from vt.engine.run.schedules import planned_rates
from vt.video.views import ClipPreprocessor

NAMES = dict(classes=('cat', 'a $dog_ 猫'), palette=[(255, 0, 0), (0, 0, 255)])
MEAN, STD = [120.0, 110.0, 100.0], [60.0, 50.0, 40.0]


def photo(*shape):
    return torch.from_numpy(np.random.default_rng(shape[-1]).integers(0, 256, shape, np.uint8))


@pytest.fixture
def drawn(monkeypatch):
    """The images and titles of the figures that are drawn."""
    found = []

    def keep(figure, path):
        shown = [cell for cell in figure.axes if cell.images]
        found.extend((np.asarray(cell.images[0].get_array()), cell.get_title()) for cell in shown)

    monkeypatch.setattr(training_images, 'save_figure', keep)
    return found


def draw(preprocessor, inputs, samples, is_bgr=False, **options):
    data = preprocessor(dict(inputs=inputs, data_samples=samples), training=True)
    draw_inputs(data, preprocessor, is_bgr, NAMES, 'not written', **options)


def test_pixels_and_labels_of_images_are_those_of_the_files(drawn):
    images = [photo(3, 8, 8), photo(3, 8, 9)[..., :8]]
    samples = [DataSample().set_gt_label(label) for label in (1, [0, 1])]
    draw(ClsDataPreprocessor(MEAN, STD, to_rgb=True), [each.flip(0) for each in images], samples)
    for (shown, _), image in zip(drawn, images):
        assert np.array_equal(shown, image.permute(1, 2, 0).numpy())
    assert [title for _, title in drawn] == [r'a \$dog_ 猫', r'cat, a \$dog_ 猫']


def test_long_names_stay_above_their_images(drawn, monkeypatch):
    monkeypatch.setitem(NAMES, 'classes', ['long ' * 6, 'longer ' * 4])
    draw(ClsDataPreprocessor(MEAN, STD), [photo(3, 8, 8)], [DataSample().set_gt_label([0, 1])])
    assert max(map(len, drawn[0][1].split('\n'))) <= 42


def test_a_network_of_bgr_and_inputs_without_normalisation(drawn):
    images = [photo(3, 8, 8)]
    draw(ClsDataPreprocessor(), [each.flip(0) for each in images], [DataSample().set_gt_label(0)], is_bgr=True)
    assert np.array_equal(drawn[0][0], images[0].permute(1, 2, 0).numpy())


def test_mixed_labels_have_their_shares(drawn):
    mixup = dict(augments=[dict(type='Mixup', alpha=1.0)])
    preprocessor = ClsDataPreprocessor(MEAN, STD, num_classes=2, batch_augments=mixup)
    torch.manual_seed(0)
    np.random.seed(0)
    samples = [DataSample().set_gt_label(label) for label in (0, 1, 0, 1)]
    draw(preprocessor, [photo(3, 8, size)[..., :8] for size in (8, 9, 10, 11)], samples)
    assert any('0.' in title for _, title in drawn)


def test_masks_have_their_colours_and_names(drawn):
    image, mask = torch.zeros(3, 8, 8, dtype=torch.uint8), torch.zeros(1, 8, 8, dtype=torch.int64)
    mask[:, :, 4:], mask[:, 6:] = 1, 255
    sample = SegDataSample(gt_sem_seg=PixelData(data=mask))
    draw(SegDataPreProcessor(MEAN, STD, size=(8, 8)), [image], [sample])
    shown, title = drawn[0]
    assert title == r'cat, a \$dog_ 猫'
    assert [shown[0, 0].tolist(), shown[0, 7].tolist(), shown[7, 0].tolist()] == [[127, 0, 0], [0, 0, 127], [127] * 3]


def test_a_video_is_a_row_of_its_frames(drawn):
    clips = [photo(3, 4, 8, 8), photo(3, 4, 8, 9)[..., :8]]
    draw(ClipPreprocessor(MEAN, STD), clips, [DataSample().set_gt_label(label) for label in (0, 1)])
    assert np.array_equal(drawn[0][0], torch.cat([*clips[0].unbind(1)], -1).permute(1, 2, 0).numpy())
    assert len(drawn) == 2


def test_equal_images_are_drawn_once_and_few_of_a_large_batch(drawn):
    images = [torch.full((3, 8, 8), value % 30, dtype=torch.uint8) for value in range(60)]
    draw(ClsDataPreprocessor(MEAN, STD), images, [DataSample().set_gt_label(0) for _ in images], most=40)
    assert len(drawn) == 30
    draw(ClsDataPreprocessor(MEAN, STD), images, [DataSample().set_gt_label(0) for _ in images])
    assert len(drawn) == 46


@pytest.mark.parametrize('channels', [1, 5])
def test_bands_are_scaled_to_what_can_be_seen(drawn, channels):
    image = 4000 * torch.rand(channels, 8, 8)
    draw(ClsDataPreprocessor([2000.0] * channels, [500.0] * channels), [image], [DataSample().set_gt_label(0)])
    assert drawn[0][0].shape == (8, 8, 3)
    assert drawn[0][0].max() == 255


def test_what_is_no_image_is_left_out_and_weights_do_not_change(tmp_path):
    one = train(tmp_path / 'drawn', 'epochs', TrainingImagesHook()).model.state_dict()
    other = train(tmp_path / 'plain', 'epochs').model.state_dict()
    assert all(one[name].equal(other[name]) for name in other)
    assert not (tmp_path / 'drawn' / IMAGES).exists()


def test_samples_of_a_data_set_without_a_run(tmp_path):
    for folder in ('train', 'val'):
        for name in ('a', 'b'):
            (tmp_path / 'data' / folder / name).mkdir(parents=True)
            for number in range(3):
                pixels = np.random.default_rng(number).integers(0, 256, (40, 50, 3), np.uint8)
                Image.fromarray(pixels).save(tmp_path / 'data' / folder / name / f'{number}{folder}{name}.png')
    result = run_forked('check_dataset.py', 'data=data', 'image_size=32', '--show', 'shown.png', cwd=tmp_path)
    assert 'written to shown.png' in result.stdout, result.stderr
    assert 'no learning rate: an epoch has no batch' in result.stdout
    options = ['data=data', 'image_size=32', 'batch_size=2']
    result = run_forked('check_dataset.py', *options, '--show', 'shown.png', cwd=tmp_path)
    with Image.open(tmp_path / 'shown.png') as image:
        assert image.width > 500
        pixels = np.asarray(image.convert('RGB'))
    is_blue = np.abs(pixels[-200:].astype(int) - (31, 119, 180)).max(axis=-1) < 40
    assert is_blue.any(axis=0).sum() > 500  # the curve of the learning rate
    result = run_forked('check_dataset.py', 'data=data', '--show', 'shown.txt', cwd=tmp_path)
    assert '--show shown.txt must end in .png' in result.stderr


class Rates(Hook):
    """The learning rate of every iteration."""

    def __init__(self):
        self.values = []

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        self.values.append(runner.optim_wrapper.get_lr()['lr'][-1])


@pytest.mark.parametrize('kind', ['epochs', 'iterations'])
def test_planned_learning_rates_are_those_of_the_run(tmp_path, kind):
    recorder = Rates()
    train(tmp_path / 'run', kind, recorder)
    runner = small_runner(tmp_path / 'plan', optimizer=dict(type='AdamW', lr=0.1), **KINDS[kind])
    rows = planned_rates(runner, 1000)
    assert [row.get('iteration', 5 * row.get('epoch', 0)) for row in rows] == pytest.approx(range(16))
    assert [row['lr'] for row in rows[:-1]] == pytest.approx(recorder.values)
