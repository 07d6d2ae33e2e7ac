"""Configs that can't be read, and settings that can't be used."""

import pytest
from bad_input.kept_run import DIGITS, assert_refused, train

# Name, then the config's text or bytes, then what the line holds.
FILES = {
    'syntax error': ('a = 1\nb = (\n', "line 2: SyntaxError: '(' was never closed"),
    'undefined name': (f'{DIGITS}c = somewhere\n', "line 7: NameError: name 'somewhere' is not defined"),
    'key that is not there': (f"{DIGITS}c = train_cfg['epochs']\n", 'line 7: KeyError: epochs'),
    'inherits itself': ("_base_ = 'config.py'\n", 'the config inherits itself: correct _base_'),
    'missing base': ("_base_ = 'nowhere.py'\n", 'a file does not exist: correct _base_ of the config'),
    'base variable that is not there': (f'{DIGITS}c = _base_.lr\n', "line 7: AttributeError: 'ConfigDict' object has"),
    'other encoding': (b'name = "\xff\xfe"\n', 'UnicodeDecodeError'),
    'NUL in the text': ('a = 1\0\n', 'null bytes'),
    'no module of that name': (f"{DIGITS}custom_imports = dict(imports=['nowhere'])\n", 'custom modules from'),
    'no settings at all': ('', 'the config has no model'),
}
OPTIONS = {
    'misspelt setting': (
        'model.backbone.dpeth=18',
        "model.backbone: VTResNet has no argument 'dpeth'; did you mean depth",
    ),
    'misspelt part': (
        'model.bakbone.depth=18',
        "model: ImageClassifier has no argument 'bakbone'; did you mean backbone?",
    ),
    'misspelt first key': (
        'train_dataloder.batch_size=2',
        "there is no setting 'train_dataloder'; did you mean train_dataloader",
    ),
    'misspelt type': (
        'model.backbone.type=vt.VTResNt',
        "model.backbone: there is no type 'vt.VTResNt'; did you mean vt.VTResNet",
    ),
    'misspelt optimizer': (
        'optim_wrapper.optimizer.type=AdamWW',
        "optim_wrapper.optimizer: there is no type 'AdamWW'; did you mean AdamW",
    ),
    'step that is not there': (
        'train_dataloader.dataset.pipeline.17.scale=3',
        'train_dataloader.dataset.pipeline.17.scale=3: the config has no such key',
    ),
    'negative batch size': (
        'train_dataloader.batch_size=-1',
        'train_dataloader.batch_size=-1 must be a whole number of',
    ),
    'batch size in words': ('train_dataloader.batch_size=many', "train_dataloader.batch_size='many' must be a whole"),
    'negative workers': ('val_dataloader.num_workers=-1', 'val_dataloader.num_workers=-1 must be a whole number of at'),
    'no epochs': ('train_cfg.max_epochs=0', 'train_cfg.max_epochs=0 must be a whole number of at least 1'),
    'half an epoch': ('train_cfg.max_epochs=0.5', 'train_cfg.max_epochs=0.5 must be a whole number of at least 1'),
    'learning rate in words': (
        'optim_wrapper.optimizer.lr=high',
        "optim_wrapper.optimizer.lr='high' must be a number",
    ),
    'learning rate NaN': (
        'optim_wrapper.optimizer.lr=nan',
        'optim_wrapper.optimizer.lr=nan must be a number of',
    ),
    'negative weight decay': (
        'optim_wrapper.optimizer.weight_decay=-1',
        'weight_decay=-1 must be a number of',
    ),
    'empty pipeline': (
        'train_dataloader.dataset.pipeline=[]',
        'train_dataloader.dataset.pipeline=[] must be a list',
    ),
    'number for a model': ('model=3', 'model is a part or a list of parts: set model.type'),
    'negative seed': ('randomness.seed=-1', 'randomness.seed=-1 must be a whole number from 0 to 2**32 - 1, or None'),
    'unknown log level': ('log_level=LOUD', "log_level='LOUD' must be 'DEBUG', 'INFO', 'WARNING' or 'ERROR'"),
    'tokens that are not whole': ('model.backbone.num_tokens=2.5', 'model.backbone.num_tokens=2.5 must be of type int'),
    'sizes that do not divide': ('model.backbone.groups=3', 'FilterTokenizer: in_channels=128 is not'),
    'classes that differ': ('model.head.num_classes=7', 'model.head has num_classes=7, but the Digits data set has 10'),
    'fewer samples than a batch': (
        'train_dataloader.dataset.indices=5',
        'an epoch has no batch: train_dataloader.data',
    ),
    'epochs of nothing': ('train_dataloader.dataset.indices=5 param_scheduler=None', 'an epoch has no batch: train'),
    'image too small': ('train_dataloader.dataset.pipeline.0.scale=2', 'VTResNet: an image of 6x6 pixels is too small'),
}


@pytest.mark.parametrize('name', FILES)
def test_a_config_that_cannot_be_read(name, kept, tmp_path):
    text, message = FILES[name]
    (tmp_path / 'config.py').write_bytes(text if isinstance(text, bytes) else text.encode())
    assert_refused(train(tmp_path, None, '--work-dir', kept), message, kept)


@pytest.mark.parametrize('name', OPTIONS)
def test_a_setting_that_cannot_be_used(name, kept, tmp_path):
    option, message = OPTIONS[name]
    assert_refused(train(tmp_path, DIGITS, '--work-dir', kept, options=option.split()), message, kept)


def test_a_traceback_is_shown_on_request_alone(kept, tmp_path):
    result = train(tmp_path, DIGITS, '--work-dir', kept, '--traceback', options=['model.head.num_classes=7'])
    assert result.returncode == 1
    assert 'Traceback (most recent call last)' in result.stderr
    assert 'error: config.py: model.head has num_classes=7' in result.stderr


def test_an_error_that_nobody_foresaw_shows_its_traceback(kept, tmp_path):
    before = kept.digests()
    result = train(tmp_path, DIGITS, '--work-dir', kept, options=['model.head.in_channels=60'])
    assert result.returncode == 1
    assert 'Traceback (most recent call last)' in result.stderr
    assert 'RuntimeError: ' in result.stderr
    assert 'error: ' not in result.stderr
    assert {path: digest for path, digest in kept.digests().items() if path in before} == before


def test_the_log_has_the_whole_traceback(tmp_path):
    result = train(tmp_path, DIGITS, options=['model.head.num_classes=7'])
    (log,) = (tmp_path / 'work_dirs/config').glob('*/*.log')
    assert f'(the whole traceback: {log.relative_to(tmp_path)})' in result.stderr
    assert 'Traceback (most recent call last)' in log.read_text()
    assert 'Traceback' not in result.stdout
