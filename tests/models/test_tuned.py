"""The tuned recipe trains as another form of it, in which a model keeps each token-side matrix as W / step."""

import copy
import re

import pytest
import torch
from mmengine.config import Config
from mmengine.optim import build_optim_wrapper
from torch import Tensor, nn
from torch.nn.utils.parametrize import register_parametrization

from vt.engine.config.data import Data, apply_num_classes
from vt.engine.config.steps import read_config
from vt.engine.run.launch import build_model
from vt.files import ROOT
from vt.models import FilterTokenizer, VTResNet
from vt.models.visual_transformers.grouped_linear import GroupedLinear


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


def weights_of(model):
    parts = [(name, part) for name, part in model.named_modules() if isinstance(getattr(part, 'weight', None), Tensor)]
    return {name: part.weight.detach().clone() for name, part in parts if '.parametrizations.' not in name}


def train(model, images, custom_keys):
    """The weights after twelve iterations."""
    optimizer = dict(type='AdamW', lr=4e-3, weight_decay=0.05)
    cfg = dict(optimizer=optimizer, paramwise_cfg=dict(custom_keys=custom_keys, norm_decay_mult=0.0))
    optimizer = build_optim_wrapper(model, cfg).optimizer
    for _ in range(12):
        optimizer.zero_grad()
        sum((out - 1).square().mean() for out in model['backbone'](images)).backward()
        optimizer.step()
    return weights_of(model)


def test_iterations_of_both_forms_end_in_the_same_weights():
    """Up to rounding."""
    torch.manual_seed(0)
    keys = Config.fromfile(ROOT / 'configs/_base_/recipes/tuned_adamw.py').tuned.custom_keys.to_dict()
    part = VTResNet(18, stem_channels=8, base_channels=8, token_channels=16, num_tokens=4, out_type='featmap')
    part.init_weights()
    model, images = nn.ModuleDict(dict(backbone=part)).double(), torch.randn(4, 3, 32, 32, dtype=torch.float64)
    before, old = weights_of(model), copy.deepcopy(model)
    for each in token_side(old).values():
        register_parametrization(each, 'weight', Divided(0.03))
    ours, theirs = train(model, images, keys), train(old, images, {})
    assert ours.keys() == theirs.keys()
    for name, weight in ours.items():
        scale = (weight - before[name]).abs().max()
        assert scale > 0
        assert (weight - theirs[name]).abs().max() < 1e-9 * scale, name


TUNED = [*ROOT.glob('configs/*/*-tuned*.py'), *ROOT.glob('configs/vt_anywhere/*_digits.py')]


@pytest.mark.parametrize(
    'path',
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.slow] * bool(re.search(r'r(esnet)?(34|50|101)', path.stem)))
        for path in sorted(TUNED)
    ],
)
def test_the_recipe_meets_exactly_the_token_side_matrices(path):
    cfg = read_config(str(path))
    apply_num_classes(Data(cfg), 'ab')
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
