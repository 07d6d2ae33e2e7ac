"""Cross-validation: the folds of a config's training data."""

import numpy as np
import pytest
from mmengine.registry import DATASETS, DefaultScope
from tool_runner import ROOT

from vt.apis import get_model
from vt.data_checks.data import check_data
from vt.engine.config.check_settings import check_config
from vt.engine.config.data import Data
from vt.engine.config.steps import read_config
from vt.engine.run.record import digest_config
from vt.errors import UserError
from vt.inference.inputs import Samples

DIGITS = str(ROOT / 'configs/vt_resnet/vt-resnet18-half_digits.py')
SCENES = str(ROOT / 'configs/vt_fpn/vt-fpn_r18_digit-scenes.py')
FEW = {'train_dataloader.dataset.indices': 31}


def read(config=DIGITS, **options):
    cfg = read_config(config, options)
    check_config(cfg, options)
    return cfg


def samples(cfg, split):
    """What the pipeline is given of each sample, as bytes."""
    with DefaultScope.overwrite_default_scope(cfg.default_scope):
        dataset = DATASETS.build(cfg[f'{split}_dataloader'].dataset)
    return [np.asarray(info['img']).tobytes() for info in map(dataset.get_data_info, range(len(dataset)))]


@pytest.mark.parametrize(('config', 'few'), [(DIGITS, FEW), (SCENES, {'train_dataloader.dataset.num_scenes': 11})])
def test_each_sample_is_held_out_once_and_never_trained_on(config, few):
    whole, held_out = samples(read(config, **few), 'train'), []
    for fold in range(3):
        cfg = read(config, fold=fold, num_folds=3, **few)
        own = samples(cfg, 'val')
        assert sorted(samples(cfg, 'train') + own) == sorted(whole)
        assert samples(cfg, 'test') == own
        held_out += own
    assert sorted(held_out) == sorted(whole)
    assert held_out != whole  # folders list one class after the other: folds are of shuffled samples


def test_a_fold_is_seen_as_the_validation_is_and_test_data_of_their_own_stay():
    plain, cfg = read(), read(fold=2, **{'test_dataloader.dataset.split_seed': 1})
    for split in ('train', 'val'):
        loader = cfg[f'{split}_dataloader']
        assert loader.dataset.dataset.pipeline == plain[f'{split}_dataloader'].dataset.pipeline
        assert (loader.dataset.dataset.split, loader.dataset.num_splits) == ('train', 5)
    assert cfg.test_dataloader.dataset.type == 'vt.Digits'
    assert digest_config(cfg) != digest_config(read(fold=1, **{'test_dataloader.dataset.split_seed': 1}))


def test_a_wrapper_stays_around_the_folds():
    digits = dict(type='vt.Digits', pipeline=[dict(type='PackInputs')], **dict(indices=50))
    wrapped = {'train_dataloader.dataset': dict(_delete_=True, type='RepeatDataset', times=2, dataset=digits)}
    cfg = read(fold=0, **wrapped)
    assert len(samples(cfg, 'train')) == 2 * 40
    assert len(samples(cfg, 'val')) == 10


def test_the_config_that_a_run_leaves_has_its_fold_already(tmp_path):
    """And samples of other folds are no duplicates."""
    cfg = read(fold=2)
    assert not [line for line in check_data(Data(cfg), ('train', 'val')) if 'fewer' not in line]
    cfg.dump(tmp_path / 'c.py')
    again = read(str(tmp_path / 'c.py'))
    assert again.train_dataloader == cfg.train_dataloader
    assert get_model(again).dataset_meta['classes'] == tuple('0123456789')
    assert Samples(again).input_shape == Samples(read()).input_shape
    with pytest.raises(UserError, match=r'fold=1: the config already uses fold 2 of 5'):
        read(str(tmp_path / 'c.py'), fold=1)


TWO = {'train_dataloader.dataset': dict(_delete_=True, type='ConcatDataset', datasets=2 * [dict(type='vt.Digits')])}


@pytest.mark.parametrize(
    ('options', 'words'),
    [
        (dict(num_folds=3), 'num_folds=3 has no effect without a fold'),
        (dict(fold=5), 'fold=5 must be 0 to 4'),
        (TWO | dict(fold=0), 'fold=0 requires one data set in train_dataloader and one in val_dataloader'),
        (
            dict(val_dataloader=None, fold=0),
            'fold=0 requires one data set in train_dataloader and one in val_dataloader',
        ),
    ],
)
def test_folds_that_cannot_be_are_refused(options, words):
    with pytest.raises(UserError, match=words):
        read(**options)
