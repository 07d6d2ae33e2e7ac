"""One table of what people get wrong in a config or its data: an edit, and words of the one line that ends the run."""

import json

import cv2
import pytest
from bad_input.one_process import refuse
from bad_input.small_runs import DIGITS, train
from forked_tools import run_forked
from tool_runner import ROOT, assert_one_line

import vt

CLASSES = {1: 'apple', 2: 'banana', 3: 'cherry'}
IMAGES = f"""
_base_ = '{ROOT}/configs/vt_resnet/vt-resnet18-half_digits.py'
model = dict(backbone=dict(num_tokens=4, token_channels=64), head=dict(in_channels=64, num_classes=3))
data_preprocessor = dict(num_classes=3)
pipeline = [dict(type='LoadImageFromFile'), dict(type='Resize', scale=(32, 32)), dict(type='PackInputs')]
images = dict(_delete_=True, type='CustomDataset', data_root='images', pipeline=pipeline)
train_dataloader = dict(batch_size=8, num_workers=0, dataset=dict(data_prefix='train', **images))
val_dataloader = dict(batch_size=8, num_workers=0, dataset=dict(data_prefix='val', **images))
test_dataloader = val_dataloader
train_cfg = dict(max_epochs=1)
val_evaluator = test_evaluator = dict(type='Accuracy', topk=(1,))
"""
SCENES = f"""
_base_ = '{ROOT}/configs/vt_fpn/vt-fpn_r18_digit-scenes.py'
model = dict(decode_head=dict(num_classes=2))
pipeline = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations'), dict(type='PackSegInputs')]
scenes = dict(_delete_=True, type='BaseSegDataset', data_root='scenes', pipeline=pipeline, img_suffix='.png',
    data_prefix=dict(img_path='images', seg_map_path='masks'), metainfo=dict(classes=('background', 'digit')))
train_dataloader = dict(batch_size=2, num_workers=0, dataset=scenes)
val_dataloader = test_dataloader = dict(batch_size=2, num_workers=0, dataset=scenes)
train_cfg = dict(max_iters=2, val_interval=2)
"""
TRAIN = "train_dataloader['dataset'].update"
LISTED = IMAGES + f"{TRAIN}(ann_file='{{}}', data_prefix='train')\n"
MATRIX = "val_evaluator = test_evaluator = [dict(type='ConfusionMatrix'), dict(type='Accuracy', topk=(1,))]\n"
CE = "dict(_delete_=True, type='mmseg.CrossEntropyLoss'"
MIXUP = "model['train_cfg'] = dict(augments=dict(type='Mixup', alpha=0.5))\n"
FIRST = 'while training on the first batch, of'
# Of a config's text, what the line says.
CONFIGS = [
    ('a = 1\nb = (\n', "SyntaxError: '(' was never closed (<unknown>, line 2)"),
    (f'{DIGITS}c = somewhere\n', "line 7: NameError: name 'somewhere' is not defined"),
    (f"{DIGITS}c = train_cfg['epochs']\n", "line 7: KeyError: 'epochs'"),
    (f'{DIGITS}c = _base_.lr\n', "line 7: AttributeError: 'ConfigDict' object has"),
    ("_base_ = 'nowhere.py'\n", 'No such file or directory: '),
    (b'name = "\xff\xfe"\n', 'UnicodeDecodeError'),
    ('a = 1\0\n', 'null bytes'),
    (f"{DIGITS}custom_imports = dict(imports=['nowhere'])\n", 'custom modules from'),
    ('', 'the config has no model'),
    # Values that no step of training takes.
    (IMAGES + "val_evaluator['topk'] = (1, 5)", 'in Accuracy: ValueError: Top-5 accuracy is unavailable since the num'),
    (IMAGES + MATRIX, 'save_best=auto: confusion_matrix/result is not a score of val_evaluator that is a single numb'),
    (IMAGES + "default_hooks = dict(checkpoint=dict(save_best='acc'))", 'a single number; set one of accuracy/top1'),
    (
        IMAGES + "custom_hooks = [dict(type='EarlyStoppingHook', monitor='accuracy')]",
        'EarlyStoppingHook.monitor=accuracy: accuracy is not a score of val_evaluator',
    ),
    (
        IMAGES + "param_scheduler = [dict(type='ReduceOnPlateauLR', monitor='accuracy/top5')]",
        'param_scheduler.monitor=accuracy/top5: accuracy/top5 is not a score of val_evaluator',
    ),
    (
        IMAGES + "train_cfg['val_begin'] = 5",
        'train_cfg.val_begin=5, but the run has 1 steps or epochs: it would not validate',
    ),
    (IMAGES + "model['backbone']['frozen_stages'] = 9", 'VTResNet: frozen_stages=9 does not exist; the last is 4'),
    (
        IMAGES + "model['head']['loss'] = dict(type='CrossEntropyLoss', class_weight=[1.0, 2.0])",
        f'{FIRST} 8 samples, in model.head.loss_module (CrossEntropyLoss): RuntimeError: weight tensor should be',
    ),
    (
        IMAGES + "model['head']['loss'] = dict(type='CrossEntropyLoss', pos_weight=[1.0, 2.0, 1.0])",
        'model.head.loss_module.pos_weight has no effect on a softmax: set class_weight',
    ),
    (
        IMAGES + "model['head']['in_channels'] = 60",
        'in model.head.fc (Linear): RuntimeError: mat1 and mat2 shapes cann',
    ),
    (IMAGES + MIXUP + "data_preprocessor['num_classes'] = 7", 'data_preprocessor.num_classes=7, but model.head has 3'),
    (
        IMAGES + "vis_backends = [dict(type='NeptuneVisBackend')]\nvisualizer = dict(vis_backends=vis_backends)",
        'install neptune: install what cannot be imported, or remove the part of the config that needs it',
    ),
    (
        SCENES.replace('LoadImageFromFile', 'LoadSingleRSImageFromFile'),
        'in train_dataloader.dataset.pipeline.0 (LoadSingleRSImageFromFile): RuntimeError: gdal is not installed',
    ),
    (
        IMAGES
        + "model['backbone'] = dict(_delete_=True, type='ResNet', depth=18)\nmodel['head']['in_channels'] = 512\n"
        + "model['neck'] = dict(_delete_=True, type='GlobalAveragePooling')\n"
        + 'train_dataloader.update(batch_size=47, drop_last=False)',
        'while training on the last batch of an epoch, 1 of 47 samples (drop_last=True leaves it out), in model.backb',
    ),
    (
        IMAGES + "param_scheduler = dict(_delete_=True, type='CosineAnnealingLR', begin=5)",
        'param_scheduler (CosineAnnealingLR): ValueError: end should be larger than begin, but got begin=5, end=1',
    ),
    (
        IMAGES + "model['backbone']['in_channels'] = 4",
        'in model.backbone.conv1 (Conv2d): RuntimeError: Given groups=1, weight of size [32, 4, 7, 7], expected input',
    ),
    (
        IMAGES + "pipeline[1] = dict(type='ResizeEdge', scale=32)",
        'while collating the first batch, of 8 samples: RuntimeError: stack expects each tensor to be equal size, but',
    ),
    (
        SCENES.replace('scenes =', "pipeline.insert(2, dict(type='Resize', scale=(64, 32), keep_ratio=True))\nscenes =")
        + "model['test_cfg'] = dict(size_divisor=None)\nmodel['data_preprocessor'] = dict(size=(64, 64))",
        'while validating the first batch, of 2 samples, in model.data_preprocessor (SegDataPreProcessor): Asser',
    ),
    (
        SCENES + f"model['decode_head']['loss_decode'] = {CE}, avg_non_ignore=True, class_weight=[1.0, 2.0])",
        'in model.decode_head.loss_decode (CrossEntropyLoss): IndexError: too many indices for tensor',
    ),
    (
        SCENES + f"model['decode_head'].update(out_channels=1, loss_decode={CE}))",
        'in model.decode_head.loss_decode (CrossEntropyLoss): IndexError: Target 1 is out of bounds',
    ),
    (SCENES + 'scenes.update(ignore_index=200)', 'FPNHead has ignore_index=255, but the data set 200: set all to the'),
    (SCENES.replace('num_classes=2', 'num_classes=12'), 'has num_classes=12, but the BaseSegDataset data set has 2 cl'),
    (
        SCENES.replace("('background', 'digit')", "('background',)").replace('num_classes=2', 'num_classes=1'),
        'scenes/masks/0.png has the label 1, outside the 1 classes',
    ),
    # Settings of data that the libraries refuse.
    (IMAGES + f"{TRAIN}(classes=['a', 'b', 'c', 'd'])", "number of subfolders (3) doesn't match the number of specif"),
    (IMAGES + f"{TRAIN}(extensions=['.npy'])", 'Found 0 files in subfolders of'),
    (IMAGES + f'{TRAIN}(indices=0.5)', 'train_dataloader.dataset (CustomDataset): TypeError: indices should be a int'),
    (IMAGES + f'{TRAIN}(indices=[0, 100])', 'train_dataloader.dataset (CustomDataset): IndexError: list index out of'),
    (LISTED.format('gone.txt'), 'there is no images/gone.txt: put it there, or correct its path'),
    (
        LISTED.format('no label.txt'),
        'train_dataloader.dataset (CustomDataset): ValueError: not enough values to unpack',
    ),
    (LISTED.format('words.txt'), "ValueError: invalid literal for int() with base 10: 'cat'"),
    (LISTED.format('empty.txt'), 'the train split is empty: correct train_dataloader.dataset in the config'),
    (LISTED.format('latin.txt'), "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xe4 in position 8"),
    (
        LISTED.format('format.json') + f"{TRAIN}(type='BaseDataset')\n",
        'train_dataloader.dataset (BaseDataset): ValueError: Annotation must have data_list and metainfo keys',
    ),
    (
        SCENES.replace("dict(type='LoadAnnotations')", "dict(type='LoadAnnotations', reduce_zero_label=False)")
        + 'scenes.update(reduce_zero_label=True)',
        'scenes/masks/0.png cannot be read: AssertionError: Initialize dataset with `reduce_zero',
    ),
    (SCENES + "scenes['metainfo'].update(palette=[[0, 0, 0]])", 'BaseSegDataset: ValueError: palette does not match'),
    (
        SCENES.replace('BaseSegDataset', 'ADE20KDataset'),
        "in ADE20KDataset: ValueError: new classes ('background', 'digit') is not a subset of classes ('wall',",
    ),
    # Data that lie elsewhere.
    (IMAGES.replace("root='images'", "root='nowhere'"), 'there is no nowhere: put it there, or correct its path'),
    (IMAGES.replace("prefix='train'", "prefix='training'"), 'there is no images/training, but images has the folders'),
]
# Of --cfg-options, for a small classifier of digits.
OPTIONS = [
    ('model.backbone.dpeth=18', "model.backbone: VTResNet has no argument 'dpeth'; did you mean depth"),
    ('model.bakbone.depth=18', "model: ImageClassifier has no argument 'bakbone'; did you mean backbone?"),
    ('train_dataloder.batch_size=2', "there is no setting 'train_dataloder'; did you mean train_dataloader"),
    ('model.backbone.type=vt.VTResNt', "model.backbone: there is no type 'vt.VTResNt'; did you mean vt.VTResNet"),
    ('optim_wrapper.optimizer.type=AdamWW', "optimizer: there is no type 'AdamWW'; did you mean AdamW"),
    ('optim_wrapper.clip_grad.max_norn=1', "clip_grad: it has no argument 'max_norn'; did you mean max_norm"),
    ('train_dataloader.dataset.pipeline.17.scale=3', 'pipeline.17.scale=3: the config has no such key'),
    ('train_dataloader.batch_size=-1', 'batch_size should be a positive integer value, but got batch_size=-1'),
    ('train_dataloader.batch_size=many', 'batch_size should be a positive integer value, but got batch_size=many'),
    ('val_dataloader.num_workers=-1', 'num_workers option should be non-negative'),
    ('train_cfg.max_epochs=0', 'train_cfg.max_epochs=0 must be at least 1'),
    ('train_cfg.max_epochs=0.5', 'train_cfg.max_epochs=0.5 must be of type int'),
    ('train_cfg.val_interval=0', 'train_cfg.val_interval=0 must be at least 1'),
    ('optim_wrapper.optimizer.lr=high', "optim_wrapper.optimizer (AdamW): TypeError: '<=' not supported between inst"),
    ('optim_wrapper.optimizer.lr=nan', 'in AdamW: ValueError: Invalid learning rate: nan'),
    ('optim_wrapper.optimizer.weight_decay=-1', 'ValueError: Invalid weight_decay value: -1'),
    ('train_dataloader.dataset.pipeline=[]', "in model.data_preprocessor (ClsDataPreprocessor): KeyError: 'inputs'"),
    ('speed.matmul_precision=low', "speed.matmul_precision='low' must be one of highest, high, medium"),
    ('speed.chanels_last=False', "speed: it has no argument 'chanels_last'; did you mean channels_last?"),
    ('model=3', '--cfg-options model=3: the config has no such key (it is a part or a list of parts)'),
    ('model.head.loss=CrossEntropyLoss', 'no such key (it is a part or a list of parts); a part is set by its type'),
    ("auto_scale_lr={'_delete_':True,'enable':True}", 'Lack of `base_batch_size` in `auto_scale_lr`'),
    ('randomness.seed=-1', 'ValueError: Seed must be between 0 and 2**32 - 1'),
    ('log_level=LOUD', "KeyError: 'LOUD'"),
    ('resume=often', "resume='often' must be of type bool"),
    ('imbalance=other', "imbalance='other' must be 'weighted', 'focal', 'balanced' or None"),
    ('default_hooks.checkpoint.interval=two', "default_hooks.checkpoint.interval='two' must be of type int"),
    ('default_hooks.checkpoint.out_dir=x', '(--work-dir), and published by tools/publish.py: remove out_dir'),
    (
        "custom_hooks=[{'type':'vt.CheckpointHook','filename_tmpl':'model_{}.pth'}]",
        'vt.CheckpointHook: checkpoints are epoch_N.pth or iter_N.pth in the work directory',
    ),
    (
        "optim_wrapper.optimizer={'_delete_':True,'type':'ZeroRedundancyOptimizer','optimizer_class':'a'}",
        'ZeroRedundancyOptimizer is replaced by the key fsdp',
    ),
    ('model.backbone.num_tokens=2.5', 'model.backbone.num_tokens=2.5 must be of type int'),
    ('model.backbone.groups=3', 'GroupedLinear: in_channels=128 is not'),
    ('model.backbone.relation.num_heads=5', 'layer4.0.relation (TokenTransformer): RuntimeError: unflatten: Provided'),
    ('model.backbone.init_cfg=a.pth', 'while preparing the training, in model.backbone (VTResNet): AssertionError'),
    ('model.head.num_classes=7', 'model.head has num_classes=7, but the Digits data set has 10 classes; set model.hea'),
    ('train_dataloader.dataset.indices=5', 'an epoch has no batch: train_dataloader.data'),
    ('train_dataloader.dataset.pipeline.0.scale=2', 'VTResNet: an image of 6x6 pixels is too small'),
    ('train_dataloader.dataset.pipeline.0.scale=200000', 'of Digits cannot be loaded: '),
    ('val_dataloader.dataset.pipeline.0.scale=200000', 'of Digits cannot be loaded: '),
]
LISTS = {
    'no label.txt': b'apple/0.png 0\napple/1.png\n',
    'words.txt': b'apple/0.png cat\n',
    'empty.txt': b'',
    'latin.txt': b'a.png 0\n\xe4.png 0\n',
    'format.json': b'{"images": []}',
}


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """Images of three classes and scenes; the last of each is wider than the others."""
    folder = tmp_path_factory.mktemp('late')
    for split in ('train', 'val'):
        for label, name in CLASSES.items():
            (folder / 'images' / split / name).mkdir(parents=True)
            digits = vt.Digits('train' if split == 'train' else 'test', digits=(label,))
            for index in range(16):
                size = (48, 32) if (label, index) == (3, 15) else (32, 32)
                path = folder / 'images' / split / name / f'{index}.png'
                cv2.imwrite(str(path), cv2.resize(digits[index]['img'], size))
    for name, content in LISTS.items():
        (folder / 'images' / name).write_bytes(content)
    for name in ('images', 'masks'):
        (folder / 'scenes' / name).mkdir(parents=True)
    for index, scene in enumerate(vt.DigitScenes('train', num_scenes=6)):
        size = (96, 64) if index == 5 else (64, 64)
        for name, image in (('images', scene['img']), ('masks', (scene['gt_seg_map'] > 0).astype('uint8'))):
            image = cv2.resize(image, size, interpolation=cv2.INTER_NEAREST)
            cv2.imwrite(str(folder / 'scenes' / name / f'{index}.png'), image)
    return folder


