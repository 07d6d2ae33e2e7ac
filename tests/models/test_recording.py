"""Reading attention maps and tokens, of whole models and of VT-FPN's levels."""

import pytest
import torch
from mmengine.config import Config
from tool_runner import ROOT

from vt import record_attention
from vt.models import VTFPN, VTResNet

EARLY = Config.fromfile(ROOT / 'configs/_base_/models/vt-early.py')
OPTIONS = dict(num_tokens=4, token_channels=32, out_type='featmap')


def make_early():
    options = EARLY.early_backbone | dict(projector=EARLY.early_neck.projector)
    return VTResNet(18, num_tokens=4, token_channels=64, out_type='featmap', **options)


IMAGES = torch.randn(2, 3, 64, 96)
LEVELS = [torch.randn(2, 8, 6, 5), torch.randn(2, 16, 3, 3)]
OF_LAYER4 = [f'layer4.{index}.{part}' for index in (0, 1) for part in ('tokenizer', 'relation', 'projector')]
# A model, its inputs, and the shapes of what is recorded: samples, heads, tokens, and other tokens or a map.
MODELS = {
    'VT-ResNet': (lambda: VTResNet(18, **OPTIONS), IMAGES, OF_LAYER4, [(2, 1, 4, 4, 6), (2, 1, 4, 4)]),
    'early VT-ResNet': (  # whose later tokenizer makes two new tokens
        make_early,
        IMAGES,
        OF_LAYER4,
        [(2, 1, 4, 4, 6), (2, 16, 4, 4), (2, 16, 4, 4, 6), (2, 16, 2, 4, 6)],
    ),
    'VT-FPN': (
        lambda: VTFPN([8, 16], 16, num_tokens=4, token_channels=32),
        LEVELS,
        ['tokenizers.0', 'tokenizers.1', 'relation', 'projectors.0', 'projectors.1'],
        [(2, 1, 4, 6, 5), (2, 1, 4, 3, 3), (2, 1, 8, 8)],
    ),
}


@pytest.mark.parametrize('name', MODELS)
def test_records_hold_every_part_by_name_and_its_weights_sum_to_one(name):
    torch.manual_seed(0)
    make, inputs, names, shapes = MODELS[name]
    model = make().eval()
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
    pooled = torch.einsum('nlp,ncp->nlc', attention, x)
    tokens = model.layer4[1].tokenizer.value(pooled)
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
