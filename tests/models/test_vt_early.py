"""The parts of the paper's first version against its published equations, in float64, and the networks made of them."""

from pathlib import Path

import published_early_equations as published
import pytest
import torch
from comparisons import SHAPES, assert_is_its_equation, random_map_and_tokens, randomize
from hypothesis import given, settings
from hypothesis import strategies as st
from mmengine.config import Config
from mmengine.registry import MODELS
from published_equations import pixels

import vt
from vt.engine.counting import count_complexity
from vt.models import DynamicTokenizer, FilterTokenizer, PositionEncoder, Projector, ValueTransformer, VTModule

CONFIGS = Path(__file__).parents[2] / 'configs/vt_early'
SIZE = (2, 8, 5, 3, 4, 12)  # N, C, H, W, L, C_T
GRIDS = [None, dict(size=4, downsamples=1), dict(size=8, downsamples=2), dict(size=3, downsamples=0)]


def encoder_config(grid):
    return grid and dict(type='vt.PositionEncoder', **grid)


def make_static(size, grid, heads=4, groups=4):
    options = dict(num_tokens=size[4], groups=groups, scale_logits=True, value_matrix=True)
    return FilterTokenizer(size[1], size[5], position_encoder=encoder_config(grid), **options)


def make_dynamic(size, grid, heads=4, groups=4):
    options = dict(num_tokens=size[4], num_heads=heads, groups=max(heads, groups))
    return DynamicTokenizer(size[1], size[5], position_encoder=encoder_config(grid), **options)


def with_positions(part, tokens, maps, shape):
    """``[T, P] W``."""
    encoder = part.position_encoder
    if encoder is None:
        return tokens
    join, w_p = encoder.join_heads.flatten(), encoder.mix.dense()
    p = published.positions(maps, shape, encoder.size, list(encoder.downsample), join, w_p)
    return torch.cat([tokens, p], dim=-1) @ encoder.merge.dense()


def published_static(part, x):
    samples = []
    for sample in x:
        tokens, maps = published.static_tokenizer(pixels(sample), part.weight.T, part.value.dense())
        samples.append(with_positions(part, tokens, maps, sample.shape[1:]))
    return torch.stack(samples)


def published_dynamic(part, x, tokens):
    half = tokens.shape[1] // 2
    matrices = [linear.dense() for linear in (part.query, part.key, part.value)]
    samples = []
    for sample, t in zip(x, tokens):
        new, maps = published.dynamic_tokens(pixels(sample), t[:half], *matrices, part.num_heads)
        samples.append(torch.cat([t[half:], with_positions(part, new, maps, sample.shape[1:])]))
    return torch.stack(samples)


def published_transformer(part, tokens):
    matrices = [linear.dense() for linear in (part.query, part.key, part.value, part.feed_forward)]
    return torch.stack([published.transformer(t, *matrices, part.num_heads) for t in tokens])


def published_projector(part, x, tokens):
    matrices = [linear.dense() for linear in (part.query, part.key, part.value)]
    maps = [published.projector(pixels(sample), t, *matrices, part.num_heads) for sample, t in zip(x, tokens)]
    return torch.stack([refined.T.reshape(sample.shape) for refined, sample in zip(maps, x)])


@settings(max_examples=25)
@given(SHAPES, st.sampled_from(GRIDS))
def test_parts_are_their_equations(shape, grid):
    *size, heads, groups = shape
    size[4] += size[4] % 2  # half of the tokens are made anew
    x, tokens = random_map_and_tokens(*size)
    projector = dict(num_heads=heads, scale_logits=True, value_matrix=True, query_groups=groups)
    for part, equation, *inputs in (
        (make_static(size, grid, heads, groups), published_static, x),
        (make_dynamic(size, grid, heads, groups), published_dynamic, x, tokens),
        (ValueTransformer(size[5], num_heads=heads, groups=groups), published_transformer, tokens),
        (Projector(size[1], size[5], **projector), published_projector, x, tokens),
    ):
        assert_is_its_equation(randomize(part), equation, *inputs)


def test_heads_cost_the_pixels_no_more_than_one():
    """Each pixel meets each token twice, whatever the number of heads, where a head reads its own channels."""
    x, tokens = torch.randn(1, 16, 5, 7), torch.randn(1, 4, 12)
    on_tokens = 4 * (12 * 16 + 16 * 16 / 4 + 12 * 16)
    projector = Projector(16, 12, num_heads=4, query_groups=4)
    assert count_complexity(projector, x, tokens).flops == on_tokens + 2 * 35 * 16 * 4


def make_modules(channels=8, token_channels=12, num_tokens=5, heads=2):
    grid = dict(type='vt.PositionEncoder', size=4)
    static = dict(type='vt.FilterTokenizer', scale_logits=True, value_matrix=True, position_encoder=grid)
    dynamic = dict(type='vt.DynamicTokenizer', num_heads=heads, groups=heads, position_encoder=grid)
    relation = dict(type='vt.ValueTransformer', num_heads=heads, groups=heads)
    projector = dict(type='vt.Projector', num_heads=heads, scale_logits=True, value_matrix=True, query_groups=heads)
    tokenizers = [tokenizer | dict(num_tokens=num_tokens) for tokenizer in (static, dynamic)]
    return [VTModule(channels, token_channels, tokenizer, relation, projector) for tokenizer in tokenizers]


