"""The recipes of the survey's authors: what a run makes of them, beside the numbers of the authors' code."""

import re
from pathlib import Path

import cv2
import mmseg
import numpy as np
import pytest
import torch
from mmcv.cnn.bricks import DropPath
from mmengine.config import Config
from mmengine.dataset import Compose
from mmengine.optim import build_optim_wrapper
from mmpretrain.registry import MODELS
from tool_runner import ROOT

from docs.reports.recipes import find_authors
from vt.apis import find_config
from vt.engine.run.schedules import find_misfits, rates_after
from vt.registry import PARAM_SCHEDULERS

EPOCH = 10  # iterations


def read(name):
    return Config.fromfile(ROOT / find_authors(name))


# Rate, batch, epochs, warm-up, clipping, decay of averaged weights, and repeats, as in the authors' code.
AUTHORS = {
    't2t-vit-t-14': (5e-4, 512, 310, 10, None, 0.99996, 1),
    'tnt-small': (1e-3, 1024, 310, 5, None, 0.99996, 3),
    'cswin-tiny': (2e-3, 2048, 310, 20, None, 0.99984, 1),
    'deepvit-small': (5e-4, 256, 310, 5, None, 0.99996, 1),
    'vitae-small': (1e-3, 512, 310, 10, None, 0.99996, 1),
    'ps-vit-b14': (5e-4, 512, 310, 3, None, 0.99996, 1),
    'lv-vit-small': (1.6e-3, 1024, 310, 5, None, 0.99992, 1),
    'swin-tiny': (1e-3, 1024, 300, 20, 5, None, 1),
    'swinv2-tiny': (1e-3, 1024, 300, 20, 5, None, 1),
    'msg-tiny': (1e-3, 1024, 300, 20, 5, None, 1),
    'shuffle-tiny': (1e-3, 1024, 300, 20, 5, None, 1),
    'hrformer-small': (1e-3, 1024, 300, 20, 5, None, 1),
    'elsa-swin-tiny': (1e-3, 1024, 310, 20, 5, None, 1),
    'p2t-small': (1e-3, 1024, 300, 20, None, None, 3),
    'rest-small': (2e-3, 2048, 300, 5, 5, None, 3),
    'twins-pcpvt-small': (1.25e-3, 1280, 300, 5, 5, None, 1),
    'twins-svt-small': (2e-3, 2048, 300, 5, 5, None, 1),
    'cait-s24': (1e-3, 1024, 400, 5, None, None, 3),
    'mvitv2-tiny': (4e-3, 4096, 300, 70, 1, None, 1),
    'pvt-small': (1e-3, 1024, 300, 5, None, None, 3),
    'ceit-small': (1e-3, 1024, 300, 5, None, None, 3),
    'localvit-small': (1e-3, 1024, 300, 5, None, None, 3),
}


@pytest.mark.parametrize('name', AUTHORS)
def test_a_run_has_the_authors_numbers(name):
    cfg = read(name)
    rate, batch, epochs, warm_up, clip, average, repeats = AUTHORS[name]
    processes = int(re.search(r'_(\d+)xb', find_authors(name))[1])
    assert processes * cfg.train_dataloader.batch_size == cfg.auto_scale_lr.base_batch_size == batch
    assert cfg.train_dataloader.sampler.get('num_repeats', 1) == repeats
    assert (cfg.optim_wrapper.get('clip_grad') or {}).get('max_norm') == clip
    hooks = [1 - hook.momentum for hook in cfg.get('custom_hooks', [])]
    assert hooks == ([pytest.approx(average, abs=1e-9)] if average else [])
    rates, misfits = follow_rates(cfg)
    assert len(rates) == epochs
    assert max(rates) == rates[warm_up - 1] == pytest.approx(rate)
    assert misfits == []
    cool = rates[300:] if epochs == 310 else rates[-1:]
    assert cool == pytest.approx([cfg.param_scheduler[1].eta_min] * len(cool), rel=0.02)


