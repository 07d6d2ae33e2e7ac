"""Published models, small but as their configs have them, and some parts, against published equations, in float64.

Outputs and gradients, of networks and of single stages of them, over grids that are not square, one window, one sample.
"""

import copy

import published_survey as published
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from survey_backbones import (
    EQUATIONS,
    Alone,
    assert_equal_with_gradients,
    assert_is_its_equations,
    build,
    heads_of,
    randomise,
    read,
)

from vt.models import TokenBatchNorm, Windows
from vt.registry import MODELS

TRAINING = [False, True]
pytestmark = [
    pytest.mark.filterwarnings('ignore:Unnecessary conv bias'),  # as the authors have it
    pytest.mark.usefixtures('double_precision'),
]
# Of some models facts that a small network does not show: the parameters with a head of 1000 classes, each stage's
# heads, the last drop rate.
FULL = {
    'pvt-small': (24_485_864, (1, 2, 5, 8), 0.1),
    'rest-small': (13_679_708, (1, 2, 4, 8), 0.1),
    'cswin-tiny': (22_320_552, (2, 4, 8, 16), 0.2),
    'ceit-small': (24_204_840, (6,), 0.1),
    'cpvt-small-gap': (21_993_832, (6,), 0.1),
    'p2t-small': (24_079_848, (1, 2, 5, 8), 0.1),
    'shuffle-tiny': (28_532_482, (3, 6, 12, 24), 0.1),
    'gg-tiny': (28_352_482, (3, 6, 12, 24), 0.2),
    'localvit-small': (22_433_176, (8,), 0.1),
    'deepvit-small': (27_312_632, (12,), 0.2),
    't2t-vit-t-14': (21_465_422, (6,), 0.1),
    'swin-tiny': (28_288_354, (3, 6, 12, 24), 0.2),
    'swinv2-tiny': (28_347_154, (3, 6, 12, 24), 0.2),
}
SMALL = {'msg-tiny': dict(channels=16), 'vitae-small': dict(channels=12, groups=3)}
COLUMNS = [
    *((name, None, *size) for name in ('ceit-small', 'localvit-small', 'deepvit-small')
      for size in [(2, (32, 48)), (1, (48, 32))])
]  # fmt: skip
WHOLE = [  # name, stages, batch, size
    ('pvt-small', None, 2, (64, 96)),
    ('pvt-small', None, 1, (69, 103)),  # remainders are cropped
    ('pvt-small', [1, 2], 3, (17, 8)),
    ('pvt-small', [3], 1, (2, 2)),  # one token, and the class token
    ('rest-small', None, 2, (64, 96)),
    ('rest-small', None, 1, (51, 70)),
    ('rest-small', [2, 3], 3, (5, 8)),
    ('cswin-tiny', [0, 1], 2, (32, 48)),
    ('cswin-tiny', [2, 3], 2, (14, 28)),
    ('cswin-tiny', [2], 1, (14, 14)),  # one stripe
    ('cswin-tiny', [3], 1, (4, 9)),
    ('cpvt-small-gap', None, 2, (32, 48)),
    ('cpvt-small-gap', None, 1, (16, 16)),
    ('p2t-small', None, 2, (120, 72)),
    ('p2t-small', [1], 1, (30, 29)),
    ('p2t-small', [2], 1, (42, 28)),
    ('p2t-small', [3], 3, (6, 13)),
    ('shuffle-tiny', [0, 1], 2, (56, 112)),
    ('shuffle-tiny', [2, 3], 2, (28, 56)),
    ('shuffle-tiny', [3], 1, (14, 14)),  # one window
    ('gg-tiny', [0, 1], 2, (56, 112)),
    ('gg-tiny', [2, 3], 2, (28, 56)),
    ('gg-tiny', [1], 1, (14, 42)),
    ('t2t-vit-t-14', None, 2, (32, 48)),
    ('t2t-vit-t-14', None, 1, (37, 50)),
    ('swin-tiny', [0, 1], 2, (56, 112)),
    ('swin-tiny', [2, 3], 2, (28, 56)),
    ('swin-tiny', [3], 1, (14, 14)),
    ('swinv2-tiny', [0, 1], 2, (64, 128)),
    ('swinv2-tiny', [3], 1, (16, 16)),
    ('vit-rezero', None, 2, (32, 48)),
    ('vit-early-conv', None, 2, (32, 48)),
    ('vit-sparse', None, 2, (96, 112)),
    ('vit-performer', None, 2, (32, 48)),
    ('vit-tokenlearner', None, 2, (32, 48)),
    ('elsa-swin-tiny', [0, 1], 2, (32, 48)),
    ('elsa-swin-tiny', [2, 3], 1, (28, 28)),
    ('ps-vit-b14', None, 2, (32, 48)),
    ('lv-vit-small', None, 2, (32, 48)),
    ('hswin-tiny', [0, 1], 2, (56, 112)),
    ('hswin-tiny', [3], 1, (14, 28)),
    ('msg-tiny', None, 2, (56, 112)),
    ('vitae-small', None, 2, (32, 48)),
    ('vitae-small', None, 2, (48, 16)),
    *COLUMNS,
]
TRAINED = [  # by the statistics of the batch
    ('t2t-vit-t-14', None, 2, (32, 48)),
    ('t2t-vit-t-14', None, 1, (37, 50)),
    ('rest-small', None, 2, (64, 96)),
    ('shuffle-tiny', [0, 1], 2, (56, 56)),
    ('shuffle-tiny', [2], 1, (14, 28)),
    ('vit-early-conv', None, 2, (32, 48)),
    ('ps-vit-b14', None, 2, (32, 48)),
    ('lv-vit-small', None, 2, (32, 48)),
    *COLUMNS,
]
# Another grid than in training: it is padded to whole windows; stripes are as long as the grid; the rest goes along.
OTHERS = [  # name, stages, size in training, size
    ('swin-tiny', [0], (56, 84), (40, 68)),
    ('swin-tiny', [0], (56, 56), (12, 20)),
    ('swinv2-tiny', [0], (64, 64), (36, 60)),
    ('shuffle-tiny', [0], (56, 56), (40, 68)),
    ('gg-tiny', [0], (56, 56), (40, 68)),
    ('gg-tiny', [1], (14, 14), (30, 16)),
    ('cswin-tiny', [1], (16, 16), (8, 20)),
    ('cswin-tiny', [3], (14, 14), (8, 20)),
    ('rest-small', None, (64, 64), (51, 70)),
    ('cpvt-small-gap', None, (32, 32), (48, 16)),
    ('p2t-small', [0, 1], (96, 96), (120, 72)),
    ('msg-tiny', [0, 1], (112, 112), (84, 140)),
]
CASES = [(*row, row[3], training) for rows, training in ((WHOLE, False), (TRAINED, True)) for row in rows]
CASES += [(name, stages, 2, built, size, False) for name, stages, built, size in OTHERS]


