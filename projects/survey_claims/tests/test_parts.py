"""The parts of this project are the papers' equations."""

import functools

import published_survey as published
import pytest
import torch
from survey_backbones import assert_equal_with_gradients, randomise

from projects.survey_claims.parts import TokenFuser, TokenizedBlock


@pytest.fixture(autouse=True)
def _double_precision():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def fused(x, tokens, w):
    """Pixels ``(N, P, C)``, and what each takes of the mixed tokens."""
    tokens = published.layer_norm(tokens, published.under(w, 'norm'), 1e-6).unbind(1)
    weight, bias = w['mix.weight'], w['mix.bias']
    mixed = [sum(weight[i, j] * tokens[j] for j in range(len(tokens))) + bias[i] for i in range(len(tokens))]
    mixed = [published.layer_norm(token, published.under(w, 'mixed_norm'), 1e-6) for token in mixed]
    gates = published.sigmoid(published.pixel_logits(x, published.under(w, 'gates'))).unbind(-1)
    return x + sum(gate[..., None] * token[:, None] for gate, token in zip(gates, mixed))


def test_a_block_on_learned_tokens_is_its_equations():
    torch.manual_seed(0)
    parts = dict(attention=dict(type='vt.Attention'), feed_forward=dict(type='vt.FeedForward'))
    tokens = dict(tokenizer=dict(type='vt.TokenLearner', num_tokens=3), fuser=dict(type='vt.TokenFuser', num_tokens=3))
    block = TokenizedBlock(12, (2, 5), 3, **parts, **tokens, norm_cfg=dict(type='LN', eps=1e-6))

    def theirs(x, weights):
        learned = published.learned_tokens(x, published.under(weights, 'tokenizer'))
        learned = published.plain_block(learned, weights, 3, 1e-6)
        return fused(x, learned, published.under(weights, 'fuser'))

    block.forward = functools.partial(block.forward, size=(2, 5))
    assert_equal_with_gradients(randomise(block), theirs, torch.randn(2, 10, 12))


def test_gates_lie_between_and_nothing_is_added_at_the_start():
    """google-research/scenic 4a38d47 projects/token_learner/model.py: its mixing starts at zero."""
    x, tokens = torch.randn(2, 8, 3, 4), torch.randn(2, 5, 8)
    fuser = TokenFuser(8, 8, num_tokens=5)
    gates = fuser.attention(x, tokens)
    assert gates.shape == (2, 1, 5, 3, 4)
    assert 0 < gates.min() < gates.max() < 1
    assert torch.equal(fuser(x, tokens), x)
