"""Parts of the survey's second half against published equations, in float64; test_survey_parts.py has its models."""

import functools
import math

import published_survey_second as published
import pytest
import torch
from published_equations import softmax
from survey_backbones import Alone, assert_equal_with_gradients, randomise, read
from torch import nn

from vt.engine.counting import count_complexity
from vt.engine.redraw_hook import RedrawHook
from vt.models import (
    HadamardAttention,
    MessengerWindows,
    PerformerAttention,
    ReductionCell,
    SinusoidalPosition,
    SparseAttention,
    record_attention,
)
from vt.models.survey.attentions.performer import TokenPerformer, draw_directions, log_features
from vt.models.survey.blocks.messengers import shuffle
from vt.models.survey.embeddings.progressive_sampling import sample
from vt.ops.neighbours import sum_at_once, sum_one_by_one
from vt.registry import MODELS

pytestmark = [pytest.mark.filterwarnings('ignore:Unnecessary conv bias'), pytest.mark.usefixtures('double_precision')]


@pytest.mark.parametrize(('windows', 'region'), [((4, 6), 2), ((2, 4), 4), ((3, 1), 2)])
def test_shuffled_messengers(windows, region):
    x = torch.randn(2, windows[0] * windows[1], 16)
    expected = published.shuffled(x.unflatten(1, windows), region).flatten(1, 2)
    assert torch.equal(shuffle(x, windows, region), expected)
    assert torch.equal(shuffle(expected, windows, region), x)


