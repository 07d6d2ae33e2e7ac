"""Reading attention maps and tokens."""

import torch

from vt import record_attention
from vt.models import VTResNet


def make():
    torch.manual_seed(0)
    return VTResNet(18, num_tokens=4, token_channels=32, out_type='featmap').eval()


def test_records_hold_every_part_by_name_and_explain_the_tokens():
    model = make()
    with torch.no_grad(), record_attention(model) as records:
        (refined,) = model(torch.randn(2, 3, 64, 96))
    assert list(records) == [f'layer4.{i}.{part}' for i in (0, 1) for part in ('tokenizer', 'relation', 'projector')]
    assert records['layer4.0.tokenizer'].attention.shape == (2, 1, 4, 4, 6)
    assert records['layer4.0.relation'].attention.shape == (2, 1, 4, 4)
    assert records['layer4.1.projector'].attention.shape == (2, 1, 4, 4, 6)
    assert records['layer4.1.tokenizer'].output.shape == (2, 4, 32)
    torch.testing.assert_close(records['layer4.1.projector'].output, refined)
    axes = dict(tokenizer=(-2, -1), relation=(-1,), projector=(2,))
    for name, record in records.items():
        total = record.attention.sum(axes[name.split('.')[-1]])
        torch.testing.assert_close(total, torch.ones_like(total))
    module = model.layer4[1]
    x = records['layer4.0.projector'].output.flatten(2)  # N, C, P
    attention = records['layer4.1.tokenizer'].attention.squeeze(1).flatten(2)  # N, L, P
    pooled = torch.einsum('nlp,ncp->nlc', attention, x)
    torch.testing.assert_close(module.tokenizer.value(pooled), records['layer4.1.tokenizer'].output)


def test_nothing_is_left_behind_and_training_is_unchanged():
    model = make()
    images = torch.randn(1, 3, 32, 32)
    model(images)[0].sum().backward()
    expected = model.layer4[0].tokenizer.weight.grad.clone()
    model.zero_grad()
    with record_attention(model) as records:
        model(images)[0].sum().backward()
    torch.testing.assert_close(model.layer4[0].tokenizer.weight.grad, expected)
    assert not any(record.attention.requires_grad for record in records.values())
    assert not any(module._forward_hooks for module in model.modules())
