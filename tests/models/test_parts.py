"""Every part, of the paper, of its first version and beside them, against the published equations, with gradients."""

from functools import partial
from inspect import signature

import part_equations as equations
import pytest
import torch
from comparisons import SHAPES, assert_is_its_equation, assert_same, random_map_and_tokens, randomize
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mmengine.config import Config
from tool_runner import ROOT

import vt
from vt.engine.counting import count_complexity
from vt.models import FilterTokenizer, Projector, TokenEncoder, TokenTransformer, ValueTransformer
from vt.models.visual_transformers.clustering_tokenizer import cluster_pixels
from vt.models.visual_transformers.pooling_tokenizer import nearest_square
from vt.models.visual_transformers.vt_stage import HasVTStages
from vt.ops import use_path

GRIDS = [None, dict(size=4, downsamples=1), dict(size=8, downsamples=2), dict(size=3, downsamples=0)]
GRIDS = [grid and dict(type='vt.PositionEncoder', **grid) for grid in GRIDS]
# Of a part its equation, which takes the map, tokens or both, and the options that are drawn.
HEADS, LOGITS = ('num_heads', 'groups'), ('num_heads', 'groups', 'scale_logits')
STATIC = partial(FilterTokenizer, scale_logits=True, value_matrix=True)
PARTS = {
    'filter tokenizer': (FilterTokenizer, equations.filter_tokenizer, 'num_tokens', *LOGITS),
    'recurrent tokenizer': (vt.RecurrentTokenizer, equations.recurrent_tokenizer, 'num_tokens', *LOGITS),
    'transformer': (partial(TokenTransformer, qk_channels=8), equations.transformer, *LOGITS),
    'projector': (Projector, equations.projector, *LOGITS, 'value_matrix', 'query_groups'),
    'static tokenizer': (STATIC, equations.static_tokenizer, 'num_tokens', 'groups', 'position_encoder'),
    'dynamic tokenizer': (vt.DynamicTokenizer, equations.dynamic_tokenizer, 'num_tokens', *HEADS, 'position_encoder'),
    'value transformer': (ValueTransformer, equations.value_transformer, *HEADS),
    'pooling tokenizer': (vt.PoolingTokenizer, equations.pooling_tokenizer, 'num_tokens'),
    'clustering tokenizer': (vt.ClusteringTokenizer, equations.clustering_tokenizer, 'num_tokens'),
    'graph convolution': (vt.GraphConvolution, equations.graph_convolution, 'num_tokens'),
}


@pytest.mark.parametrize('name', PARTS)
@settings(max_examples=15)
@given(SHAPES, st.booleans(), st.booleans(), st.sampled_from([1, 2, 4]), st.sampled_from(GRIDS))
def test_a_part_is_its_equation(name, shape, scale_logits, value_matrix, query_groups, position_encoder):
    kind, equation, *names = PARTS[name]
    *size, num_heads, groups = shape
    if name == 'dynamic tokenizer':
        size[4] += size[4] % 2  # half of the tokens are made anew
        groups = max(num_heads, groups)
    drawn = dict(num_tokens=size[4], num_heads=num_heads, groups=groups, scale_logits=scale_logits)
    drawn |= dict(value_matrix=value_matrix, query_groups=query_groups, position_encoder=position_encoder)
    options = {key: drawn[key] for key in names}
    inputs = dict(zip(('x', 'tokens'), random_map_and_tokens(*size)))
    inputs = {key: each for key, each in inputs.items() if key in signature(equation).parameters}
    part = kind(size[1], size[5], **options) if 'x' in inputs else kind(size[5], **options)
    if name == 'clustering tokenizer':  # cells between the same two pixels are no different centres
        assume(all(side >= cells for side, cells in zip(size[2:4], part.grid)))
    assert_is_its_equation(randomize(part), equation, *inputs.values())


EARLY = Config.fromfile(ROOT / 'configs/_base_/models/vt-early.py')
VERSIONS = dict(published={}, early=EARLY.early_backbone | dict(projector=EARLY.early_neck.projector))


def make_modules(version='published', channels=16, token_channels=32, num_tokens=4):
    options = dict(num_tokens=num_tokens, token_channels=token_channels) | VERSIONS[version]
    return HasVTStages(**options).build_stage(channels, [0.0, 0.0], 'featmap')


TWO = dict(
    published=[equations.filter_tokenizer, equations.recurrent_tokenizer, equations.transformer],
    early=[equations.static_tokenizer, equations.dynamic_tokenizer, equations.value_transformer],
)