def test_messengers_windows_hold_every_token_once():
    windows = MessengerWindows(7, size=(14, 7))
    for size in [(14, 7), (10, 9)]:
        places, number = size[0] * size[1], math.prod(-(-side // 7) for side in size)
        numbers = torch.arange(1, 1 + places + number).roll(-places)  # the messengers' follow the grid's
        numbers = windows.partition(numbers[None, :, None], size)[..., 0] - 1
        assert numbers[:, 0].tolist() == [places + window for window in range(len(numbers))]
        assert numbers[numbers >= 0].sort().values.tolist() == list(range(places + len(numbers)))


def test_ghost_head_is_its_equations():
    torch.manual_seed(0)
    part = randomise(HadamardAttention(12, 3, group_width=4))
    maps = part.attention(torch.randn(2, 20, 12), (4, 5))
    torch.testing.assert_close(maps.sum(dim=-1), torch.ones(2, 3, 20))

    def theirs(x, weights):
        return published.tokens_of(published.hadamard_attention(x.unflatten(1, (4, 5)), weights, 3))

    part.forward = functools.partial(part.forward, size=(4, 5))
    assert_equal_with_gradients(part, theirs, torch.randn(2, 20, 12))


@pytest.mark.parametrize('kernel_size', [3, 7])
@pytest.mark.parametrize('size', [(1, 1), (4, 5), (20, 2), (14, 14)])
@pytest.mark.parametrize(('dtype', 'tolerance'), [(torch.float64, 1e-13), (torch.bfloat16, 0.05)])
def test_neighbours_in_one_product_are_those_one_by_one(kernel_size, size, dtype, tolerance):
    torch.manual_seed(0)
    maps = torch.randn(2, 3, kernel_size**2, *size).softmax(dim=2)
    v, grad = torch.randn(2, 12, *size), torch.randn(2, 3, 4, *size)
    found = []
    for add in (sum_one_by_one, sum_at_once):
        inputs = [each.to(dtype).requires_grad_() for each in (maps, v)]
        read = add(*inputs)
        found.append([read, *torch.autograd.grad(read, inputs, grad.to(dtype))])
    torch.testing.assert_close(*found, atol=tolerance, rtol=tolerance)


def test_products_with_tokens_that_are_no_neighbours_are_not_counted():
    part, tokens = HadamardAttention(12, 3, kernel_size=3, group_width=4), 20
    linear, convolutions = 12 * (8 + 8 + 12) + 12 * 12, 9 * (8 * 4 + 12) + 8 * 3 * 9
    assert count_complexity(part, torch.randn(1, tokens, 12), (4, 5)).flops == tokens * (linear + convolutions)


HIGH = dict(
    stem_channels=3,
    stages=[
        dict(modules=1, depth=1, channels=[4, 6], num_heads=[1, 2]),
        dict(modules=2, depth=1, channels=[4, 6, 8], num_heads=[1, 2, 2]),
    ],
)


@pytest.mark.parametrize(('size', 'training'), [((28, 56), False), ((56, 28), True)])
def test_resolutions_and_their_fusion_are_their_equations(size, training):
    torch.manual_seed(sum(size))
    config = read('hrformer-small')
    backbone = MODELS.build(config.backbone.to_dict() | HIGH | dict(image_size=size))
    neck = MODELS.build(dict(type='vt.ScaleFusion', in_channels=[4, 6, 8], inner_channels=[2, 3, 4], out_channels=5))

    def theirs(x, weights):
        maps = published.hrformer(
            x.permute(0, 2, 3, 1),
            published.under(weights, 'parts.0'),
            [s['num_heads'] for s in HIGH['stages']],
            training,
        )
        return published.scale_fusion(maps, published.under(weights, 'parts.1'), training).permute(0, 3, 1, 2)

    model = randomise(Alone(backbone, neck)).train(training)
    assert_equal_with_gradients(model, theirs, torch.randn(2, 3, *size))


def test_hrformer_gives_its_maps_of_images_of_any_size():
    config = read('hrformer-small').backbone.to_dict() | HIGH
    backbone = MODELS.build(config | dict(image_size=56, out_indices=[0, -1], drop_path_rate=0.2)).eval()
    with record_attention(backbone) as records:
        fine, coarse = backbone(torch.randn(1, 3, 90, 70))
    assert fine.shape == (1, 4, 23, 18)
    assert coarse.shape == (1, 8, 6, 5)
    assert records['stages.0.0.branches.0.0.attention.part'].attention.shape[1] == 1
    branches = [module.branches[0] for stage in backbone.stages for module in stage]
    rates = [block.attention.drop_path.drop_prob for branch in branches for block in branch]
    assert rates == pytest.approx([0, 0.1, 0.2])


@pytest.mark.parametrize('size', [(4, 5), (3, 1)])
def test_points_are_sampled_between_pixels_and_zeros_outside(size):
    torch.manual_seed(0)
    x, points = torch.randn(2, 3, *size), torch.rand(2, 30, 2) * 8 - 2
    expected = [[published.at(own.permute(1, 2, 0), *place) for place in places] for own, places in zip(x, points)]
    torch.testing.assert_close(sample(x, points), torch.stack([torch.stack(each) for each in expected]))


def test_positive_features_are_exact_in_expectation():
    """The kernel ``exp(x . y)``, of orthogonal directions and of more than there are dimensions."""
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(2, 4, generator=generator) / 3
    products = []
    for _ in range(2000):
        directions = draw_directions(6, 4, generator)
        products.append(log_features(x, directions).exp() @ log_features(y, directions).exp())
    products = torch.stack(products)
    error = products.std() / len(products) ** 0.5
    assert abs(products.mean() - (x @ y).exp()) < 4 * error < 0.05


def test_orthogonal_directions_are_normal_ones():
    directions = torch.stack([draw_directions(4, 4, torch.Generator().manual_seed(seed)) for seed in range(2000)])
    products = directions @ directions.mT
    torch.testing.assert_close(products * (1 - torch.eye(4)), torch.zeros_like(products), atol=1e-12, rtol=0)
    assert directions.mean(dim=0).abs().max() < 0.12
    torch.testing.assert_close((directions.mT @ directions).mean(dim=0) / 4, torch.eye(4), atol=0.1, rtol=0)


def test_many_features_come_near_to_attention_and_are_finite_for_large_logits():
    torch.manual_seed(0)
    part = PerformerAttention(8, 2, num_features=20000).requires_grad_(False)
    x = torch.randn(1, 6, 8)
    q, k, _ = part.project(x, (2, 3))
    torch.testing.assert_close(part.attention(x, (2, 3)), softmax(q @ k.mT / 2, dim=-1), atol=0.02, rtol=0)
    few = PerformerAttention(8, 2, num_features=4).float()
    assert few(100 * x.float(), (2, 3)).isfinite().all()


@pytest.mark.parametrize('epsilon', [1e-4, 0.1])
def test_an_epsilon_stands_where_the_authors_have_it(epsilon):
    """ViTAE's code adds it to what a query's products are divided by."""
    torch.manual_seed(0)
    part = randomise(TokenPerformer(5, 6, epsilon=epsilon))
    part.forward = functools.partial(part.forward, size=(2, 3))
    theirs = functools.partial(published.token_performer, epsilon=epsilon)
    assert_equal_with_gradients(part, theirs, torch.randn(2, 6, 5))
    x = torch.randn(2, 6, 5)
    v = part.qkv(x).chunk(3, dim=-1)[2]
    torch.testing.assert_close(part(x), v + part.proj(part.attention(x, (2, 3)).squeeze(1) @ v))


def test_features_of_cells_are_orthogonal_and_of_one_length():
    """Drawn at first and again: ``orthogonal * sqrt(m)`` of T2T's and ViTAE's token_performer.py."""
    part = ReductionCell(3, 12, kernel_size=7, stride=4, dilations=[1]).attend
    for _ in range(2):
        torch.testing.assert_close(part.directions @ part.directions.mT, 6 * torch.eye(6))
        before = part.directions.clone()
        part.redraw()
        assert not torch.equal(part.directions, before)


@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
def test_features_are_exact_under_autocast(dtype):
    torch.manual_seed(0)
    part = PerformerAttention(32, 2).float()
    x = torch.randn(2, 20, 32, dtype=torch.float32)
    expected = part(x, (4, 5))
    with torch.autocast('cpu', dtype):
        found = part(x, (4, 5))
    assert found.dtype == dtype
    torch.testing.assert_close(found.float(), expected, atol=0.02, rtol=0.02)


def test_features_are_redrawn_on_request_alike_in_all_processes():
    model = nn.Sequential(PerformerAttention(8, 2), PerformerAttention(8, 2))
    before = [part.directions.clone() for part in model]

    def drawn_at(step):
        runner = type('Runner', (), dict(iter=step, model=model))()
        RedrawHook(interval=2).after_train_iter(runner, step)
        return [part.directions.clone() for part in model]

    assert all(map(torch.equal, drawn_at(0), before))
    first = drawn_at(1)
    assert not torch.equal(first[0], before[0])
    assert not torch.equal(first[0], first[1])
    assert not torch.equal(drawn_at(3)[0], first[0])
    assert torch.equal(drawn_at(1)[0], first[0])


@pytest.mark.parametrize('size', [(5, 7), (3, 4)])
def test_sparse_maps_are_of_those_that_are_seen(size):
    torch.manual_seed(0)
    part = SparseAttention(8, 2, size=(5, 7), near=1, stride=3)
    maps = part.attention(torch.randn(2, 1 + size[0] * size[1], 8), size)
    torch.testing.assert_close(maps.sum(dim=-1), torch.ones_like(maps.sum(dim=-1)))
    for i in range(size[0] * size[1]):
        for j in range(size[0] * size[1]):
            rows, columns = (abs(a - b) for a, b in zip(divmod(i, size[1]), divmod(j, size[1])))
            assert (maps[..., 1 + i, 1 + j] > 0).all() == (max(rows, columns) <= 1 or rows % 3 == columns % 3 == 0)


def test_waves_of_a_finer_grid_pass_through_those_of_training():
    part = SinusoidalPosition(8, (3, 4), num_class_tokens=1)
    coarse, fine = (
        part(torch.zeros(1, 1 + rows * columns, 8), (rows, columns))[0] for rows, columns in [(3, 4), (9, 12)]
    )
    torch.testing.assert_close(fine[:1], coarse[:1])
    middles = fine[1:].unflatten(0, (9, 12))[1::3, 1::3].flatten(0, 1)
    torch.testing.assert_close(middles, coarse[1:])