@pytest.mark.parametrize(('name', 'stages', 'batch', 'built', 'size', 'training'), CASES)
def test_system_is_its_equations(name, stages, batch, built, size, training):
    torch.manual_seed(sum(size))
    backbone = build(name, built, stages, training, **SMALL.get(name, {}))
    if name == 'vitae-small':  # the features of its cells, as they are printed in the paper, underflow
        for stage in backbone.stages[:2]:
            stage.embed.attend.qkv.weight.data.mul_(0.1)
    assert_is_its_equations(name, backbone, batch, size, stages, training)


@pytest.mark.parametrize('name', ['swin-tiny', 'gg-tiny'])
def test_a_grid_smaller_than_a_window_is_the_window(name):
    torch.manual_seed(0)
    assert_is_its_equations(name, build(name, (6, 10), [3]), 2, (6, 10), [3], built=(96, 160))


@pytest.mark.parametrize('training', TRAINING)
def test_last_class_token_looks_at_those_of_all_blocks(training):
    torch.manual_seed(0)
    backbone = build('ceit-small', (32, 48), training=training)
    neck = randomise(MODELS.build(read('ceit-small').neck.to_dict() | dict(channels=12, num_heads=4)))

    def theirs(x, weights):
        layers = published.ceit(x.permute(0, 2, 3, 1), published.under(weights, 'parts.0'), [4], training)
        return published.layerwise_class_attention(layers, published.under(weights, 'parts.1'), heads=4)

    assert_equal_with_gradients(Alone(backbone, neck), theirs, torch.randn(2, 3, 32, 48))


@pytest.mark.parametrize('name', FULL)
def test_full_size(name):
    """Parameters with a head of 1000 classes, heads, and how often branches are dropped, up to the last block's."""
    reads_class_token, (num_parameters, heads, rate) = EQUATIONS[name][1], FULL[name]
    config = read(name)
    with torch.device('meta'):
        backbone = MODELS.build(config.backbone)
        neck = [MODELS.build(config.neck)] if reads_class_token is None else []
    parameters = [parameter.numel() for part in (backbone, *neck) for parameter in part.parameters()]
    assert sum(parameters) + 1000 * (config.head.in_channels + 1) == num_parameters
    assert tuple(heads_of(backbone)) == heads
    outputs = {True: 'class_tokens', False: 'average', None: 'layers'}
    assert config.backbone.get('out_type', 'average') == outputs[reads_class_token]
    blocks = [block for stage in backbone.stages for block in stage.blocks]
    depths = [len(stage.blocks) for stage in backbone.stages]
    rates = [rate * index / (len(blocks) - 1) for index in range(len(blocks))]
    if name == 'shuffle-tiny':  # a rate for each stage
        rates = [rate * stage / 3 for stage, depth in enumerate(depths) for _ in range(depth)]
    assert [block.attention.drop_path.drop_prob for block in blocks] == pytest.approx(rates)
    rates = [0] * len(blocks) if name == 'localvit-small' else rates
    assert [block.feed_forward.drop_path.drop_prob for block in blocks] == pytest.approx(rates)
    assert not any(block.between.drop_path.drop_prob for block in blocks if hasattr(block.between, 'drop_path'))