@pytest.mark.parametrize(('epochs', 'last'), [(31, 11), (30, 1)])
def test_ten_epochs_keep_the_last_rate_in_a_run_that_has_them(epochs, last):
    cfg = read('cswin-tiny')
    cfg.train_cfg.max_epochs = epochs
    rates, misfits = follow_rates(cfg)
    assert rates[-last:] == [rates[-1]] * last
    assert rates[-last - 1] > 1.5 * rates[-1]
    assert misfits == []


def follow_rates(cfg):
    """The rate at the end of each epoch, and what the run would warn of."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=cfg.optim_wrapper.optimizer.lr)
    schedulers = []
    for config in cfg.param_scheduler:
        config = {'end': cfg.train_cfg.max_epochs} | config.to_dict()
        part = PARAM_SCHEDULERS.get(config.pop('type'))
        assert config.pop('convert_to_iter_based', False)
        schedulers.append(part.build_iter_from_epoch(optimizer=optimizer, epoch_length=EPOCH, **config))
    total = EPOCH * cfg.train_cfg.max_epochs
    ways = [(start, start + EPOCH, EPOCH) for start in range(0, total, EPOCH)]
    runner = type('Runner', (), dict(max_iters=total, train_dataloader=range(EPOCH), train_loop=None))
    return rates_after(schedulers, optimizer.param_groups, *ways), list(find_misfits(schedulers, runner))


# Parts of the names of parameters of more than one dimension that don't decay, beside none.
UNDECAYED = {
    'twins-svt-small': {'peg'},
    'msg-tiny': {'table', 'to_messenger', 'from_messenger'},
    'hrformer-small': set(),
    'elsa-swin-tiny': set(),
    'swin-tiny': {'table'},
    'swinv2-tiny': {'log_scale', 'mlp'},
    'ps-vit-b14': {'class_tokens', 'shifts'},
    'tnt-small': {'cls_token', 'patch_pos', 'pixel_pos'},
    'pvt-small': {'class_tokens'},
    'mvitv2-tiny': set(),
}


@pytest.mark.parametrize('name', UNDECAYED)
def test_what_decays_is_what_decays_in_the_authors_code(name):
    cfg = read(name)
    with torch.device('cpu' if name == 'tnt-small' else 'meta'):
        backbone = MODELS.build(cfg.model.backbone)
    wrapper = build_optim_wrapper(torch.nn.ModuleDict(dict(backbone=backbone)), cfg.optim_wrapper)
    decays = {id(p) for group in wrapper.optimizer.param_groups if group['weight_decay'] for p in group['params']}
    names = {name for name, p in backbone.named_parameters() if id(p) not in decays and p.dim() > 1}
    assert {part for part in UNDECAYED[name] if any(part in own.split('.') for own in names)} == UNDECAYED[name]
    assert all(set(own.split('.')) & UNDECAYED[name] for own in names)
    assert not any(id(p) in decays for p in backbone.parameters() if p.dim() == 1)


def test_ps_vit_drops_in_all_fourteen_blocks():
    backbone = MODELS.build(read('ps-vit-b14').model.backbone)
    rates = [part.drop_prob for part in backbone.modules() if isinstance(part, DropPath)]
    assert rates[::2] == rates[1::2] == pytest.approx(torch.linspace(0, 0.1, 14).tolist())
    dropped = [part.p for part in backbone.modules() if isinstance(part, torch.nn.Dropout)]
    assert dropped == 14 * [0.1, 0.1]  # behind the projection of the attention, in the feed-forward


def test_the_feed_forward_drops_behind_its_activation_and_its_second_matrix():
    torch.manual_seed(0)
    part = MODELS.build(dict(type='vt.FeedForward', channels=8, dropout=0.5)).double()
    x = torch.randn(2, 5, 8, dtype=torch.double)
    torch.manual_seed(1)
    y = part.train()(x, (1, 5))
    torch.manual_seed(1)
    hidden = torch.nn.functional.gelu(x @ part.fc1.weight.T + part.fc1.bias)
    kept = torch.empty_like(hidden).bernoulli_(0.5)
    out = (2 * kept * hidden) @ part.fc2.weight.T + part.fc2.bias
    torch.testing.assert_close(y, 2 * torch.empty_like(out).bernoulli_(0.5) * out)
    torch.testing.assert_close(part.eval()(x, (1, 5)), hidden @ part.fc2.weight.T + part.fc2.bias)


@pytest.mark.parametrize(('name', 'steps'), [('cswin-tiny', 6), ('ps-vit-b14', 5)])
def test_either_interpolation_is_drawn(name, steps, tmp_path):
    cfg = read(name)
    assert len(cfg.train_pipeline) == steps
    cv2.imwrite(str(tmp_path / 'a.png'), np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8))
    pipeline = Compose(cfg.train_pipeline)
    choices = (pipeline.transforms[step].transforms for step in (1, 3))
    crops, augmentations = ([choice.transforms[0] for choice in each] for each in choices)
    assert [crop.interpolation for crop in crops] == ['bilinear', 'bicubic']
    assert len(augmentations) == 2
    results = [pipeline(dict(img_path=str(tmp_path / 'a.png'), gt_label=0))['inputs'] for _ in range(4)]
    assert {tuple(result.shape) for result in results} == {(3, 224, 224)}
    assert not torch.equal(results[0], results[1])


def test_vt_fpn_has_mmsegmentations_recipe_of_fpn():
    path = 'configs/sem_fpn/fpn_r50_4xb4-160k_ade20k-512x512.py'
    theirs = Config.fromfile(Path(mmseg.__file__).parent / '.mim' / path).to_dict()
    ours = Config.fromfile(find_config('vt-fpn_r50_4xb4-160k-mmseg_ade20k-512x512')).to_dict()
    for loader in ('train_dataloader', 'val_dataloader', 'test_dataloader'):
        assert all(ours[loader][key] == theirs[loader][key] for key in ('dataset', 'batch_size', 'sampler'))
    assert ours['optim_wrapper'] | dict(type='OptimWrapper', clip_grad=None) == theirs['optim_wrapper']
    (schedule,) = theirs['param_scheduler']
    assert ours['param_scheduler'] | dict(begin=0, end=ours['train_cfg']['max_iters']) == schedule
    model, other = ours['model'], theirs['model']
    assert model['backbone'].pop('init_cfg')['checkpoint'] == other['pretrained']
    assert model['decode_head'].pop('loss_decode') == dict(type='CrossEntropyLoss', avg_non_ignore=False)
    assert other['decode_head'].pop('loss_decode') == dict(type='CrossEntropyLoss', use_sigmoid=False, loss_weight=1.0)
    assert all(model[part] == other[part] for part in ('backbone', 'decode_head', 'data_preprocessor'))


@pytest.mark.parametrize('depth', [18, 101])
def test_vt_resnets_have_torchvisions_recipe(depth):
    """pytorch/vision 017e9b9, references/classification/train.py; the paper's own differs in its decay and resizing."""
    names = (f'vt-resnet{depth}_8xb32-90e{name}_in1k' for name in ('-torchvision', ''))
    cfg, papers = (Config.fromfile(find_config(name)) for name in names)
    assert cfg.optim_wrapper.optimizer == dict(type='SGD', lr=0.1, momentum=0.9, weight_decay=1e-4)
    assert papers.optim_wrapper.optimizer.weight_decay == 4e-5
    assert (cfg.train_dataloader.batch_size, cfg.train_cfg.max_epochs) == (32, 90)
    assert (cfg.param_scheduler.milestones, cfg.param_scheduler.gamma) == ([30, 60], 0.1)
    assert (cfg.test_pipeline[1].scale, cfg.test_pipeline[2].crop_size) == (256, 224)
    assert {cfg.train_pipeline[1].backend, cfg.test_pipeline[1].backend} == {'pillow'}
