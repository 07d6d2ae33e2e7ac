"""Both models compile without a graph break and export with open sizes."""

import pytest
import torch
from torch.export import Dim

from vt.models import VTFPN, VTResNet

OPEN = {0: Dim.DYNAMIC, 2: Dim.DYNAMIC, 3: Dim.DYNAMIC}


def make_neck():
    return VTFPN([8, 16], 16, token_channels=32), lambda n, h, w: [
        torch.randn(n, 8, h, w),
        torch.randn(n, 16, h // 2, w // 2),
    ]


def make_backbone():
    return VTResNet(18, num_tokens=4, token_channels=32), lambda n, h, w: torch.randn(n, 3, 8 * h, 8 * w)


MAKERS = [make_neck, make_backbone]
SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ('make', 'memory_format'),
    [
        (make_neck, torch.channels_last),
        pytest.param(make_neck, torch.contiguous_format, marks=SLOW),
        pytest.param(make_backbone, torch.channels_last, marks=SLOW),
        pytest.param(make_backbone, torch.contiguous_format, marks=SLOW),
    ],
)
def test_compiled_in_one_graph(make, memory_format):
    torch.manual_seed(0)
    model, make_inputs = make()
    model = model.to(memory_format=memory_format).eval()  # the backbone's BN would move between two passes
    inputs = make_inputs(2, 12, 8)
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, backend='aot_eager')

    def run(module):
        outs = module(inputs)
        return outs, torch.autograd.grad(sum(out.square().sum() for out in outs), list(model.parameters()))

    for own, other in zip(run(compiled), run(model)):
        for a, b in zip(own, other, strict=True):
            torch.testing.assert_close(a, b)
    with torch.no_grad():
        for a, b in zip(compiled(inputs), model(inputs), strict=True):
            torch.testing.assert_close(a, b)


@pytest.mark.parametrize('make', [make_neck, pytest.param(make_backbone, marks=SLOW)])
def test_compiled_in_one_graph_under_autocast(make):
    torch.manual_seed(0)
    model, make_inputs = make()
    inputs = make_inputs(2, 12, 8)
    torch._dynamo.reset()
    compiled = torch.compile(model.eval(), fullgraph=True, backend='aot_eager')
    weights = list(model.parameters())

    def run(module):
        with torch.autocast('cpu', torch.bfloat16):
            outs = module(inputs)
        gradients = torch.autograd.grad(sum(out.float().square().sum() for out in outs), weights)
        return [torch.cat([tensor.float().flatten() for tensor in tensors]) for tensors in (outs, gradients)]

    for own, other in zip(run(compiled), run(model), strict=True):
        assert (own - other).norm() <= 0.05 * other.norm()


@pytest.mark.parametrize('make', MAKERS)
def test_exported_with_open_sizes(make):
    torch.manual_seed(0)
    model, make_inputs = make()
    model.eval()
    inputs = make_inputs(2, 12, 8)
    sizes = [OPEN for _ in inputs] if isinstance(inputs, list) else OPEN
    with torch.no_grad():
        program = torch.export.export(model, (inputs,), dynamic_shapes=[sizes])
        others = make_inputs(3, 10, 14)
        for a, b in zip(program.module()(others), model(others), strict=True):
            torch.testing.assert_close(a, b)