@pytest.mark.parametrize(('text', 'words'), CONFIGS, ids=range(len(CONFIGS)))
def test_a_config(text, words, folder, monkeypatch, capsys):
    assert words in refuse(folder, text, (), monkeypatch, capsys)


@pytest.mark.parametrize(('option', 'words'), OPTIONS, ids=[option for option, _ in OPTIONS])
def test_an_option(option, words, folder, monkeypatch, capsys):
    options = [option, 'default_hooks.checkpoint=None'] if 'hooks' not in option else [option]
    assert words in refuse(folder, DIGITS, options, monkeypatch, capsys)


def test_a_traceback_is_shown_on_request_alone_and_lies_in_the_log(tmp_path):
    result = train(tmp_path, DIGITS, options=['model.head.in_channels=60'])
    (log,) = (tmp_path / 'work_dirs/config').glob('*/*.log')
    assert f'(the whole traceback: {log.relative_to(tmp_path)})' in result.stderr
    assert 'Traceback (most recent call last)' in log.read_text()
    assert 'Traceback' not in result.stdout + result.stderr
    result = train(tmp_path, DIGITS, '--traceback', options=['model.head.in_channels=60'])
    assert result.returncode == 1
    assert 'Traceback (most recent call last)' in result.stderr
    assert 'error: config.py: while training on the first batch, of 32 samples, in model.head.fc' in result.stderr


