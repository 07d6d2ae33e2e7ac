"""The compiler's loops compute what the products do, forward and backward, and only where they were asked for."""

import pytest
import torch
from torch.testing import assert_close

from vt.ops import compiled, project_onto, tokenize, use_path
from vt.ops.compiled import compile_pixels


@pytest.fixture
def calls(monkeypatch):
    """The shapes of pixels that came to the loops; they are on in the test."""
    seen = []
    for name in ('logits', 'add_products'):
        original = getattr(compiled, name)

        def call(*args, name=name, original=original):
            seen.append((name, tuple(args[0].shape)))
            return original(*args)

        monkeypatch.setattr(compiled, name, call)
    compile_pixels()
    yield seen
    compile_pixels(False)


def values_and_gradients(path, x, queries, keys, values):
    inputs = [each.detach().requires_grad_() for each in (x, queries, keys, values)]
    with use_path(path):
        tokens = tokenize(inputs[0], inputs[1], scale=0.5)
        out = project_onto(inputs[0], inputs[2], inputs[3], scale=0.5)
    loss = (tokens.cos().sum() + out.square().sum()) / 10
    return [tokens, out, *torch.autograd.grad(loss, inputs)]


@pytest.mark.skipif(' ' in torch.__file__, reason="PyTorch's call of the compiler breaks at a space in its own path")
@pytest.mark.parametrize('size', [(2, 20, 6, 10), pytest.param((1, 20, 5, 7), marks=pytest.mark.slow)])
def test_values_and_gradients_are_the_plain_paths(size, calls):
    torch.manual_seed(0)
    x = torch.randn(size).contiguous(memory_format=torch.channels_last)
    queries, keys, values = (torch.randn(*shape, 3, 20) for shape in ((), (size[0], 1), (size[0], 1)))
    expected = values_and_gradients('plain', x, queries, keys, values)
    assert not calls
    assert_close(values_and_gradients('fused', x, queries, keys, values), expected, rtol=1e-4, atol=1e-5)
    names = [name for name, _ in calls]
    assert (names.count('logits'), names.count('add_products')) == (4, 2)  # forward and backward
    calls.clear()
    with torch.no_grad(), use_path('fused'):
        out = project_onto(x.clone(), keys, values, scale=0.5)
    assert_close(out, expected[1], rtol=1e-4, atol=1e-5)
    assert [name for name, _ in calls] == ['logits', 'add_products']
    calls.clear()


def test_other_layouts_and_precisions_are_left_to_the_libraries(calls):
    x, queries = torch.randn(1, 8, 4, 6), torch.randn(2, 8)
    in_order = x.contiguous(memory_format=torch.channels_last)
    tokenize(x, queries)
    tokenize(in_order.double(), queries.double())
    torch.export.export(Tokenize(), (in_order, queries))
    assert not calls


class Tokenize(torch.nn.Module):
    def forward(self, x, queries):
        return tokenize(x, queries)
