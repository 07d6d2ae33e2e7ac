"""Cross-validation: train on all folds of the training data but one, and validate on that one."""

import copy

from mmengine.config import Config

from vt.errors import UserError

from .config_parts import leaves

NUM_FOLDS, FOLD_SEED = 5, 0  # defaults; samples are shuffled by a fixed seed, so that all runs have the same folds


def enter_fold(cfg: Config) -> None:
    """Apply ``fold`` and ``num_folds`` of a config in place: hold out one fold of the training data for validation.

    The folds are those of MMPretrain's ``KFoldDataset``, with the samples shuffled once. If the config tests on its
    validation data, it tests on the fold as well; other test data are not changed.

    Raises:
        UserError: ``num_folds`` without ``fold``, or the config already has other folds.
    """
    fold, number = cfg.get('fold'), cfg.get('num_folds', NUM_FOLDS)
    if fold is None:
        if 'num_folds' in cfg:
            raise UserError(f'num_folds={number} has no effect without a fold: set fold')
        return
    train, val = ([*leaves((cfg.get(name) or {}).get('dataset'))] for name in ('train_dataloader', 'val_dataloader'))
    own = cfg.val_dataloader.dataset
    if str(own.get('type')).endswith('KFoldDataset'):
        if (own.fold, own.num_splits) != (fold, number):  # if equal, the config was written by a run
            raise UserError(
                f'fold={fold}: val_dataloader.dataset already is fold {own.fold} of {own.num_splits}: remove fold'
            )
        return
    (data,), (shown,) = train, val  # one data set each
    validation = copy.deepcopy(data) | {key: shown[key] for key in ('pipeline', 'test_mode') if key in shown}
    options = dict(type='mmpretrain.KFoldDataset', fold=fold, num_splits=number, seed=FOLD_SEED)
    is_tested = cfg.get('test_dataloader') == cfg.val_dataloader
    inner = copy.deepcopy(data)
    data.clear()
    data.update(options, dataset=inner)  # in place: wrappers that repeat or balance the data stay around it
    cfg.val_dataloader.dataset = dict(options, dataset=validation, test_mode=True)
    if is_tested:
        cfg.test_dataloader = copy.deepcopy(cfg.val_dataloader)
