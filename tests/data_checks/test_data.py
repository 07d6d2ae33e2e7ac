"""What is wrong with a segmentation data set is found before training, by its file's name."""

import re
from pathlib import Path

import numpy as np
import pytest
from mmengine.config import Config
from mmengine.registry import DATASETS
from PIL import Image

from vt.commands.check_dataset import read_data
from vt.data_checks.data import check_data
from vt.engine.config.data import Data

CONFIGS = Path(__file__).parents[2] / 'configs'
# Config, then an image of its train split and the image's mask.
REAL = {
    'fpn_r50_4xb8-90k_coco-stuff164k-800x1216': ('images/train2017/a.jpg', 'annotations/train2017/a_labelTrainIds.png'),
    'fpn_r50_4xb4-160k_ade20k-512x512': ('images/training/a.jpg', 'annotations/training/a.png'),
    'fpn_r50_4xb2-80k_cityscapes-512x1024': (
        'leftImg8bit/train/a/b_leftImg8bit.png',
        'gtFine/train/a/b_gtFine_labelTrainIds.png',
    ),
}


LOAD = [dict(type='LoadImageFromFile')]


def write(path, array):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path)


def random_image(height=40, width=50):
    return np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)


@pytest.fixture
def data(tmp_path):
    """Three images with masks of four classes, and the config that reads them."""
    for name in 'abc':
        write(tmp_path / f'images/{name}.jpg', random_image())
        write(tmp_path / f'masks/{name}.png', np.random.default_rng(1).integers(0, 4, (40, 50), dtype=np.uint8))
    dataset = dict(
        type='BaseSegDataset',
        data_root=str(tmp_path),
        data_prefix=dict(img_path='images', seg_map_path='masks'),
        metainfo=dict(classes=('a', 'b', 'c', 'd')),
        pipeline=[dict(type='LoadImageFromFile'), dict(type='LoadAnnotations'), dict(type='PackSegInputs')],
    )
    return tmp_path, Config(dict(default_scope='mmseg', train_dataloader=dict(dataset=dataset)))


def problem(cfg):
    with pytest.raises((ValueError, FileNotFoundError)) as caught:
        check_data(Data(cfg), ('train', 'val'))
    assert '\n' not in str(caught.value)
    return str(caught.value)


def test_whole_data_pass_and_ignored_pixels_too(data):
    root, cfg = data
    write(root / 'masks/b.png', np.full((40, 50), 255, np.uint8))
    check_data(Data(cfg), ('train', 'val', 'test'))


def test_files_that_are_missing_or_damaged(data):
    root, cfg = data
    dataset = cfg.train_dataloader.dataset
    for step in dataset.pipeline[:2]:
        step.backend_args = dict(backend='local')  # as the one that is the default
    (root / 'images/a.jpg').write_bytes(b'no image')
    assert 'images/a.jpg cannot be read: AssertionError: failed to load image' in problem(cfg)
    header = b'#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 40 +X 50\n'  # which OpenCV decodes and Pillow does not
    (root / 'images/a.jpg').write_bytes(header + bytes(40 * 50 * 4))
    check_data(Data(cfg), ('train',))
    (root / 'masks/b.png').unlink()
    (root / 'masks/c.png').unlink()
    others = f'{root}/images/b.jpg (and 1 more: {root}/masks/c.png)'
    assert f'{root}/masks/b.png does not exist: it is the mask of {others}' in problem(cfg)
    (root / 'empty').mkdir()
    dataset.data_prefix.img_path = 'empty'
    assert problem(cfg).endswith(f'{root}/empty has no file: correct its folder, list or suffixes')
    dataset.data_prefix.img_path = 'nowhere'
    assert 'nowhere' in problem(cfg)


def test_wrapped_data_sets_and_the_zero_label(data):
    root, cfg = data
    inner = dict(cfg.train_dataloader.dataset, reduce_zero_label=True)
    wrapped = dict(type='RepeatDataset', times=2, dataset=dict(type='ConcatDataset', datasets=[inner]))
    cfg.val_dataloader = dict(dataset=wrapped)
    check_data(Data(cfg), ('val',))  # 1 to 4 are the classes, 0 is ignored
    write(root / 'masks/b.png', np.full((40, 50), 5, np.uint8))
    assert problem(Config(dict(default_scope='mmseg', val_dataloader=cfg.val_dataloader))).startswith('val data: ')


