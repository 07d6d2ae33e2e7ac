"""Pages for users of other libraries: their flags exist where the library can be asked, VT's settings are accepted."""

import inspect
import re
from pathlib import Path

import mmcv
import mmpretrain
import numpy as np
import pytest
import timm
import timm.data
import timm.optim
import timm.scheduler
import timm.utils
from mmengine.config import Config
from mmengine.hooks import CheckpointHook
from mmengine.optim import OptimWrapper
from mmengine.runner import Runner
from mmpretrain.datasets import BaseDataset
from mmpretrain.models import ResNet
from timm.models import load_checkpoint
from tool_runner import ROOT
from torch.nn.utils import clip_grad_norm_

from vt.cli.commands import COMMANDS
from vt.cli.parser import CommandParser
from vt.engine.config.compose import short_models
from vt.engine.config.short_names import SHORT_NAMES
from vt.engine.config.steps import RunOptions, prepare
from vt.key_values import parse_options

PAGES = ('mmpretrain', 'timm', 'torchvision', 'ultralytics')
# Flags of timm's train.py, which its package does not contain: what reads them, and the name of the argument there.
READ_BY = {
    '--pretrained': (timm.create_model, 'pretrained'),
    '--drop-path': (timm.models.VisionTransformer, 'drop_path_rate'),
    '--initial-checkpoint': (load_checkpoint, 'checkpoint_path'),
    '--data-dir': (timm.data.create_dataset, 'root'),
    '--train-split': (timm.data.create_dataset, 'split'),
    '--batch-size': (timm.data.create_loader, 'batch_size'),
    '--input-size': (timm.data.create_loader, 'input_size'),
    '--mean': (timm.data.create_loader, 'mean'),
    '--std': (timm.data.create_loader, 'std'),
    '--aa': (timm.data.create_loader, 'auto_augment'),
    '--hflip': (timm.data.create_loader, 'hflip'),
    '--scale': (timm.data.create_loader, 'scale'),
    '--color-jitter': (timm.data.create_loader, 'color_jitter'),
    '--reprob': (timm.data.create_loader, 're_prob'),
    '--workers': (timm.data.create_loader, 'num_workers'),
    '--mixup': (timm.data.Mixup, 'mixup_alpha'),
    '--cutmix': (timm.data.Mixup, 'cutmix_alpha'),
    '--smoothing': (timm.data.Mixup, 'label_smoothing'),
    '--opt': (timm.optim.create_optimizer_v2, 'opt'),
    '--lr': (timm.optim.create_optimizer_v2, 'lr'),
    '--weight-decay': (timm.optim.create_optimizer_v2, 'weight_decay'),
    '--layer-decay': (timm.optim.create_optimizer_v2, 'layer_decay'),
    '--sched': (timm.scheduler.create_scheduler_v2, 'sched'),
    '--min-lr': (timm.scheduler.create_scheduler_v2, 'min_lr'),
    '--epochs': (timm.scheduler.create_scheduler_v2, 'num_epochs'),
    '--warmup-epochs': (timm.scheduler.create_scheduler_v2, 'warmup_epochs'),
    '--clip-grad': (timm.utils.dispatch_clip_grad, 'value'),
    '--model-ema-decay': (timm.utils.ModelEmaV3, 'decay'),
    '--checkpoint-hist': (timm.utils.CheckpointSaver, 'max_history'),
    '--seed': (timm.utils.random_seed, 'seed'),
}

# Keys of MMPretrain that its config of ResNet-18 leaves to the defaults of these.
WITH_DEFAULTS = {
    'data_root': BaseDataset,
    'custom_hooks': Runner,
    'optim_wrapper.accumulative_counts': OptimWrapper,
    'optim_wrapper.clip_grad.max_norm': clip_grad_norm_,
    'model.backbone.frozen_stages': ResNet,
    'default_hooks.checkpoint.max_keep_ckpts': CheckpointHook,
}


def rows_of(page):
    """The rows of the first table of a page, as lists of their spans of code, column by column."""
    text = (ROOT / f'docs/how-to/from-{page}.md').read_text()
    table = re.search(r'^\|.*?\n\|---.*?\n((?:\|.*\n)+)', text, re.MULTILINE)
    lines = [line.strip('| ').split(' |') for line in table[1].splitlines()]
    return [[re.findall(r'`([^`]+)`', cell) for cell in line] for line in lines]


@pytest.fixture(scope='module')
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp('photos')
    for index in range(8):
        mmcv.imwrite(np.full((32, 32, 3), index, np.uint8), str(folder / f'{index % 2}/{index}.png'))
    return folder


@pytest.mark.parametrize('page', PAGES)
def test_every_setting_of_vt_is_accepted(page, photos):
    command = COMMANDS['train']
    parser = CommandParser(command.description, command.example)
    command.add_arguments(parser)
    spans = [span for row in rows_of(page) for span in row[1]]
    assert len(spans) > 20
    for span in spans:
        name = re.match(r'[\w.]+', span)
        if span.startswith('--'):
            assert span in parser._option_string_actions, span
        elif '=' not in span:
            assert span in ('timm:NAME', 'vt models', *SHORT_NAMES), span
        elif name[0] in ('data', 'weights', 'work_dir', 'log', 'device'):  # the page's value is an example of a place
            assert name[0] in SHORT_NAMES
        else:
            options = parse_options([f'data={photos}', 'weights=timm', *span.split()])
            prepare(str(short_models()['swin-tiny']), RunOptions(options))


def test_every_flag_and_key_of_mmpretrain_exists():
    tool = Path(mmpretrain.__path__[0], '.mim/tools/train.py').read_text()
    config = Path(mmpretrain.__path__[0], '.mim/configs/resnet/resnet18_8xb32_in1k.py')
    cfg = Config.fromfile(config)
    names = [name for row in rows_of('mmpretrain') for name in row[0]]
    assert len(names) > 20
    for name in names:
        if name.startswith('--'):
            assert f"'{name}'" in tool
        elif name in WITH_DEFAULTS:
            assert name.rpartition('.')[2] in inspect.signature(WITH_DEFAULTS[name]).parameters
        else:
            part = cfg
            for key in name.split('.'):
                part = part[key]
    text = (ROOT / 'docs/how-to/from-mmpretrain.md').read_text()
    scripts = re.findall(r'`(tools/[\w/.-]+\.(?:py|sh))', text)
    assert len(scripts) > 10
    for script in scripts:
        assert Path(mmpretrain.__path__[0], '.mim', script).is_file(), script


def test_what_reads_the_flags_of_timm_has_these_arguments():
    names = {name for row in rows_of('timm') for name in row[0]}
    assert names >= {*READ_BY}
    for name, (reads, argument) in READ_BY.items():
        assert argument in inspect.signature(reads).parameters, name
