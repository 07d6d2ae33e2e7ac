"""Parts of a user's own that give other shapes than their owner needs are refused when the model is built."""

import pytest
import torch
from torch import nn

import vt
from vt.errors import UserError
from vt.models import VTModule
from vt.models.survey.blocks.block import Block
from vt.registry import MODELS

WIDTHS = dict(in_channels=8, token_channels=12)


class Means(vt.Tokenizer):
    def pool(self, x, tokens):
        groups = x.flatten(2).transpose(1, 2).tensor_split(self.num_tokens, dim=1)  # N, HW / L, C
        return torch.stack([group.mean(dim=1) for group in groups], dim=1)


class FewerMeans(Means):
    def pool(self, x, tokens):
        return super().pool(x, tokens)[:, :2]


class NarrowerMeans(Means):
    def pool(self, x, tokens):
        return super().pool(x, tokens)[..., :3]


class Flattened(nn.Module):
    def __init__(self, **widths):
        super().__init__()

    def forward(self, x, *others):
        return x.flatten(1)


class Plain(vt.TokenPart):
    """Gives the tokens as they came."""

    def __init__(self, channels, num_heads=None, size=None):
        super().__init__()

    def forward(self, x, size):
        return x


class Mean(Plain):
    """Its result would be added to every token."""

    def forward(self, x, size):
        return x.mean(dim=1, keepdim=True)


class Undecided(Plain):
    """What it gives depends on the values, so it can't be asked without any."""

    def forward(self, x, size):
        return x if x.sum() > 0 else -x


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    for part in (Means, FewerMeans, NarrowerMeans, Flattened, Plain, Mean, Undecided):
        monkeypatch.setitem(MODELS.module_dict, part.__name__, part)


def build(**parts):
    usual = dict(
        tokenizer=dict(type='vt.FilterTokenizer'), relation=dict(type='vt.TokenTransformer'), projector=None
    ) | {name: dict(type=f'vt.{part}') for name, part in parts.items()}
    return VTModule(**WIDTHS, **usual)


@pytest.mark.parametrize(
    ('parts', 'words'),
    [
        (dict(tokenizer='FewerMeans'), r'FewerMeans.pool gives \(2, 2, 8\), not .*, here \(N, 16, 8\)'),
        (dict(tokenizer='NarrowerMeans'), r'NarrowerMeans.pool gives \(2, 16, 3\)'),
        (dict(tokenizer='Flattened'), r'Flattened gives .* its result must be \(N, num_tokens, token_channels\)'),
        (dict(relation='Flattened'), r'Flattened gives \(2, 192\) .* as the tokens came'),
        (dict(projector='Flattened'), r'Flattened gives .* must be as the map came'),
    ],
)
def test_parts_of_a_module(parts, words):
    with pytest.raises(UserError, match=words):
        build(**parts)


def test_a_module_of_own_parts_is_built_as_it_is():
    module = build(tokenizer='Means')
    assert module.tokenizer(torch.rand(1, 8, 5, 4)).shape == (1, 16, 12)
    assert (module.tokenizer.in_channels, module.tokenizer.token_channels) == (8, 12)
    assert {parameter.device.type for parameter in module.parameters()} == {'cpu'}


def block(**parts):
    usual = dict(attention='Attention', feed_forward='FeedForward') | parts
    configs = {name: dict(type=f'vt.{part}') for name, part in usual.items()}
    return Block(channels=8, size=(3, 4), num_heads=2, norm_cfg=dict(type='LN'), **configs)


@pytest.mark.parametrize('name', ['attention', 'feed_forward'])
def test_parts_of_a_block(name):
    with pytest.raises(UserError, match=r'Mean gives \(2, 1, 8\) for \(2, 12, 8\): its result must be as it came'):
        block(**{name: 'Mean'})
    for part in ('Plain', 'Undecided'):
        assert block(**{name: part})(torch.ones(2, 12, 8), (3, 4)).shape == (2, 12, 8)