SIDE, GRID = st.integers(1, 9), st.tuples(st.integers(1, 24), st.integers(1, 24))


@settings(max_examples=100)
@given(st.tuples(*[st.none() | SIDE] * 2) | SIDE, st.integers(0, 8), GRID, GRID, *[st.booleans()] * 3)
def test_windows(window, shift, built, other, dilated, shrink, centered):
    """Every token is in one window, and back in its place; what a shift brings together stays apart."""
    sides = window if isinstance(window, tuple) else (window, window)
    kept = tuple(min(side, max(built)) if side and shrink else side for side in sides)
    shift = shift % min(kept) if None not in kept and not dilated else 0
    part = Windows(window, dilated=dilated, shift=shift, size=built, shrink=shrink, centered=centered)
    for rows, columns in (built, other):
        size = rows, columns
        sides = tuple(side or whole for side, whole in zip(kept, size))
        roll = (shift, shift) if min(sides) != min(size) else (0, 0)
        expected = published.windows(size, sides, dilated, roll, centered)
        found = part.partition(torch.arange(1, rows * columns + 1)[None, :, None], size)[..., 0] - 1
        assert found[found >= 0].sort().values.tolist() == list(range(rows * columns))
        inside = [[0 <= i < rows and 0 <= j < columns for i, j in places] for places in expected]
        numbers = [[i * columns + j for i, j in places] for places in expected]
        assert found.tolist() == torch.where(torch.tensor(inside), torch.tensor(numbers), -1).tolist()
        x = torch.randn(2, rows * columns, 3)
        assert torch.equal(part.reverse(part.partition(x, size), size), x)
        mask = part.mask_of(size, torch.zeros(()))
        if not any(roll):
            assert mask is None
            continue
        hidden = torch.stack([published.wrapped(places, sides) for places in expected])
        assert torch.equal(mask[:, 0], torch.zeros(hidden.shape).masked_fill(hidden, -torch.inf))


class OnGrid(torch.nn.Module):
    """A part on a grid of a size."""

    def __init__(self, part, size):
        super().__init__()
        self.part, self.size = part, size

    def forward(self, x):
        return self.part(x, self.size)


@pytest.mark.parametrize('shape', [(3, 5, 8), (1, 7, 4), (6, 1, 4)])
@pytest.mark.parametrize('training', TRAINING)
def test_batch_normalisation_of_tokens_keeps_them_contiguous(shape, training):
    """As PyTorch's of ``(N, C, P)``, whose results are strided views, which slow down the layers around on a CPU."""
    torch.manual_seed(0)
    part = randomise(TokenBatchNorm(shape[2])).train(training)
    theirs = copy.deepcopy(part.norm)
    x, grad = torch.randn(shape, requires_grad=True), torch.randn(shape)
    found = [y := part(x), *torch.autograd.grad(y, [x, *part.parameters()], grad)]
    expected = [y := theirs(x.transpose(1, 2)).transpose(1, 2)]
    expected += torch.autograd.grad(y, [x, *theirs.parameters()], grad)
    torch.testing.assert_close([*found, *part.buffers()], [*expected, *theirs.buffers()])
    assert all(each.is_contiguous() for each in found)
    assert not expected[0].is_contiguous() or 1 in shape[:2]


@pytest.mark.parametrize('size', [(3, 9), (8, 4), (5, 6)])
def test_pvts_positions_are_resized_linearly_side_by_side(size):
    config = read('pvt-small').backbone.every_stage.position
    part = randomise(MODELS.build(config | dict(channels=3, size=(5, 6), num_class_tokens=2)).double())

    def between(x, side, whole):
        """Row ``side`` of so many, between the two that are nearest; middles of cells lie on middles."""
        place = min(max((side + 0.5) * len(x) / whole - 0.5, 0), len(x) - 1)
        low = int(place)
        return x[low] + (place - low) * (x[min(low + 1, len(x) - 1)] - x[low])

    def equation(x, weights):
        places = weights['vectors'][0, 2:].reshape(5, 6, 3)
        rows = torch.stack([between(places, row, size[0]) for row in range(size[0])])
        columns = torch.stack([between(rows.transpose(0, 1), column, size[1]) for column in range(size[1])], dim=1)
        return x + torch.cat([weights['vectors'][0, :2], columns.flatten(0, 1)])

    x = torch.randn(2, 2 + size[0] * size[1], 3, dtype=torch.float64)
    assert_equal_with_gradients(OnGrid(part, size), lambda x, weights: equation(x, published.under(weights, 'part')), x)
