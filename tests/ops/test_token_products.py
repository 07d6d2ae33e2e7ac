"""Products of tokens and matrices by oneDNN equal the BLAS's, and one of the two is chosen."""

import copy
from functools import partial

import pytest
import timm
import torch
from comparisons import assert_near
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck
from torch.testing import assert_close

from vt.errors import UserError
from vt.models import VTResNet
from vt.models.optimize import choose_products
from vt.models.visual_transformers.grouped_linear import GroupedLinear
from vt.ops import token_products, use_path
from vt.ops.token_products import choose_token_library, multiply, onednn_speedup


@pytest.fixture
def all_sizes(monkeypatch):
    """Products of any size go to oneDNN, the gradients' too."""
    monkeypatch.setattr(token_products, 'LEAST_MULTIPLY_ADDS', 0)
    monkeypatch.setattr(token_products, 'LEAST_ROWS', 0)


def calls_of_onednn(function):
    """How often oneDNN multiplies in a call."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        function()
    return sum(event.count for event in profile.key_averages() if event.key == 'aten::mkldnn_linear')


@settings(max_examples=20)
@given(*[st.integers(8, 300)] * 3)
def test_products_and_gradients_are_the_equations_to_rounding(all_sizes, rows, inputs, outputs):
    torch.manual_seed(0)
    x, weight = torch.randn(rows, inputs, requires_grad=True), torch.randn(outputs, inputs, requires_grad=True)
    y, grad = multiply(x, weight), torch.randn(rows, outputs)
    y.backward(grad)
    exact_x, exact_weight, exact_grad = x.detach().double(), weight.detach().double(), grad.double()
    exact = exact_x @ exact_weight.T, exact_grad @ exact_weight, exact_grad.T @ exact_x
    assert_near([each.double() for each in (y, x.grad, weight.grad)], exact, 1e-6)


def test_what_goes_to_onednn():
    """Large products in float32 of a matrix that need not be copied; with gradients those of many tokens."""
    tokens, weight = torch.randn(128, 512), torch.randn(512, 512)
    few, learned = (tensor.clone().requires_grad_() for tensor in (tokens[:64], weight))
    many = tokens.clone().requires_grad_()
    for calls, x, matrix in (
        (1, tokens, weight),
        (0, tokens[:16], weight),
        (0, tokens, weight.T),
        (0, tokens.double(), weight.double()),
        (1, few.detach(), weight),
        (0, few, learned),
        (3, many, learned),
    ):

        def run(x=x, matrix=matrix):
            result = multiply(x, matrix)
            return result.sum().backward() if result.requires_grad else result

        assert calls_of_onednn(run) == calls
    with use_path('plain'):
        assert calls_of_onednn(lambda: multiply(tokens, weight)) == 0
    with torch.autocast('cpu', torch.bfloat16):
        assert multiply(tokens, weight).dtype == torch.bfloat16
    assert gradcheck(multiply, (torch.randn(2, 3, dtype=torch.float64, requires_grad=True), torch.randn(4, 3).double()))


def test_a_matrix_laid_out_for_onednn_keeps_shape_value_and_state():
    plain, moved = GroupedLinear(6, 4), GroupedLinear(6, 4, pixel_side=True)
    for part in (plain, moved):
        state = {name: value.clone() for name, value in part.state_dict().items()}
        choose_products(part, 'onednn')
        assert_close(part.state_dict(), state, rtol=0, atol=0)
    assert plain.weight[0].T.is_contiguous()
    assert moved.weight[0].is_contiguous()
    x = torch.randn(3, 6)
    assert_close(plain(x), x @ plain.dense())
    assert_close(moved.transposed(plain(x)), plain(x) @ moved.dense().T)


@pytest.mark.parametrize('bias', [True, False])
def test_a_linear_layer_computes_learns_and_is_saved_as_before(bias, all_sizes):
    layer = torch.nn.Linear(8, 6, bias=bias)
    plain = copy.deepcopy(layer)
    choose_products(layer, 'onednn')
    assert isinstance(layer, torch.nn.Linear)
    assert (repr(layer), repr(layer.state_dict())) == (repr(plain), repr(plain.state_dict()))
    x = torch.randn(2, 5, 8).transpose(0, 1).requires_grad_()
    assert calls_of_onednn(lambda: layer(x)) == 1
    for each in (layer, plain):
        each.result = torch.autograd.grad(each(x).square().sum(), (x, *each.parameters()), create_graph=True)
        each.second = torch.autograd.grad(each.result[0].square().sum(), (x, each.weight))
    assert_close(layer.result, plain.result)
    assert_close(layer.second, plain.second)


def make_backbone():
    backbone = VTResNet(18, base_channels=16, num_tokens=4, token_channels=128)
    backbone.init_weights()
    return backbone.eval()


make_transformer = partial(timm.create_model, 'vit_tiny_patch16_224', img_size=32, depth=2, num_classes=3)


@pytest.mark.parametrize(('make', 'side', 'calls'), [(make_backbone, 64, None), (make_transformer, 32, 2 * 4 + 1)])
def test_a_model_computes_and_learns_the_same_with_either(make, side, calls, all_sizes):
    torch.manual_seed(0)
    model, images = make(), torch.randn(2, 3, side, side)
    twin = copy.deepcopy(model)
    choose_products(model, 'onednn')
    found = calls_of_onednn(lambda: model(images))
    assert found == calls if calls else found > 0
    for part in (model.train(), twin.train()):
        optimizer = torch.optim.AdamW(part.parameters(), 1e-3)
        out = part(images)
        (out[-1] if isinstance(out, tuple) else out).square().mean().backward()
        optimizer.step()
        assert all(parameter.grad.stride() == parameter.stride() for parameter in part.parameters())
    for (name, one), other in zip(model.named_parameters(), twin.parameters()):
        assert_close(one.grad, other.grad, rtol=0, atol=1e-4 * float(other.grad.abs().max()) + 1e-9, msg=name)


def test_a_compiler_sees_plain_products(all_sizes):
    layer = torch.nn.Linear(8, 6)
    choose_products(layer, 'onednn')
    exported = torch.export.export(layer, (torch.randn(4, 8),))
    assert 'mkldnn' not in str(exported.graph)
    assert 'linear' in str(exported.graph)


def test_onednn_is_chosen_where_it_is_well_ahead_or_named(monkeypatch):
    monkeypatch.delenv('VT_TOKEN_PRODUCTS', raising=False)
    for lead, chosen in ((2.1, 'onednn'), (1.2, 'blas'), (0.8, 'blas')):
        token_products._faster_library.cache_clear()
        monkeypatch.setattr(token_products, 'onednn_speedup', lambda lead=lead: lead)
        assert choose_token_library('auto') == chosen
    token_products._faster_library.cache_clear()
    assert choose_token_library('onednn') == 'onednn'
    monkeypatch.setenv('VT_TOKEN_PRODUCTS', 'onednn')
    assert [choose_token_library(name) for name in ('auto', 'blas')] == ['onednn', 'blas']
    assert 0 < onednn_speedup((8, 64, 64)) < float('inf')
    with pytest.raises(
        UserError, match=r"token_products \(or VT_TOKEN_PRODUCTS\) is 'typo', but must be auto, blas or onednn"
    ):
        choose_token_library('typo')