@pytest.mark.parametrize(('seconds', 'masks', 'number'), [(60, True, 3), (60, False, 3), (0, True, 2), (0, False, 0)])
def test_the_time_of_the_check_is_bounded(seconds, masks, number, data, monkeypatch):
    """All samples are read before a run if there is time; otherwise some that have masks, and the error says so."""
    root, cfg = data
    monkeypatch.setattr('vt.data_checks.data.SECONDS', seconds)
    monkeypatch.setattr('vt.data_checks.data.LEAST', 2)
    for path in root.glob('images/*'):
        path.write_bytes(b'no image')
    if not masks:
        cfg.train_dataloader.dataset.pipeline.pop(1)
    if not number:
        assert check_data(Data(cfg), ('train',)) == []
        return
    message = problem(cfg)
    assert sum(f'images/{name}.jpg' in message for name in 'abc') == number
    assert message.endswith('; 2 of 3 samples were read: python -m vt check-dataset reads all') == (number == 2)


def test_all_unreadable_images_are_named_at_once(folders):
    root, configure = folders
    bad = sorted(root.glob('train/cat/*'))[:6]
    for path in bad:
        path.write_bytes(path.read_bytes()[:-20])
    message = problem(configure())
    assert message.startswith(f'train data: {bad[0]} cannot be read: ')
    assert message.endswith(f'(and 5 more: {", ".join(map(str, bad[1:4]))}, ...)')


@pytest.mark.parametrize('name', REAL)
def test_real_data_sets_load_by_their_configs(name, tmp_path):
    """Files in the layout that the config's header names, of two sizes, through both pipelines."""
    cfg = Config.fromfile(CONFIGS / f'baselines/{name}.py')
    num_classes = cfg.model.decode_head.num_classes
    labels = np.random.default_rng(0).integers(0, num_classes + ('ade20k' in name), (60, 80), dtype=np.uint8)
    for split, folders in (('train', {}), ('val', {'training': 'validation', 'train': 'val'})):
        image, mask = REAL[name]
        for old, new in folders.items():
            image, mask = (re.sub(rf'\b{old}(?=\d*/)', new, path) for path in (image, mask))
        write(tmp_path / image, random_image(60, 80))
        write(tmp_path / mask, labels)
        cfg[f'{split}_dataloader'].dataset.data_root = str(tmp_path)
    check_data(Data(cfg), ('train', 'val'))
    with DATASETS.switch_scope_and_registry('mmseg') as registry:
        train, val = (registry.build(cfg[f'{split}_dataloader'].dataset) for split in ('train', 'val'))
    sample = train[0]
    assert sample['inputs'].shape[-2:] == sample['data_samples'].gt_sem_seg.shape
    sample = val[0]
    assert sample['data_samples'].gt_sem_seg.shape == (60, 80)
    assert sample['inputs'].shape[1] > 400
    present = set(sample['data_samples'].gt_sem_seg.data.unique().tolist()) - {255}
    assert present == set(range(num_classes))


@pytest.fixture
def folders(tmp_path):
    """Twelve images of two classes in folders of two splits, and a function that makes the config that reads them."""
    for split in ('train', 'val'):
        for number in range(24):
            image = np.full((8, 8, 3), number + 24 * (split == 'val'), np.uint8)
            write(tmp_path / f'{split}/{("cat", "dog")[number % 2]}/{number}.png', image)

    def configure(train=(), val=()):
        common = dict(type='CustomDataset', data_root=str(tmp_path), pipeline=LOAD)
        parts = dict(train=dict(train), val=dict(val))
        loaders = {
            f'{split}_dataloader': dict(dataset=common | dict(data_prefix=split) | part)
            for split, part in parts.items()
        }
        return Config(dict(default_scope='mmpretrain', **loaders))

    return tmp_path, configure


