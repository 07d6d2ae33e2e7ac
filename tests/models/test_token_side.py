"""The token side compiled, the rest eager: the same results, gradients and records."""

import pytest
import torch
from torch import nn

from vt.models import VTFPN, VTResNet, record_attention
from vt.models.token_side import compile_token_side, token_side


def make(case: str) -> tuple[nn.Module, object]:
    if case == 'neck':
        return VTFPN([8, 16], 16, token_channels=32), [torch.randn(2, 8, 12, 8), torch.randn(2, 16, 6, 4)]
    model = VTResNet(18, num_tokens=4, token_channels=32)
    model.init_weights()
    return model, torch.randn(2, 3, 64, 96)


@pytest.mark.parametrize('case', ['neck', 'backbone'])
def test_each_relation_is_one_graph_and_nothing_else_is(case):
    torch.manual_seed(0)
    model, inputs = make(case)
    model.eval()

    def run():
        outs = model(inputs)
        return [*outs, *torch.autograd.grad(sum(out.square().sum() for out in outs), list(model.parameters()))]

    eager, names = run(), list(model.state_dict())
    graphs = []

    def keep(graph, _):
        graphs.append(graph)
        return graph.forward

    torch.compiler.reset()
    compile_token_side(model, backend=keep)
    for own, other in zip(run(), eager, strict=True):
        torch.testing.assert_close(own, other)
    relations = [part for part in token_side(model) if len(list(part.parameters())) > 1]
    assert len(relations) == (1 if case == 'neck' else 2)
    assert len(graphs) == 1  # the modules' relations share it
    assert list(model.state_dict()) == names


def test_a_compiled_relation_is_recorded():
    torch.manual_seed(0)
    model, inputs = make('neck')
    compile_token_side(model, backend='eager')
    with torch.no_grad(), record_attention(model) as records:
        model(inputs)
    relation = records['relation']
    assert relation.attention.shape == (2, 1, 16, 16)
    torch.testing.assert_close(relation.attention.sum(-1), torch.ones(2, 1, 16))