@pytest.mark.parametrize('size', [(3, 16, 2, 9, 7, 8), (1, 8, 6, 6, 3, 16)])
def test_two_modules_are_the_equations_in_turn(size):
    x, _ = random_map_and_tokens(*size)
    first, second = (randomize(module) for module in make_modules(size[1], size[5], size[4]))
    refined, tokens = second(*first(x))
    expected = published_transformer(first.relation, published_static(first.tokenizer, x))
    x = published_projector(first.projector, x, expected)
    expected = published_transformer(second.relation, published_dynamic(second.tokenizer, x, expected))
    torch.testing.assert_close(tokens, expected)
    torch.testing.assert_close(refined, published_projector(second.projector, x, expected))


def test_every_token_is_renewed_by_two_dynamic_tokenizers_in_a_row():
    x, tokens = random_map_and_tokens(*SIZE)
    part = randomize(make_dynamic(SIZE, None))
    once = part(x, tokens)
    assert torch.equal(once[:, :2], tokens[:, 2:])
    assert not torch.isin(part(x, once), tokens).any()


def test_an_encoding_keeps_its_scale_when_the_image_grows():
    torch.manual_seed(0)
    encoder = PositionEncoder(12, size=14)
    uniform = [torch.full((1, 1, 1, side, side), side**-2.0) for side in (7, 14, 28, 56)]
    encodings = [encoder.encode(maps) for maps in uniform]
    for encoding in encodings:
        torch.testing.assert_close(encoding, encodings[0])
    assert 0.03 < encodings[0].square().mean().sqrt() < 0.3


def test_static_maps_are_computed_once_and_recorded():
    x, _ = random_map_and_tokens(*SIZE)
    first, second = (module.double() for module in make_modules(num_tokens=4))
    with vt.record_attention(torch.nn.ModuleList([first, second])) as records:
        second(*first(x))
    assert records['0.tokenizer'].attention.shape == (2, 1, 4, 5, 3)
    assert records['1.tokenizer'].attention.shape == (2, 2, 2, 5, 3)  # of the two new tokens
    assert records['1.relation'].attention.shape == (2, 2, 4, 4)
    for name, axes in {'0.tokenizer': (-2, -1), '1.tokenizer': (-2, -1), '1.relation': -1, '1.projector': 2}.items():
        total = records[name].attention.sum(axes)
        torch.testing.assert_close(total, torch.ones_like(total))
    calls = []
    first.tokenizer.filters = lambda *inputs: calls.append(1) or FilterTokenizer.filters(first.tokenizer, *inputs)
    first(x)
    assert len(calls) == 1


def test_stochastic_depth_acts_in_training_only():
    torch.manual_seed(0)
    tokens = torch.randn(64, 4, 16)
    transformer = ValueTransformer(16, num_heads=2, groups=2, drop_path=1 - 1e-6)
    assert torch.equal(transformer.train()(tokens), tokens)
    assert not torch.allclose(transformer.eval()(tokens), tokens)


@pytest.mark.parametrize('depth', [18, 34, 50, 101])
def test_the_classifiers_are_the_first_versions_by_config_alone(depth):
    torch.manual_seed(0)
    cfg = Config.fromfile(CONFIGS / f'vt-early-resnet{depth}_8xb32-90e_in1k.py')
    backbone = MODELS.build(cfg.model.backbone)
    backbone.init_weights()
    tokenizers = [type(module.tokenizer).__name__ for module in backbone.layer4]
    assert tokenizers == ['FilterTokenizer'] + ['DynamicTokenizer'] * (len(tokenizers) - 1)
    assert not any(list(module.projector.parameters()) for module in backbone.layer4)
    assert {module.relation.num_heads for module in backbone.layer4} == {16}
    (tokens,) = backbone(torch.randn(2, 3, 64, 64))
    assert tokens.shape == (2, 16, 1024)
    assert 0.05 < tokens.square().mean().sqrt() < 1  # a deep stack neither grows nor shrinks


def test_the_segmentor_is_the_first_versions_by_config_alone():
    cfg = Config.fromfile(CONFIGS / 'vt-early-fpn_r50_4xb8-90k_coco-stuff164k-800x1216.py')
    neck = MODELS.build(cfg.model.neck)
    assert {type(tokenizer.position_encoder) for tokenizer in neck.tokenizers} == {PositionEncoder}
    assert isinstance(neck.relation, ValueTransformer)
    assert [(p.num_heads, p.query.groups, p.key.groups) for p in neck.projectors] == [(16, 16, 1)] * 4
    sides = (16, 8, 4, 2)
    maps = [torch.randn(1, channels, side, 2 * side) for channels, side in zip(cfg.model.neck.in_channels, sides)]
    assert [tuple(x.shape) for x in neck(maps)] == [(1, 256, side, 2 * side) for side in sides]
