"""Multiply-adds and parameters are counted whole, and without computing anything."""

from pathlib import Path

import torch
from mmengine.config import Config
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from docs.reports.complexity import count_config
from vt.engine.counting import count_complexity, neck_inputs
from vt.engine.launch import build_model
from vt.models import TokenTransformer
from vt.models.onednn import prepare_for_onednn
from vt.ops.token_products import choose_token_library, token_library

CONFIGS = Path(__file__).parents[2] / 'configs'


class Attention(nn.Module):
    def forward(self, q, k, v):
        return scaled_dot_product_attention(q, k, v)


def test_fused_attention_is_counted_as_multiply_adds():
    q, k, v = torch.randn(2, 3, 5, 8), torch.randn(2, 3, 7, 8), torch.randn(2, 3, 7, 8)
    assert count_complexity(Attention(), q, k, v).flops == 2 * 3 * (5 * 7 * 8 + 5 * 7 * 8)


def test_pytorchs_own_attention_layer_is_counted_whole():
    layer = nn.MultiheadAttention(8, 2, batch_first=True)
    x = torch.randn(1, 5, 8)
    assert count_complexity(layer, x, x, x).flops == 4 * 5 * 8 * 8 + 2 * 5 * 5 * 8


def test_counting_leaves_the_model_in_its_mode():
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout()).train()
    cost = count_complexity(model, torch.randn(2, 3))
    assert (cost.flops, cost.parameters) == (24, 16)
    assert model.training
    assert model[1].training


def test_products_by_onednn_are_counted():
    model = TokenTransformer(1024)
    tokens = torch.randn(1, 64, 1024)  # (N, L, C)
    found = count_complexity(model, tokens)
    prepare_for_onednn(model)
    choose_token_library('onednn')
    try:
        assert count_complexity(model, tokens) == found
        assert token_library() == 'onednn'
    finally:
        choose_token_library('blas')
    assert found.flops >= 64 * 1024**2


def test_counting_without_computing_agrees_with_a_real_forward_pass():
    path = CONFIGS / 'vt_fpn/vt-fpn_r18_digit-scenes.py'
    model = build_model(Config.fromfile(path))
    image = torch.randn(1, 3, 96, 64)
    whole, neck = count_config(path, (96, 64))
    assert whole == count_complexity(model, image, mode='tensor')
    assert neck == count_complexity(model.neck, neck_inputs(model, image))
