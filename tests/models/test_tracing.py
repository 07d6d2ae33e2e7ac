"""What is read of a model: attention maps and tokens; programs of compilers, exporters and tracers; FLOPs."""

import pytest
import torch
from mmengine.config import Config
from tool_runner import ROOT
from torch.export import Dim
from torch.testing import assert_close

from vt import record_attention
from vt.models import VTFPN, VTResNet, optimize_for
from vt.models.visual_transformers.vt_stage import HasVTStages

EARLY = Config.fromfile(ROOT / 'configs/_base_/models/vt-early.py')
EARLY = EARLY.early_backbone | dict(projector=EARLY.early_neck.projector)


def maps(n, h, w):
    return torch.randn(n, 16, h, w)


def levels(n, h, w):
    return [torch.randn(n, 8, h, w), torch.randn(n, 16, h // 2, w // 2)]


def make_modules(**options):
    return HasVTStages(num_tokens=4, token_channels=64, **options).build_stage(16, [0.0, 0.0], 'featmap')


MAKERS = dict(
    modules=lambda: (make_modules(), maps),
    early_modules=lambda: (make_modules(**EARLY), maps),
    neck=lambda: (VTFPN([8, 16], 16, num_outs=3, token_channels=32), levels),
    fused_neck=lambda: (optimize_for(VTFPN([8, 16], 16, num_outs=3, token_channels=32)), levels),
)


def make(name):
    torch.manual_seed(0)
    model, make_inputs = MAKERS[name]()
    return model.eval(), make_inputs


@pytest.mark.parametrize('name', MAKERS)
def test_exported_with_open_sizes(name):
    """Of the first version the batch alone."""
    model, make_inputs = make(name)
    inputs = make_inputs(2, 12, 8)
    early = name.startswith('early')
    is_open = dict.fromkeys((0,) if early else (0, 2, 3), Dim.DYNAMIC)
    sizes = [is_open for _ in inputs] if isinstance(inputs, list) else is_open
    with torch.no_grad():
        program = torch.export.export(model, (inputs,), dynamic_shapes=[sizes])
        others = make_inputs(3, 12, 8) if early else make_inputs(3, 10, 14)
        assert_close(program.module()(others), model(others))


@pytest.mark.parametrize(
    ('name', 'memory_format', 'autocast'),
    [('modules', torch.channels_last, False), ('fused_neck', torch.contiguous_format, True)],
)
def test_compiled_in_one_graph(name, memory_format, autocast):
    model, make_inputs = make(name)
    model = model.to(memory_format=memory_format)
    inputs, found = make_inputs(2, 12, 8), []
    torch._dynamo.reset()
    backend = 'eager' if autocast else 'aot_eager'
    for module in (torch.compile(model, fullgraph=True, backend=backend), model):
        with torch.autocast('cpu', torch.bfloat16, enabled=autocast):
            outs = module(inputs)
        outs = outs if isinstance(outs, tuple) else (outs,)
        gradients = torch.autograd.grad(sum(out.float().square().sum() for out in outs), list(model.parameters()))
        with torch.no_grad(), torch.autocast('cpu', torch.bfloat16, enabled=autocast):
            found.append([outs, gradients, module(inputs)])
    for own, other in zip(*found, strict=True):
        if autocast:
            own, other = (torch.cat([tensor.float().flatten() for tensor in each]) for each in (own, other))
            assert (own - other).norm() <= 0.05 * other.norm()
        else:
            assert_close(own, other, rtol=1e-5, atol=1e-4)


OPTIONS = dict(num_tokens=4, token_channels=32, out_type='featmap')

IMAGES = torch.randn(2, 3, 64, 96)
OF_LAYER4 = [f'layer4.{index}.{part}' for index in (0, 1) for part in ('tokenizer', 'relation', 'projector')]
OF_FPN = ['tokenizers.0', 'tokenizers.1', 'relation', 'projectors.0', 'projectors.1']
OF_EARLY = [(2, 1, 4, 4, 6), (2, 16, 4, 4), (2, 16, 4, 4, 6), (2, 16, 2, 4, 6)]  # the later one makes two tokens
FPN_MAPS = [(2, 1, 4, 6, 5), (2, 1, 4, 3, 2), (2, 1, 8, 8)]
# A model, its inputs, and the shapes of what is recorded: samples, heads, tokens, and other tokens or a map.
RECORDED = {
    'VT-ResNet': (lambda: VTResNet(18, **OPTIONS), IMAGES, OF_LAYER4, [(2, 1, 4, 4, 6), (2, 1, 4, 4)]),
    'early VT-ResNet': (lambda: VTResNet(18, **OPTIONS | dict(token_channels=64) | EARLY), IMAGES, OF_LAYER4, OF_EARLY),
    'VT-FPN': (lambda: VTFPN([8, 16], 16, num_tokens=4, token_channels=32), levels(2, 6, 5), OF_FPN, FPN_MAPS),
}


@pytest.mark.parametrize('name', RECORDED)
def test_records_hold_every_part_by_name_and_its_weights_sum_to_one(name):
    torch.manual_seed(0)
    make, inputs, names, shapes = RECORDED[name]
    model = optimize_for(make().eval())
    with torch.no_grad(), record_attention(model) as records:
        outs = model(inputs)
    assert {*records} == {*names}
    assert {tuple(record.attention.shape) for record in records.values()} == {*shapes}
    for name, record in records.items():
        axes = (-2, -1) if 'tokenizer' in name else -1 if 'relation' in name else 2
        total = record.attention.sum(axes)
        torch.testing.assert_close(total, torch.ones_like(total))
    written = [record.output for name, record in records.items() if 'projector' in name][-len(outs) :]
    assert all(map(torch.equal, written, outs))


def test_recorded_weights_explain_the_tokens():
    torch.manual_seed(0)
    model = VTResNet(18, **OPTIONS).eval()
    with torch.no_grad(), record_attention(model) as records:
        model(torch.randn(2, 3, 64, 96))
    x = records['layer4.0.projector'].output.flatten(2)  # N, C, P
    attention = records['layer4.1.tokenizer'].attention.squeeze(1).flatten(2)  # N, L, P
    tokens = model.layer4[1].tokenizer.value(torch.einsum('nlp,ncp->nlc', attention, x))
    torch.testing.assert_close(tokens, records['layer4.1.tokenizer'].output)


def test_nothing_is_left_behind_and_training_is_unchanged():
    torch.manual_seed(0)
    model, images = VTResNet(18, **OPTIONS).eval(), torch.randn(1, 3, 32, 32)
    model(images)[0].sum().backward()
    expected = model.layer4[0].tokenizer.weight.grad.clone()
    model.zero_grad()
    with record_attention(model) as records:
        model(images)[0].sum().backward()
    torch.testing.assert_close(model.layer4[0].tokenizer.weight.grad, expected)
    assert not any(record.attention.requires_grad for record in records.values())
    assert not any(module._forward_hooks for module in model.modules())
