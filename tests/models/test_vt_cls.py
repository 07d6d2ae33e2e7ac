"""The small classifier with a class token: its equations, and that nothing in it has the size of a batch."""

from pathlib import Path

import part_equations as equations
import published_early_equations as published
import pytest
import torch
from comparisons import assert_same, randomize
from hypothesis import given, settings
from hypothesis import strategies as st
from mmengine.config import Config
from mmengine.registry import MODELS

from vt.engine.counting import count_complexity
from vt.models import TokenEncoder

CONFIGS = Path(__file__).parents[2] / 'configs/vt_cls'


def build(name='vt-cls_digits'):
    torch.manual_seed(0)
    model = MODELS.build(Config.fromfile(CONFIGS / f'{name}.py').model)
    model.init_weights()
    return model.eval()


def published_encoder(neck, x):
    tokens = equations.filter_tokenizer(neck.tokenizer, x)
    tokens = torch.cat([neck.class_token.expand(len(x), -1, -1), tokens], dim=1) + neck.position_embedding
    vectors = []
    for sample in tokens:
        for layer in neck.layers:
            sample = published.encoder_layer(sample, dict(layer.named_parameters()), heads=4)
        vectors.append(published.layer_norm(sample, dict(neck.norm.named_parameters()), 1e-5)[0])
    return torch.stack(vectors)


@settings(max_examples=15)
@given(st.tuples(st.integers(1, 3), st.just(6), st.integers(1, 5), st.integers(1, 7)), st.integers(1, 5))
def test_it_is_the_equations(size, num_tokens):
    torch.manual_seed(num_tokens)
    neck = randomize(TokenEncoder(6, 16, num_tokens, depth=2, num_heads=4, feedforward_channels=24)).eval()
    x = torch.randn(size, dtype=torch.float64, requires_grad=True)
    assert_same(neck([x]), [published_encoder(neck, x)], [x, *neck.parameters()])


def test_no_parameter_has_the_size_of_a_batch():
    model = build()
    shapes = {name: tuple(parameter.shape) for name, parameter in model.neck.named_parameters()}
    assert shapes['tokenizer.weight'] == (8, 64)
    assert shapes['tokenizer.value.weight'] == (1, 64, 128)
    assert shapes['class_token'] == (1, 1, 128)
    assert shapes['position_embedding'] == (1, 9, 128)
    for batch in (1, 2, 7):
        assert model(torch.randn(batch, 3, 32, 32)).shape == (batch, 10)
        assert shapes == {name: tuple(parameter.shape) for name, parameter in model.neck.named_parameters()}


def test_layers_start_different():
    first, second = (layer.attn.qkv.weight for layer in build().neck.layers[:2])
    assert not torch.equal(first, second)


@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
def test_half_precision_is_near_float64(dtype):
    neck = build().neck.double()
    x = torch.randn(2, 64, 5, 7, dtype=torch.float64)
    (exact,) = neck([x])
    (ours,) = neck.to(dtype)([x.to(dtype)])
    tolerance = 32 * torch.finfo(dtype).eps
    torch.testing.assert_close(ours.double(), exact, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize('num_tokens', [1, 8])
def test_attention_is_counted(num_tokens):
    """Tokenizer, W_V, four matrices and two products of attention a layer, and the feed-forward network."""
    neck = TokenEncoder(64, num_tokens=num_tokens)
    sequence, pixel_count = num_tokens + 1, 20
    layer = sequence * 128 * (4 * 128 + 2 * 256) + 2 * sequence**2 * 128
    expected = 2 * pixel_count * 64 * num_tokens + num_tokens * 64 * 128 + 6 * layer
    assert count_complexity(neck, [torch.randn(1, 64, 4, 5)]).flops == expected
