"""What would end a run late, after an epoch or at its end, is one line before its first iteration."""

import json

import cv2
import pytest
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
MATRIX = "val_evaluator = test_evaluator = [dict(type='ConfusionMatrix'), dict(type='Accuracy', topk=(1,))]\n"
CE = "dict(_delete_=True, type='mmseg.CrossEntropyLoss'"
LATE = {
    'top-5 of three classes': (
        IMAGES + "val_evaluator = dict(type='Accuracy', topk=(1, 5))",
        'val_evaluator.topk=(1, 5) exceeds the number of classes, 3: set topk=(1,)',
    ),
    'best by a matrix': (
        IMAGES + MATRIX,
        "'auto' uses the first score, confusion_matrix/result, which is not a single",
    ),
    'best by no score': (
        IMAGES + "default_hooks = dict(checkpoint=dict(save_best='acc'))",
        'default_hooks.checkpoint.save_best=acc: acc is not a score of val_evaluator; set one of accuracy/top1',
    ),
    'early stopping by no score': (
        IMAGES + "custom_hooks = [dict(type='EarlyStoppingHook', monitor='accuracy')]",
        'EarlyStoppingHook.monitor=accuracy: accuracy is not a score of val_evaluator; set one of accuracy/top1',
    ),
    'a schedule by no score': (
        IMAGES + "param_scheduler = [dict(type='ReduceOnPlateauLR', monitor='accuracy/top5')]",
        'param_scheduler.monitor=accuracy/top5: accuracy/top5 is not a score of val_evaluator',
    ),
    'no validation': (
        IMAGES + "train_cfg['val_begin'] = 5",
        'train_cfg.val_begin=5, but the run ends after 1 epochs',
    ),
    'a stage that does not exist': (
        IMAGES + "model['backbone']['frozen_stages'] = 9",
        'VTResNet: frozen_stages=9 does not exist; the last is 4',
    ),
    'weights of a loss': (
        IMAGES + "model['head']['loss'] = dict(type='CrossEntropyLoss', class_weight=[1.0, 2.0])",
        'model.head.loss.class_weight has 2 numbers, but model.head.num_classes=3: set one number per class',
    ),
    'classes of Mixup': (
        IMAGES
        + "model['train_cfg'] = dict(augments=dict(type='Mixup', alpha=0.5))\ndata_preprocessor['num_classes'] = 7",
        'data_preprocessor.num_classes=7, but the head has 3 classes: set the same number',
    ),
    'logging package': (
        IMAGES + "vis_backends = [dict(type='NeptuneVisBackend')]\nvisualizer = dict(vis_backends=vis_backends)",
        'install neptune: install what cannot be imported, or remove the part of the config that needs it',
    ),
    'package of a step': (
        SCENES.replace('LoadImageFromFile', 'LoadSingleRSImageFromFile'),
        'train_dataloader.dataset.pipeline.0, LoadSingleRSImageFromFile, cannot be built: RuntimeError: gdal is not',
    ),
    'a last batch of one': (
        IMAGES
        + "model['backbone'] = dict(_delete_=True, type='ResNet', depth=18)\nmodel['head']['in_channels'] = 512\n"
        + "model['neck'] = dict(_delete_=True, type='GlobalAveragePooling')\n"
        + 'train_dataloader.update(batch_size=47, drop_last=False)',
        'train_dataloader: the last batch of an epoch has 1 of 47 samples and fails, ValueError: Expected more than 1',
    ),
    'schedule after the run': (
        IMAGES + "param_scheduler = dict(_delete_=True, type='CosineAnnealingLR', begin=5)",
        'param_scheduler.0 begins after 5 epochs, but the run ends after 1: remove it, lower its begin, or raise',
    ),
    'channels': (
        IMAGES + "pipeline[0]['color_type'] = 'grayscale'",
        'images have 1 channels, but the first convolution takes 3: set in_channels of the backbone, or color_type',
    ),
    'sizes in a batch': (
        IMAGES + "pipeline[1] = dict(type='ResizeEdge', scale=32)",
        'images of a batch differ in size, 32x32 and 32x48: resize or crop them to one size in its pipeline, or set',
    ),
    'sizes in a batch of scenes': (
        SCENES.replace('scenes =', "pipeline.insert(2, dict(type='Resize', scale=(64, 32), keep_ratio=True))\nscenes =")
        + "model['test_cfg'] = dict(size_divisor=None)\nmodel['data_preprocessor'] = dict(size=(64, 64))",
        'val_dataloader: images of a batch differ in size, 32x32 and 32x48',
    ),
    'weights and average': (
        SCENES + f"model['decode_head']['loss_decode'] = {CE}, avg_non_ignore=True, class_weight=[1.0, 2.0])",
        'has class_weight and avg_non_ignore=True, which MMSegmentation cannot combine: remove avg_non_ignore',
    ),
    'one output': (
        SCENES + f"model['decode_head'].update(out_channels=1, loss_decode={CE}))",
        'model.decode_head.out_channels=1 needs a sigmoid: set model.decode_head.loss_decode.use_sigmoid=True',
    ),
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
    for name in ('images', 'masks'):
        (folder / 'scenes' / name).mkdir(parents=True)
    for index, scene in enumerate(vt.DigitScenes('train', num_scenes=6)):
        size = (96, 64) if index == 5 else (64, 64)
        for name, image in (('images', scene['img']), ('masks', (scene['gt_seg_map'] > 0).astype('uint8'))):
            image = cv2.resize(image, size, interpolation=cv2.INTER_NEAREST)
            cv2.imwrite(str(folder / 'scenes' / name / f'{index}.png'), image)
    return folder


def train(folder, text, name, *arguments):
    (folder / f'{name}.py').write_text(text)
    return run_forked('train.py', f'{name}.py', *arguments, cwd=folder)


@pytest.mark.parametrize('name', LATE)
def test_a_late_end_is_one_line_before_the_run(name, folder):
    text, message = LATE[name]
    result = train(folder, text, name.replace(' ', '_').replace('-', '_'))
    assert_one_line(result, message)
    assert '(train)' not in result.stdout
    assert not list(folder.glob(f'work_dirs/{name.replace(" ", "_")}/*.pth'))


def test_what_fits_runs_and_a_matrix_is_written(folder):
    """The other side of the cases above, and the test of the same size of batches."""
    early = "custom_hooks = [dict(type='EarlyStoppingHook', monitor='accuracy/top1', patience=5)]\n"
    per_class = "val_evaluator.append(dict(type='SingleLabelMetric', average=None))\n"
    best = "default_hooks = dict(checkpoint=dict(save_best='accuracy/top1'))\n"
    result = train(folder, IMAGES + MATRIX + per_class + early + best, 'fits')
    assert result.returncode == 0, result.stderr
    record = json.loads((folder / 'work_dirs/fits/training.json').read_text(), parse_constant=pytest.fail)
    assert record['metrics'].keys() == {'accuracy/top1'}
    assert (
        len(record['tables']['confusion_matrix/result']) == len(record['tables']['single-label/recall_classwise']) == 3
    )
    tested = ['work_dirs/fits/epoch_1.pth', '--out', 'm.json', '--out-item', 'metrics']
    result = run_forked('test.py', 'fits.py', *tested, cwd=folder)
    assert result.returncode == 0, result.stderr
    scores = json.loads((folder / 'm.json').read_text(), parse_constant=pytest.fail)
    assert sum(map(sum, scores['confusion_matrix/result'])) == 48
    result = run_forked('test.py', 'fits.py', 'work_dirs/fits/epoch_1.pth', '--benchmark', cwd=folder)
    assert result.returncode == 0, result.stderr
    result = run_forked('analysis/report.py', 'runs', 'work_dirs/fits', cwd=folder)
    assert result.returncode == 0, result.stderr
    assert 'epoch_1.pth' in result.stdout
    wider = [
        f"{key}_dataloader.dataset.pipeline.1={{'_delete_':True,'type':'ResizeEdge','scale':32}}" for key in ('test',)
    ]
    result = run_forked('test.py', 'fits.py', 'work_dirs/fits/epoch_1.pth', cwd=folder, options=wider)
    assert_one_line(result, 'test_dataloader: images of a batch differ in size, 32x32 and 32x48')
