"""Every part against the published equations, in float64, forward and gradients, over random shapes and options."""

import published_equations as published
import pytest
import torch
from comparisons import SHAPES, assert_is_its_equation, random_map_and_tokens, randomize
from hypothesis import given, settings
from hypothesis import strategies as st
from mmengine.config import Config
from tool_runner import ROOT

from vt.models import FilterTokenizer, Projector, RecurrentTokenizer, TokenTransformer, VTModule
from vt.models.visual_transformers.vt_stage import HasVTStages


def matrix(linear):
    """W of a grouped linear map, or None where there is none."""
    return None if isinstance(linear, torch.nn.Identity) else linear.dense()


def published_tokenizer(part, x, tokens=None):
    scale = (x.shape[1] // part.num_heads) ** -0.5 if part.scale != 1 else 1.0
    samples = []
    for index, sample in enumerate(x):
        pixels, w_v = published.pixels(sample), matrix(part.value)
        if isinstance(part, FilterTokenizer):
            samples.append(published.filter_tokenizer(pixels, part.weight.T, w_v, part.num_heads, scale))
        else:
            w_tr = part.to_filters.dense()
            samples.append(published.recurrent_tokenizer(pixels, tokens[index], w_tr, w_v, part.num_heads, scale))
    return torch.stack(samples)


def published_transformer(part, tokens):
    linears = (part.key, part.query, part.feed_forward1, part.feed_forward2)
    matrices = [linear.dense() for linear in linears]
    scale = (matrices[0].shape[1] // part.num_heads) ** -0.5 if part.scale != 1 else 1.0
    return torch.stack([published.transformer(t, *matrices, part.num_heads, scale) for t in tokens])


def published_projector(part, x, tokens):
    w_q, w_k, w_v = part.query.dense(), part.key.dense(), matrix(part.value)
    scale = (w_q.shape[1] // part.num_heads) ** -0.5 if part.scale != 1 else 1.0
    maps = []
    for sample, t in zip(x, tokens):
        refined = published.projector(published.pixels(sample), t, w_q, w_k, w_v, part.num_heads, scale)
        maps.append(refined.T.reshape(sample.shape))
    return torch.stack(maps)


PARTS = {  # of a part its equation, and whether it reads the map, and tokens
    FilterTokenizer: (published_tokenizer, True, False),
    RecurrentTokenizer: (published_tokenizer, True, True),
    Projector: (published_projector, True, True),
    TokenTransformer: (published_transformer, False, True),
}


@pytest.mark.parametrize('kind', PARTS)
@settings(max_examples=25)
@given(SHAPES, st.booleans())
def test_a_part_is_its_equation(kind, shape, scale_logits):
    *size, heads, groups = shape
    _, c, _, _, num_tokens, c_t = size
    equation, *reads = PARTS[kind]
    options = dict(num_heads=heads, groups=groups, scale_logits=scale_logits)
    if kind is TokenTransformer:
        part = kind(c_t, qk_channels=8, **options)
    else:
        part = kind(c, c_t, **options, **({} if kind is Projector else dict(num_tokens=num_tokens)))
    inputs = [each for each, is_read in zip(random_map_and_tokens(*size), reads) if is_read]
    assert_is_its_equation(randomize(part), equation, *inputs)


VERSIONS = dict(published={}, early=Config.fromfile(ROOT / 'configs/_base_/models/vt-early.py').early_backbone)


def make_modules(version='published', channels=16, token_channels=32, num_tokens=4):
    options = dict(num_tokens=num_tokens, token_channels=token_channels) | VERSIONS[version]
    return HasVTStages(**options).build_stage(channels, [0.0, 0.0], 'featmap')


@pytest.mark.parametrize('size', [(2, 8, 5, 3, 4, 12), (1, 8, 1, 1, 1, 8), (2, 12, 3, 4, 5, 12)])
def test_two_modules_are_the_equations_in_turn(size):
    x, _ = random_map_and_tokens(*size)
    ours, tokens = x, None
    theirs, expected = x, None
    for module in randomize(make_modules(channels=size[1], token_channels=size[5], num_tokens=size[4])):
        ours, tokens = module(ours, tokens)
        expected = published_transformer(module.relation, published_tokenizer(module.tokenizer, theirs, expected))
        theirs = published_projector(module.projector, theirs, expected)
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(tokens, expected)


@pytest.mark.parametrize('version', VERSIONS)
@pytest.mark.parametrize('memory_format', [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
def test_half_precision_is_near_float64(version, dtype, memory_format):
    torch.manual_seed(0)
    x = torch.randn(2, 64, 6, 7)
    modules = make_modules(version, 64, 128, 8)
    first, second = modules.double()
    exact_map, exact_tokens = second(*first(x.double()))
    first, second = modules.to(dtype)
    refined, tokens = second(*first(x.to(dtype, memory_format=memory_format)))
    tolerance = 32 * torch.finfo(dtype).eps
    torch.testing.assert_close(refined.double(), exact_map, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(tokens.double(), exact_tokens, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize('part', ['tokenizer', 'relation', 'projector'])
def test_normalisation_is_an_option_of_every_part(part):
    module = HasVTStages(num_tokens=4, token_channels=12).build_stage(8, [0.0], 'featmap')[0]
    cfg = dict(tokenizer='vt.FilterTokenizer', relation='vt.TokenTransformer', projector='vt.Projector')
    normalized = {name: dict(type=kind) for name, kind in cfg.items()}
    normalized['tokenizer']['num_tokens'] = 4
    normalized[part]['norm_cfg'] = dict(type='LN')
    with_norm = VTModule(8, 12, **normalized)
    missing, extra = with_norm.load_state_dict(module.state_dict(), strict=False)
    assert missing
    assert all('norm' in name for name in missing)
    assert not extra
    x = torch.randn(2, 8, 4, 4)
    assert not torch.allclose(with_norm(x)[0], module(x)[0])


def test_stochastic_depth_acts_in_training_only():
    torch.manual_seed(0)
    x, tokens = torch.randn(64, 8, 2, 2), torch.randn(64, 4, 12)
    projector = Projector(8, 12, drop_path=0.5)
    kept = projector.train()(x, tokens) != x
    assert set(kept.flatten(1).any(1).tolist()) == {True, False}  # whole samples are dropped
    plain = Projector(8, 12)
    plain.load_state_dict(projector.state_dict())
    assert torch.equal(projector.eval()(x, tokens), plain(x, tokens))
    transformer = TokenTransformer(12, drop_path=1 - 1e-6)
    assert torch.equal(transformer.train()(tokens), tokens)
