"""Reading attention maps and tokens."""

import pytest
import torch
from torch import nn

from vt import record_attention
from vt.errors import UserError
from vt.models import VTResNet


def make():
    torch.manual_seed(0)
    return VTResNet(18, num_tokens=4, token_channels=32, out_type='featmap').eval()


def test_records_hold_every_part_by_name():
    model = make()
    with torch.no_grad(), record_attention(model) as records:
        (refined,) = model(torch.randn(2, 3, 64, 96))
    assert list(records) == [f'layer4.{i}.{part}' for i in (0, 1) for part in ('tokenizer', 'relation', 'projector')]
    assert records['layer4.0.tokenizer'].attention.shape == (2, 1, 4, 4, 6)
    assert records['layer4.0.relation'].attention.shape == (2, 1, 4, 4)
    assert records['layer4.1.projector'].attention.shape == (2, 1, 4, 4, 6)
    assert records['layer4.1.tokenizer'].output.shape == (2, 4, 32)
    torch.testing.assert_close(records['layer4.1.projector'].output, refined)


def test_attention_sums_to_one_where_it_is_a_softmax():
    model = make()
    with torch.no_grad(), record_attention(model) as records:
        model(torch.randn(2, 3, 64, 96))
    axes = dict(tokenizer=(-2, -1), relation=(-1,), projector=(2,))
    for name, record in records.items():
        total = record.attention.sum(axes[name.split('.')[-1]])
        torch.testing.assert_close(total, torch.ones_like(total))


def test_recorded_attention_explains_the_tokens():
    model = make()
    with torch.no_grad(), record_attention(model) as records:
        model(torch.randn(2, 3, 64, 96))
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


class Attending(nn.Module):
    """A part of a user's, whose method ``attention`` returns a shape that is given."""

    def __init__(self, shape, out):
        super().__init__()
        self.shape, self.out = shape, out

    def forward(self, x):
        return torch.zeros(self.out)

    def attention(self, x):
        return torch.zeros(self.shape) if isinstance(self.shape, tuple) else self.shape


TOKENS, MAP = (2, 6, 8), (2, 8, 4, 5)


@pytest.mark.parametrize(
    ('shape', 'given', 'out', 'message'),
    [
        ((2, 6, 4, 5), MAP, TOKENS, r'returns \(2, 6, 4, 5\), and \(N, heads, L, H, W\) is needed'),
        ((2, 1, 6, 5, 4), MAP, TOKENS, r'returns \(2, 1, 6, 5, 4\), but .* must match its output \(2, 6, 8\)'),
        ((1, 1, 6, 4, 5), MAP, TOKENS, 'must match its output'),
        ((2, 1, 6, 4, 4), MAP, MAP, 'must match its output'),
        ((2, 6, 6), TOKENS, TOKENS, r'and \(N, heads, L, L\) is needed'),
        ((2, 1, 7, 7), TOKENS, TOKENS, 'must match its output'),
        ((3, 1, 6, 6), TOKENS, TOKENS, 'must match its output'),
        (None, TOKENS, TOKENS, 'returns NoneType, and'),
    ],
)
def test_an_attention_of_a_wrong_shape_is_refused(shape, given, out, message):
    model = nn.Sequential(Attending(shape, out))
    with pytest.raises(UserError, match=f'0, a Attending: its method attention .*{message}'), record_attention(model):
        model(torch.zeros(given))


def test_attentions_of_right_shapes_are_recorded():
    shapes = [((2, 3, 6, 6), TOKENS, TOKENS), ((2, 3, 1, 9), TOKENS, TOKENS), ((8, 3, 4, 4), TOKENS, TOKENS)]
    for shape, given, out in [*shapes, ((2, 3, 6, 4, 5), MAP, TOKENS), ((2, 3, 6, 4, 5), MAP, MAP)]:
        model = nn.Sequential(Attending(shape, out))
        with record_attention(model) as records:
            model(torch.zeros(given))
        assert records['0'].attention.shape == shape
