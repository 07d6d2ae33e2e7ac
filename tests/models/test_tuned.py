"""The tuned recipe trains as another form of it, in which a model keeps each token-side matrix as W / step."""

import copy

import pytest
import torch
from mmengine.config import Config
from mmengine.optim import build_optim_wrapper
from torch import Tensor, nn
from torch.nn.utils.parametrize import register_parametrization

from vt.engine.launch import build_model
from vt.engine.prepare import read_config
from vt.files import ROOT
from vt.models import VTFPN, FilterTokenizer, VTResNet
from vt.models.visual_transformers.grouped_linear import GroupedLinear

RECIPES = ROOT / 'configs/_base_/recipes'
TENTH = {f'neck.{part}': dict(lr_mult=0.1) for part in ('tokenizers', 'relation', 'projectors')}  # of the scenes
ADAMW = dict(type='AdamW', lr=4e-3, weight_decay=0.05)
SGD = dict(type='SGD', lr=0.02, momentum=0.9, weight_decay=1e-3)


class Divided(nn.Module):
    """The other form: W / step is what is trained."""

    def __init__(self, step):
        super().__init__()
        self.step = step

    def forward(self, kept):
        return kept * self.step

    def right_inverse(self, weight):
        return weight / self.step


def token_side(model):
    """What the other form keeps divided: modules by the name of their weight."""
    parts = (FilterTokenizer, GroupedLinear)
    return {f'{name}.weight': part for name, part in model.named_modules() if isinstance(part, parts)}


def make(kind):
    """A small model in float64, and what it is trained on."""
    torch.manual_seed(0)
    if kind == 'backbone':
        part = VTResNet(18, stem_channels=8, base_channels=8, token_channels=16, num_tokens=4, out_type='featmap')
        part.init_weights()
        return nn.ModuleDict(dict(backbone=part)).double(), torch.randn(4, 3, 32, 32, dtype=torch.float64)
    neck = VTFPN([8, 8], 16, num_tokens=2, token_channels=16)
    return nn.ModuleDict(dict(neck=neck)).double(), [torch.randn(2, 8, side, side).double() for side in (8, 4)]


def loss_of(model, inputs):
    (part,) = model.values()
    return sum((out - 1).square().mean() for out in part(inputs))


def train(model, inputs, optimizer, custom_keys, iterations=12):
    """The weights after some iterations."""
    cfg = dict(optimizer=dict(optimizer), paramwise_cfg=dict(custom_keys=custom_keys, norm_decay_mult=0.0))
    optimizer = build_optim_wrapper(model, cfg).optimizer
    for _ in range(iterations):
        optimizer.zero_grad()
        loss_of(model, inputs).backward()
        optimizer.step()
    return weights_of(model)


def weights_of(model):
    parts = [(name, part) for name, part in model.named_modules() if isinstance(getattr(part, 'weight', None), Tensor)]
    return {name: part.weight.detach().clone() for name, part in parts if '.parametrizations.' not in name}


def divide(model, step):
    for part in token_side(model).values():
        register_parametrization(part, 'weight', Divided(step))
    return model


CASES = {
    'tuned_adamw': ('backbone', ADAMW, 0.03, {}),
    'tuned_sgd': ('backbone', SGD, 0.3, {}),
    'tuned_scenes': ('neck', ADAMW, 0.3, TENTH),
}


@pytest.mark.parametrize('recipe', CASES)
def test_iterations_of_both_forms_end_in_the_same_weights(recipe):
    """Up to rounding."""
    kind, optimizer, step, schedule = CASES[recipe]
    keys = Config.fromfile(RECIPES / f'{recipe}.py').tuned.custom_keys.to_dict()
    model, inputs = make(kind)
    before, old = weights_of(model), divide(copy.deepcopy(model), step)
    ours, theirs = train(model, inputs, optimizer, keys), train(old, inputs, optimizer, schedule)
    assert ours.keys() == theirs.keys()
    for name, weight in ours.items():
        scale = (weight - before[name]).abs().max()
        assert scale > 0
        assert (weight - theirs[name]).abs().max() < 1e-9 * scale, name


TUNED = [*ROOT.glob('configs/*/*-tuned*.py'), *ROOT.glob('configs/vt_anywhere/*_digits.py')]


@pytest.mark.parametrize('path', sorted(TUNED), ids=lambda path: path.stem)
def test_the_recipe_meets_exactly_the_token_side_matrices(path):
    cfg = read_config(str(path))
    model = build_model(cfg)
    groups = build_optim_wrapper(model, cfg.optim_wrapper).optimizer.param_groups
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    rates = {names[id(group['params'][0])]: group.get('lr_mult') for group in groups}
    slow = {name for name, rate in rates.items() if rate == 0.1}  # a pretrained backbone, in configs for one's own data
    starts = cfg.model.backbone.get('init_cfg') if '_1xb' in path.stem else None
    assert slow == {name for name in rates if starts and name.startswith('backbone.')} - set(token_side(model))
    rates = {name: rate for name, rate in rates.items() if name not in slow}
    assert {name for name, rate in rates.items() if rate} == set(token_side(model))
    expected = 0.3 if '-tuned' not in path.stem else 0.09 if cfg.optim_wrapper.optimizer.type == 'SGD' else 0.03
    assert set(rates.values()) == {None, expected}