def test_an_error_that_nobody_foresaw_shows_its_traceback(tmp_path):
    config = f"{DIGITS}custom_imports = dict(imports=['vt', 'bad_input.failing_hook'])\n"
    result = train(tmp_path, config + "custom_hooks = [dict(type='FailAtStep')]\n")
    assert result.returncode == 1
    assert 'Traceback (most recent call last)' in result.stderr
    assert 'RuntimeError: in the midst of it' in result.stderr
    assert 'error: ' not in result.stderr


def test_what_fits_runs_and_a_matrix_is_written(folder):
    """The other side of the cases above, and the test of the same size of batches."""
    early = "custom_hooks = [dict(type='EarlyStoppingHook', monitor='accuracy/top1', patience=5)]\n"
    per_class = "val_evaluator.append(dict(type='SingleLabelMetric', average=None))\n"
    best = "default_hooks = dict(checkpoint=dict(save_best='accuracy/top1'))\n"
    (folder / 'fits.py').write_text(IMAGES + MATRIX + per_class + early + best)
    result = run_forked('train.py', 'fits.py', cwd=folder)
    assert result.returncode == 0, result.stderr
    record = json.loads((folder / 'work_dirs/fits/training.json').read_text(), parse_constant=pytest.fail)
    assert record['metrics'].keys() == {'accuracy/top1'}
    assert (
        len(record['tables']['confusion_matrix/result']) == len(record['tables']['single-label/recall_classwise']) == 3
    )
    tested = ['work_dirs/fits/epoch_1.pth', '--out', 'm.json']
    result = run_forked('test.py', 'fits.py', *tested, cwd=folder)
    assert result.returncode == 0, result.stderr
    scores = json.loads((folder / 'm.json').read_text(), parse_constant=pytest.fail)
    assert sum(map(sum, scores['confusion_matrix/result'])) == 48
    wider = ["test_dataloader.dataset.pipeline.1={'_delete_':True,'type':'ResizeEdge','scale':32}"]
    result = run_forked('test.py', 'fits.py', 'work_dirs/fits/epoch_1.pth', cwd=folder, options=wider)
    assert_one_line(result, 'while collating the first batch, of 8 samples: RuntimeError: stack expects')
