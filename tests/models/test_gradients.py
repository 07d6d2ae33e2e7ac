"""Gradients through whole modules: of gradients, of a loss on one level under DDP; and precision under autocast."""

import pytest
import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from vt.models import VTFPN, Projector, VTModule
from vt.ops import use_path


@pytest.fixture
def process_group():
    distributed.init_process_group('gloo', store=distributed.HashStore(), rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


@pytest.mark.parametrize('option', ['find_unused_parameters', 'static_graph'])
def test_a_loss_on_one_level_under_ddp(process_group, option):
    torch.manual_seed(0)
    neck = VTFPN([8, 16], 16, token_channels=32)
    levels = [torch.randn(2, 8, 12, 8), torch.randn(2, 16, 6, 4)]
    neck(levels)[1].square().sum().backward()
    expected = {name: p.grad.clone() for name, p in neck.named_parameters() if p.grad is not None}
    parallel = DistributedDataParallel(neck, **{option: True})
    for _ in range(2):
        neck.zero_grad()
        parallel(levels)[1].square().sum().backward()
    for name, parameter in neck.named_parameters():
        if name in expected:
            torch.testing.assert_close(parameter.grad, expected[name])
        else:
            assert parameter.grad is None or not parameter.grad.any(), name


def modules():
    torch.manual_seed(0)
    parts = dict(relation=dict(type='vt.TokenTransformer'), projector=dict(type='vt.Projector'))
    kinds = ('vt.FilterTokenizer', 'vt.RecurrentTokenizer')
    return torch.nn.ModuleList(
        VTModule(8, 12, tokenizer=dict(type=kind, num_tokens=4), **parts) for kind in kinds
    ).double()


@pytest.mark.parametrize('memory_format', [torch.contiguous_format, torch.channels_last])
def test_a_gradient_penalty_through_whole_modules(memory_format):
    """The second module's filters come from the map too, through the first one's tokens."""
    first, second = modules()
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


@pytest.mark.parametrize('options', [dict(), dict(drop_path=0.5), dict(num_heads=2)])
@pytest.mark.parametrize(('dtype', 'expected'), [(torch.float32, torch.bfloat16), (torch.float64, torch.float64)])
def test_a_projector_has_one_precision_under_autocast(options, dtype, expected):
    projector = Projector(8, 12, **options).to(dtype)
    x, tokens = torch.randn(2, 8, 5, 3, dtype=dtype), torch.randn(2, 4, 12, dtype=dtype)
    with torch.autocast('cpu', torch.bfloat16):
        assert projector.train()(x, tokens).dtype == projector.eval()(x, tokens).dtype == expected
    assert projector.train()(x, tokens).dtype == projector.eval()(x, tokens).dtype == dtype


def test_autocast_leaves_float64_alone():
    first, second = modules()
    x = torch.randn(2, 8, 5, 3, dtype=torch.float64)
    expected = second(*first(x))
    with torch.autocast('cpu', torch.bfloat16):
        torch.testing.assert_close(second(*first(x)), expected)