@pytest.mark.parametrize('version', VERSIONS)
@pytest.mark.parametrize('size', [(2, 16, 5, 3, 4, 32), (1, 32, 1, 1, 2, 64), (2, 16, 3, 4, 5, 32)])
def test_two_modules_are_the_equations_in_turn(version, size):
    x, _ = random_map_and_tokens(*size)
    ours, tokens = x, None
    theirs, expected = x, []
    *tokenizers, relate = TWO[version]
    for module, tokenize in zip(randomize(make_modules(version, size[1], size[5], size[4])), tokenizers, strict=True):
        ours, tokens = module(ours, tokens)
        expected = [relate(module.relation, tokenize(module.tokenizer, theirs, *expected))]
        theirs = equations.projector(module.projector, theirs, *expected)
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(tokens, *expected)


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
    parts = dict(tokenizer={}, relation={}, projector={})
    parts[part] = dict(norm_cfg=dict(type='LN'))
    makers = (HasVTStages(num_tokens=4, token_channels=12, **options) for options in ({}, parts))
    (module,), (with_norm,) = (maker.build_stage(8, [0.0], 'featmap') for maker in makers)
    missing, extra = with_norm.load_state_dict(module.state_dict(), strict=False)
    assert missing
    assert all('norm' in name for name in missing)
    assert not extra
    x = torch.randn(2, 8, 4, 4)
    assert not torch.allclose(with_norm(x)[0], module(x)[0])


def test_stochastic_depth_acts_in_training_only():
    torch.manual_seed(0)
    x, tokens = torch.randn(64, 8, 2, 2), torch.randn(64, 4, 16)
    projector = Projector(8, 16, drop_path=0.5)
    kept = projector.train()(x, tokens) != x
    assert set(kept.flatten(1).any(1).tolist()) == {True, False}  # whole samples are dropped
    plain = Projector(8, 16)
    plain.load_state_dict(projector.state_dict())
    assert torch.equal(projector.eval()(x, tokens), plain(x, tokens))
    for transformer in (TokenTransformer(16, drop_path=1 - 1e-6), ValueTransformer(16, 2, 2, drop_path=1 - 1e-6)):
        assert torch.equal(transformer.train()(tokens), tokens)
        assert not torch.allclose(transformer.eval()(tokens), tokens)


def test_a_centre_that_loses_its_pixels_stays():
    assert torch.allclose(cluster_pixels(torch.ones(1, 3, 2, 2), (2, 2), 3), torch.full((1, 4, 3), 3**-0.5))


@pytest.mark.parametrize(('cells', 'grid'), [(1, (1, 1)), (8, (2, 4)), (16, (4, 4)), (32, (4, 8)), (7, (1, 7))])
def test_grid_of_the_cells(cells, grid):
    assert nearest_square(cells) == grid


@pytest.mark.parametrize('memory_format', [torch.contiguous_format, torch.channels_last])
def test_a_gradient_penalty_through_whole_modules(memory_format):
    """The second module's filters come from the map too, through the first one's tokens."""
    torch.manual_seed(0)
    first, second = make_modules(channels=8, token_channels=12).double()
    x = torch.randn(2, 8, 5, 3, dtype=torch.float64).contiguous(memory_format=memory_format).requires_grad_()

    def penalty_gradients():
        refined, tokens = second(*first(x))
        (gradient,) = torch.autograd.grad(refined.square().sum() + tokens.sum(), x, create_graph=True)
        return torch.autograd.grad(gradient.square().sum(), [*first.parameters(), *second.parameters()])

    ours = penalty_gradients()
    with use_path('plain'):
        theirs = penalty_gradients()
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-10)
    assert all(gradient.any() for gradient in ours)


@pytest.mark.parametrize('options', [dict(drop_path=0.5), dict(num_heads=2)])
@pytest.mark.parametrize(('dtype', 'expected'), [(torch.float32, torch.bfloat16), (torch.float64, torch.float64)])
def test_a_projector_has_one_precision_under_autocast(options, dtype, expected):
    projector = Projector(8, 12, **options).to(dtype)
    x, tokens = torch.randn(2, 8, 5, 3, dtype=dtype), torch.randn(2, 4, 12, dtype=dtype)
    with torch.autocast('cpu', torch.bfloat16):
        assert projector.train()(x, tokens).dtype == projector.eval()(x, tokens).dtype == expected
    assert projector.train()(x, tokens).dtype == projector.eval()(x, tokens).dtype == dtype


@settings(max_examples=15)
@given(st.tuples(st.integers(1, 3), st.just(6), st.integers(1, 5), st.integers(1, 7)), st.integers(1, 5))
def test_the_encoder_of_a_class_token_is_its_equations(size, num_tokens):
    torch.manual_seed(num_tokens)
    neck = randomize(TokenEncoder(6, 16, num_tokens, depth=2, num_heads=4, feedforward_channels=24)).eval()
    x = torch.randn(size, dtype=torch.float64, requires_grad=True)
    assert_same(neck([x]), [equations.token_encoder(neck, x)], [x, *neck.parameters()])


def test_layers_of_the_encoder_are_drawn_each_by_itself():
    neck = TokenEncoder(64)
    neck.init_weights()
    first, second = (layer.attn.qkv.weight for layer in neck.layers[:2])
    assert not torch.equal(first, second)


def test_attention_of_the_encoder_is_counted():
    """Tokenizer, W_V, four matrices and two products of attention a layer, and the feed-forward network."""
    num_tokens, sequence, pixel_count = 8, 9, 20
    neck = TokenEncoder(64, num_tokens=num_tokens)
    layer = sequence * 128 * (4 * 128 + 2 * 256) + 2 * sequence**2 * 128
    expected = 2 * pixel_count * 64 * num_tokens + num_tokens * 64 * 128 + 6 * layer
    assert count_complexity(neck, [torch.randn(1, 64, 4, 5)]).flops == expected
