"""Class folders are listed as MMPretrain lists them, once for all that needs them."""

import os
from collections import Counter
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given, settings, strategies
from mmpretrain.datasets import CustomDataset as Plain

from vt.datasets.class_folders import CustomDataset
from vt.engine.run.launch import build_runner

NAMES = strategies.sampled_from(['a.jpg', 'B.JPG', '.c.png', 'd.txt', 'e 1.png', 'é.bmp', 'f', '10.png', '9.png'])
FOLDERS = strategies.sampled_from(['', 'deep', 'deep/more', '.hidden', 'z.png'])
TREES = strategies.sets(strategies.tuples(strategies.sampled_from(['dog', 'Cat', 'ant 2']), FOLDERS, NAMES), min_size=1)


def outcome(kind, folder):
    """Samples, classes and labels of folders, or the type of the error."""
    try:
        dataset = kind(str(folder), data_prefix='', serialize_data=False)
    except Exception as error:
        return type(error)
    infos = [dataset.get_data_info(index) for index in range(len(dataset))]
    return infos, dataset.metainfo, dataset.folder_to_idx


@settings(max_examples=40)
@given(TREES, strategies.booleans())
def test_samples_are_those_of_mmpretrain(tmp_path_factory, tree, links):
    folder = tmp_path_factory.mktemp('some images')
    (folder / 'beside.png').touch()
    for name, deeper, file in tree:
        path = folder / name / deeper / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        if links:
            Path(f'{path}.png').symlink_to('nowhere')
    if links:
        (folder / 'linked').symlink_to(path.parent)
    own = CustomDataset(str(folder), data_prefix='', lazy_init=True)
    assert outcome(CustomDataset, folder) == outcome(Plain, folder)
    if isinstance(found := outcome(CustomDataset, folder), tuple):
        own.full_init()
        assert own.label_counts == Counter(info['gt_label'] for info in found[0])
        used = {info['img_path'] for info in found[0]}
        rest = {os.path.join(root, file) for root, _, files in os.walk(folder, followlinks=True) for file in files}
        assert {path for path in own.unused if os.path.basename(path)[0] != '.'} <= rest - used


@pytest.mark.parametrize('options', [{}, dict(imbalance='weighted'), dict(imbalance='balanced'), dict(fold=1)])
def test_files_are_listed_once_for_classes_weights_loaders_and_checks(tmp_path, monkeypatch, options):
    from vt.data_checks.data import check_data
    from vt.engine.config.steps import RunOptions, prepare

    for index in range(20):
        path = tmp_path / 'images' / f'class {index % 2}' / f'{index}.png'
        path.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(path), np.full((32, 32, 3), index, np.uint8))
    listed = []
    load = CustomDataset.load_data_list
    monkeypatch.setattr(CustomDataset, 'load_data_list', lambda self: [listed.append(self), load(self)][1])
    monkeypatch.setattr(Plain, 'load_data_list', lambda self: 1 / 0)
    changes = {'train_dataloader.dataset.data_prefix': 'images', 'val_dataloader.dataset.data_prefix': 'images'}
    changes |= {'data_root': str(tmp_path), 'work_dir': str(tmp_path / 'run'), 'train_cfg.max_epochs': 1}
    changes |= {f'{split}_dataloader.batch_size': 4 for split in ('train', 'val')} | options
    run = prepare('configs/vt_resnet/vt-resnet18_1xb32-90e_image-folder.py', RunOptions(changes))
    check_data(run.data, ('train', 'val'))
    runner = build_runner(run.cfg)
    runner.data = run.data
    assert len(runner.build_dataloader(run.cfg.train_dataloader, 0).dataset) == {1: 16}.get(run.cfg.get('fold'), 20)
    assert len(runner.build_dataloader(run.cfg.val_dataloader, 0).dataset) == {1: 4}.get(run.cfg.get('fold'), 20)
    assert len(listed) == 1
