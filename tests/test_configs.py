"""Every config builds in a fresh process, from another working directory, takes a training step, and can be saved."""

import re
import subprocess
import sys
from functools import cache
from math import isfinite
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from tool_runner import succeed

ROOT = Path(__file__).parents[1]
CONFIGS = sorted(path for path in (ROOT / 'configs').rglob('*.py') if '_base_' not in path.parts)
OWN = 'vt_', 'ablations', 'baselines'  # folders, by how they begin
SMALL = 'swin-tiny_digits', 'deit-small_digits', 'vit-tiny_digits', 'mvit-tiny'  # other papers' models


def is_deep(path):
    """Whether a config's network is too large to take a step every time.

    That is more than 18 layers, or another paper's model, which are built small elsewhere.
    """
    is_own = path.relative_to(ROOT / 'configs').parts[0].startswith(OWN) or path.stem.startswith(SMALL)
    return not is_own or re.search(r'(_|-|resnet)r?(34|50|101)(?!\d)', path.stem) is not None


# Only mmengine is imported: the first config has to bring in VT. Weights are not fetched, a small model made here
# stands for a teacher; images are small.
STEPS = """
import sys, traceback, torch
from mmengine.config import Config
from mmengine.model import revert_sync_batchnorm
from mmengine.registry import MODELS, init_default_scope
from mmengine.structures import PixelData

def take_step(path):
    cfg = Config.fromfile(path)
    assert cfg.custom_imports.imports == ['vt']
    init_default_scope(cfg.default_scope)
    from mmpretrain.structures import DataSample
    from mmseg.structures import SegDataSample
    from vt.engine.config.check_settings import check_config
    from vt.engine.config.parameter_rules import check_parameter_rules
    from vt.serialization.model_folder import describe
    from vt.engine.config.data import Data
    from vt.engine.config.data import apply_num_classes
    from vt.errors import UserError
    check_config(cfg)
    apply_num_classes(Data(cfg), 'ab')
    inner = cfg.model.backbone
    while 'backbone' in inner:
        inner = inner.backbone
    if 'HuggingFace' in inner.type:
        inner.pretrained = None
        try:
            raise AssertionError(describe(cfg))
        except UserError as error:
            assert "type='vt.HuggingFaceBackbone' is not allowed in a saved model" in str(error)
    else:
        assert describe(cfg)['model']  # it can be saved as a folder
    side = 70 if 'dinov2' in path else 64  # of patches of 14
    if 'decode_head' in cfg.model or 'pretrained_1xb' in path:
        cfg.model.backbone.init_cfg = None
    if 'decode_head' in cfg.model:
        cfg.model.data_preprocessor.update(size=(side, side), size_divisor=None)
        labels = torch.zeros(1, side, side, dtype=torch.long)
        options = dict(gt_sem_seg=PixelData(data=labels), metainfo=dict(img_shape=(side, side)))
        samples = [SegDataSample(**options) for _ in range(2)]
        inputs = list(torch.zeros(2, 3, side, side, dtype=torch.uint8))
    else:
        if 'img_size' in cfg.model.backbone:
            cfg.model.backbone.img_size = 64
        cfg.model.setdefault('data_preprocessor', cfg.data_preprocessor)
        if cfg.model.get('teacher'):
            give_teacher(cfg.model)
        samples = [DataSample().set_gt_label(index) for index in range(2)]
        frames = [cfg.model.backbone.num_frames] if cfg.model.backbone.get('num_frames') else []
        inputs = torch.zeros(2, 3, *frames, side, side, dtype=torch.uint8)
    model = revert_sync_batchnorm(MODELS.build(cfg.model))
    model.init_weights()
    check_parameter_rules(model, cfg.get('optim_wrapper') or {}, path)
    data = model.data_preprocessor(dict(inputs=inputs, data_samples=samples), True)
    loss, _ = model.parse_losses(model(**data, mode='loss'))
    loss.backward()
    unused = [parameter for parameter in model.parameters() if parameter.requires_grad and parameter.grad is None]
    assert not unused or cfg.get('find_unused_parameters')
    return loss.item()

def give_teacher(model):
    head = dict(type='LinearClsHead', num_classes=model.head.num_classes, in_channels=64)
    backbone = dict(type='ResNet', depth=18, base_channels=8, stem_channels=8)
    neck = dict(type='GlobalAveragePooling')
    model.teacher = dict(type='ImageClassifier', backbone=backbone, neck=neck, head=head)
    model.teacher_checkpoint = 'teacher.pth'
    torch.save(MODELS.build(model.teacher).state_dict(), 'teacher.pth')

for path in sys.argv[1:]:
    try:
        print('loss', take_step(path), path, flush=True)
    except Exception:
        print('failed', path, traceback.format_exc(), sep='\\n', file=sys.stderr, flush=True)
"""

