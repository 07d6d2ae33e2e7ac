"""The tuned recipe trains as its earlier form did, in which a model kept each token-side matrix as W / step."""

import copy
import json
from types import SimpleNamespace

import pytest
import torch
from mmengine.config import Config
from mmengine.optim import build_optim_wrapper
from torch import Tensor, nn
from torch.nn.utils.parametrize import register_parametrization

from vt.checkpoints.loading import load_checkpoint
from vt.checkpoints.old_names import DIVIDED
from vt.checkpoints.publishing import publish, read_metadata
from vt.engine.checks.config import check_config
from vt.engine.config_files import ROOT, read_config
from vt.engine.interruption.resumed_settings import settle
from vt.engine.launch import build_model
from vt.errors import UserError
from vt.models import VTFPN, FilterTokenizer, VTResNet
from vt.models.grouped_linear import GroupedLinear

CONFIG = str(ROOT / 'configs/vt_resnet/vt-resnet18-tuned-half_digits.py')
RECIPES = ROOT / 'configs/_base_/recipes'
TENTH = {f'neck.{part}': dict(lr_mult=0.1) for part in ('tokenizers', 'relation', 'projectors')}  # of the scenes
ADAMW = dict(type='AdamW', lr=4e-3, weight_decay=0.05)
SGD = dict(type='SGD', lr=0.02, momentum=0.9, weight_decay=1e-3)


class Divided(nn.Module):
    """The earlier form: W / step is what is trained."""

    def __init__(self, step):
        super().__init__()
        self.step = step

    def forward(self, kept):
        return kept * self.step

    def right_inverse(self, weight):
        return weight / self.step


def token_side(model):
    """What the earlier form kept divided: modules by the name of their weight."""
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


def train(model, inputs, optimizer, custom_keys, iterations=50):
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
def test_fifty_iterations_of_both_forms_end_in_the_same_weights(recipe):
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
    assert {name for name, rate in rates.items() if rate} == set(token_side(model))
    expected = 0.3 if '-tuned' not in path.stem else 0.09 if cfg.optim_wrapper.optimizer.type == 'SGD' else 0.03
    assert set(rates.values()) == {None, expected}


@pytest.mark.parametrize('part', ['backbone', 'backbone.relation', 'backbone.tokenizer'])
def test_the_setting_of_the_earlier_form_is_refused(part):
    cfg = read_config(CONFIG, {f'model.{part}.step': 0.03})
    with pytest.raises(UserError, match=rf"model.{part}: \w+ has no argument 'step'; for tokenizer.*lr_mult=step"):
        check_config(cfg)


def write_divided(path, state, step, settings=True):
    """A checkpoint of the earlier form."""
    matrices = [name for name in state if DIVIDED.search(name)]
    kept = {name: weight / step if name in matrices else weight for name, weight in state.items()}
    meta = dict(epoch=1, iter=4, cfg=f"model = dict(backbone=dict(type='vt.VTResNet', step={step}, depth=18))\n")
    meta['settings'] = json.dumps({'model.backbone.step': step} if settings else {})
    torch.save(dict(state_dict=kept, meta=meta, optimizer={}), path)
    return matrices


def test_a_checkpoint_of_the_earlier_form_loads(tmp_path):
    model, _ = make('backbone')
    state = model.state_dict()
    matrices = write_divided(tmp_path / 'old.pth', state, 0.03)
    assert set(matrices) == set(token_side(model))
    for path in (tmp_path / 'old.pth', publish(tmp_path / 'old.pth', tmp_path / 'new.safetensors')):
        loaded = load_checkpoint(path)
        for name, weight in loaded['state_dict'].items():
            torch.testing.assert_close(weight, state[name], rtol=1e-12, atol=0)
    cfg = Config.fromstring(read_metadata(path)['config'], '.py')
    assert cfg.model.backbone == dict(type='vt.VTResNet', depth=18)


def test_one_that_does_not_say_its_step_is_refused(tmp_path):
    write_divided(tmp_path / 'old.pth', make('backbone')[0].state_dict(), 0.03, settings=False)
    with pytest.raises(UserError, match=r'old.pth was written by an earlier version, .* does not contain this setting'):
        load_checkpoint(tmp_path / 'old.pth')


def test_a_run_of_the_earlier_form_is_not_resumed(tmp_path):
    write_divided(tmp_path / 'old.pth', make('backbone')[0].state_dict(), 0.03)
    runner = SimpleNamespace(cfg=read_config(CONFIG), param_schedulers=[], world_size=1)
    with pytest.raises(UserError, match='its optimizer state does not fit: use load_from, which loads its weights'):
        settle(runner, load_checkpoint(tmp_path / 'old.pth'), 4)