def test_validation_data_that_are_the_training_data(folders):
    root, configure = folders
    (root / 'link').symlink_to('train')
    assert check_data(Data(configure()), ('train', 'val')) == []
    for prefix in ('./train', 'link'):
        (warning,) = check_data(Data(configure(val=dict(data_prefix=prefix))), ('train', 'val'))
        assert 'is the same image as' in warning
        assert warning.endswith('of train: the score of 24 of 24 has no meaning (and 23 more)')
    cfg = configure()
    cfg.val_dataloader = cfg.train_dataloader
    (warning,) = check_data(Data(cfg), ('train', 'val'))
    assert (
        warning
        == 'train data: train_dataloader.dataset is also the data set of val: scores on training data have no meaning'
    )
    report, _ = read_data(Data(cfg), ('train', 'val'), 1)
    assert [problem['kind'] for problem in report['warnings']] == ['same']


def test_labels_without_names_beside_named_ones(folders):
    root, configure = folders
    lines = [f'train/{("cat", "dog")[number % 2]}/{number}.png {1 - number % 2}' for number in range(24)]
    (root / 'train.txt').write_text('\n'.join(lines))
    listed = dict(ann_file='train.txt', data_prefix='')
    (warning,) = check_data(Data(configure(train=listed)), ('train', 'val'))
    assert "has labels without class names, but val has 'cat', 'dog', in this order" in warning
    assert check_data(Data(configure(train=dict(listed, classes=['cat', 'dog']))), ('train', 'val')) == []


@pytest.mark.parametrize(
    ('lines', 'message'),
    [
        (['cat/0.png 0', 'dog/1.png 1', 'cat/0.png 1'], 'cat/0.png, the same file, has [0]'),
        (['cat/0.png 0', 'dog/1.png 2'], 'has the label 2, outside the 2 classes of CustomDataset (0 to 1)'),
        (['cat/0.png 0', 'dog/99.png 1'], 'dog/99.png does not exist'),
        (['cat/0.png 0', 'dog/1.PNG 1'], "dog/1.PNG does not exist; but '1.png' exists, which differs in case"),
    ],
)
def test_lists_that_contradict_themselves_or_the_files(folders, lines, message):
    root, configure = folders
    (root / 'list.txt').write_text('\n'.join(lines))
    assert message in problem(configure(train=dict(ann_file='list.txt', classes=['cat', 'dog'])))


def test_what_reading_loses_is_named_by_the_whole_check(folders):
    root, configure = folders
    Image.fromarray(np.full((8, 8), 4095, np.uint16)).save(root / 'train/cat/12bit.png')
    Image.fromarray(np.full((8, 8), 65535, np.uint16)).save(root / 'train/cat/16bit.png')
    pages = [Image.fromarray(random_image(8, 8)) for _ in range(5)]
    pages[0].save(root / 'train/dog/pages.tif', save_all=True, append_images=pages[1:])
    cfg = configure(train=dict(extensions=['.png', '.tif']))
    report, _ = read_data(Data(cfg), ('train',), 1)
    assert report['problems'] == []
    found = {problem['kind']: f'{problem["file"]} {problem["message"]}' for problem in report['warnings']}
    assert 'train/cat/12bit.png has 16 bits with values up to 4095, which become 16 of 256 levels' in found['depth']
    assert 'train/dog/pages.tif has 5 frames or pages, of which only the first is read' in found['frames']
    assert len(report['warnings']) == 2
    Image.fromarray(np.full((8, 8, 3), 200, np.uint8)).save(root / 'train/cat/one.png')
    for path in ('train/cat/two.png', 'train/dog/three.png'):  # copies, one with another label
        (root / path).write_bytes((root / 'train/cat/one.png').read_bytes())
    (problem,) = read_data(Data(cfg), ('train',), 1)[0]['problems']
    assert (problem['kind'], problem['file']) == ('contradiction', str(root / 'train/dog/three.png'))
    assert 'train/cat/one.png, the same file, has [0]' in problem['message']