# One line of ``custom_imports`` and a type are all that a config of MMPretrain needs.
MMPRETRAINS = """
_base_ = ['mmpretrain::resnet/resnet18_8xb32_in1k.py']
custom_imports = dict(imports=['vt'])
model = dict(backbone=dict(_delete_=True, type='vt.VTResNet', depth=18),
             neck=dict(type='vt.TokenAverage'), head=dict(in_channels=1024))
"""


@pytest.fixture(scope='module')
def steps(tmp_path_factory):
    """Of the deep configs, or the others, what a fresh process, in another working directory, printed of each."""

    @cache
    def run(deep):
        folder = tmp_path_factory.mktemp('elsewhere')
        (folder / 'mmpretrains.py').write_text(MMPRETRAINS)
        configs = [path for path in CONFIGS if is_deep(path) == deep] + ['mmpretrains.py'] * (not deep)
        return subprocess.run([sys.executable, '-c', STEPS, *configs], cwd=folder, capture_output=True, text=True)

    return run


def has_stepped(result, config):
    lines = [line.split(maxsplit=2) for line in result.stdout.splitlines() if line.startswith('loss ')]
    return str(config) in {path for _, loss, path in lines if isfinite(float(loss))}


@pytest.mark.parametrize(
    'config', [pytest.param(path, id=path.stem, marks=[pytest.mark.slow] * is_deep(path)) for path in CONFIGS]
)
def test_config_builds_anywhere_and_takes_a_step(config, steps):
    result = steps(deep=is_deep(config))
    assert has_stepped(result, config), result.stderr


def test_mmpretrains_own_config_takes_the_backbone_by_name(steps):
    assert has_stepped(steps(deep=False), 'mmpretrains.py'), steps(deep=False).stderr


@pytest.mark.parametrize(
    'name', ['vt_resnet/vt-resnet18_digits', pytest.param('baselines/resnet18_digits', marks=pytest.mark.slow)]
)
def test_mmpretrains_own_tool_trains_it(name, tmp_path):
    import mmpretrain

    tool = Path(mmpretrain.__file__).parent / '.mim/tools/train.py'
    options = ['train_cfg.max_epochs=1', 'train_dataloader.dataset.indices=64', 'val_dataloader.dataset.indices=32']
    command = [sys.executable, tool, ROOT / 'configs' / f'{name}.py', '--work-dir', tmp_path / 'run', '--cfg-options']
    succeed(subprocess.run([*command, *options], cwd=tmp_path, capture_output=True, text=True))
    assert (tmp_path / 'run' / 'epoch_1.pth').exists()


def test_mmsegmentations_own_tool_trains_its_own_config_with_the_neck(tmp_path):
    """VT-FPN drops in where FPN stood: the type, and nothing else about the neck; of a smaller backbone, to be fast."""
    import mmseg

    mim = Path(mmseg.__file__).parent / '.mim'
    for folder, shape, high in [('images', (64, 64, 3), 256), ('masks', (64, 64), 150)]:
        (tmp_path / folder).mkdir()
        for name in 'ab':
            array = np.random.default_rng(0).integers(0, high, shape, dtype=np.uint8)
            Image.fromarray(array).save(tmp_path / folder / f'{name}.{"jpg" if folder == "images" else "png"}')
    config = tmp_path / 'config.py'
    config.write_text(
        f'_base_ = [{str(mim / "configs/sem_fpn/fpn_r50_4xb4-160k_ade20k-512x512.py")!r}]\n'
        "custom_imports = dict(imports=['vt'])\n"
        "neck = dict(type='vt.VTFPN', in_channels=[64, 128, 256, 512])\n"
        'model = dict(pretrained=None, backbone=dict(depth=18), neck=neck, data_preprocessor=dict(size=(64, 64)))\n'
        'data = dict(\n'
        f'    data_root={str(tmp_path)!r},\n'
        "    data_prefix=dict(img_path='images', seg_map_path='masks'),\n"
        "    pipeline=[dict(type='LoadImageFromFile'), dict(type='LoadAnnotations', reduce_zero_label=True),\n"
        "              dict(type='PackSegInputs')],\n"
        ')\n'
        'train_dataloader = dict(batch_size=2, num_workers=0, persistent_workers=False, dataset=data)\n'
        'val_dataloader = dict(num_workers=0, persistent_workers=False, dataset=data)\n'
        'test_dataloader = val_dataloader\n'
        'train_cfg = dict(max_iters=2, val_interval=2)\n'
        'default_hooks = dict(checkpoint=dict(interval=2))\n'
    )
    command = [sys.executable, mim / 'tools/train.py', config, '--work-dir', tmp_path / 'run']
    result = succeed(subprocess.run(command, cwd=tmp_path, capture_output=True, text=True))
    weights = torch.load(tmp_path / 'run/iter_2.pth', weights_only=False)['state_dict']
    assert weights['neck.tokenizers.3.weight'].shape == (8, 256)
    assert 'mIoU' in result.stdout
