"""Checkpoints of earlier versions load, whose tensors have other names."""

import pytest
import torch
from mmengine.runner.checkpoint import load_state_dict
from survey_backbones import build

from vt.checkpoints.weights import load_weights

# Of each model a tensor's name, now and before.
RENAMED = {
    'cpvt-small-gap': {'stages.0.peg.4.proj.weight': 'stages.0.conditional.4.proj.weight'},
    'cswin-tiny': {
        'stages.3.blocks.0.feed_forward.part.fc2.bias': 'stages.3.blocks.0.feed_forward.part.leave.bias',
    },
    'ceit-small': {
        'stages.0.blocks.1.feed_forward.part.fc1.weight': 'stages.0.blocks.1.feed_forward.part.enter.weight',
        'stages.0.blocks.1.feed_forward.part.fc2_norm.norm.weight': (
            'stages.0.blocks.1.feed_forward.part.leave_norm.norm.weight'
        ),
    },
}
PARTS = (('part.fc1', 'part.enter'), ('part.fc2', 'part.leave'), ('.peg.', '.conditional.'))


def before(name):
    for new, old in PARTS:
        name = name.replace(new, old)
    return name


@pytest.mark.parametrize('name', RENAMED)
@pytest.mark.parametrize('load', [load_weights, load_state_dict, torch.nn.Module.load_state_dict])
def test_a_checkpoint_of_an_earlier_version_loads(name, load):
    torch.manual_seed(0)
    saved, model = (torch.nn.ModuleDict(dict(backbone=build(name, 64))) for _ in range(2))
    state = {before(key): tensor for key, tensor in saved.state_dict().items()}
    assert {f'backbone.{old}' for old in RENAMED[name].values()} <= state.keys()
    assert {f'backbone.{new}' for new in RENAMED[name]} <= model.state_dict().keys()
    load(model, state)
    for key, tensor in model.state_dict().items():
        assert torch.equal(tensor, saved.state_dict()[key])


def test_it_initialises_a_backbone(tmp_path):
    torch.manual_seed(0)
    saved, model = build('ceit-small', 64), build('ceit-small', 64)
    torch.save({f'backbone.{before(key)}': tensor for key, tensor in saved.state_dict().items()}, tmp_path / 'old.pth')
    model.init_cfg = dict(type='Pretrained', checkpoint=str(tmp_path / 'old.pth'))
    model.init_weights()
    assert all(torch.equal(tensor, saved.state_dict()[key]) for key, tensor in model.state_dict().items())
