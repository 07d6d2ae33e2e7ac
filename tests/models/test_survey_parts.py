"""The parts of published models, small but as their configs has them, against published equations, in float64.

Outputs and gradients, of networks and of single stages of them, over grids that are not square, one window, one sample.
"""

import copy

import published_survey as published
import pytest
import torch
from survey_backbones import (
    Alone,
    assert_equal_with_gradients,
    assert_is_its_equations,
    build,
    heads_of,
    randomise,
    read,
)

from vt.errors import UserError
from vt.models import TokenBatchNorm, Windows
from vt.registry import MODELS

TRAINING = [False, True]
pytestmark = pytest.mark.filterwarnings('ignore:Unnecessary conv bias')  # as the authors have it

# Of each model its equations, whether a class token is what leaves it (of CeiT those of all blocks do), and facts that
# a small network does not show: the parameters with a head of 1000 classes, each stage's heads, the last drop rate.
SURVEY_MODELS = {
    'pvt-small': (published.pvt, True, 24_485_864, (1, 2, 5, 8), 0.1),
    'rest-small': (published.rest, False, 13_679_708, (1, 2, 4, 8), 0.1),
    'cswin-tiny': (published.cswin, False, 22_320_552, (2, 4, 8, 16), 0.2),
    'ceit-small': (published.ceit, None, 24_204_840, (6,), 0.1),
    'cpvt-small-gap': (published.cpvt, False, 21_993_832, (6,), 0.1),
    'p2t-small': (published.p2t, False, 24_079_848, (1, 2, 5, 8), 0.1),
    'shuffle-tiny': (published.shuffle, False, 28_532_482, (3, 6, 12, 24), 0.1),
    'gg-tiny': (published.gg, False, 28_352_482, (3, 6, 12, 24), 0.2),
    'localvit-small': (published.localvit, True, 22_433_176, (8,), 0.1),
    'deepvit-small': (published.deepvit, True, 27_312_632, (12,), 0.2),
    't2t-vit-t-14': (published.t2t, True, 21_465_422, (6,), 0.1),
    'swin-tiny': (published.swin, False, 28_288_354, (3, 6, 12, 24), 0.2),
    'swinv2-tiny': (published.swin_v2, False, 28_347_154, (3, 6, 12, 24), 0.2),
}


@pytest.fixture(autouse=True)
def _double_precision():
    """From the start, so that nothing which a part computes when it is built is rounded."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def assert_is_the_system(name, backbone, *args, **options):
    assert_is_its_equations(*SURVEY_MODELS[name][:2], backbone, *args, **options)


COLUMNS = ('ceit-small', 'localvit-small', 'deepvit-small')


@pytest.mark.parametrize(
    ('name', 'stages', 'batch', 'size'),
    [
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
        *((name, None, *size) for name in COLUMNS for size in [(2, (32, 48)), (1, (48, 32))]),
        ('swin-tiny', [0, 1], 2, (56, 112)),
        ('swin-tiny', [2, 3], 2, (28, 56)),
        ('swin-tiny', [3], 1, (14, 14)),
        ('swinv2-tiny', [0, 1], 2, (64, 128)),
        ('swinv2-tiny', [3], 1, (16, 16)),
    ],
)
def test_system_is_its_equations(name, stages, batch, size):
    torch.manual_seed(sum(size))
    assert_is_the_system(name, build(name, size, stages), batch, size, stages)


@pytest.mark.parametrize(
    ('name', 'stages', 'batch', 'size'),
    [
        ('t2t-vit-t-14', None, 2, (32, 48)),
        ('t2t-vit-t-14', None, 1, (37, 50)),
        *((name, None, *size) for name in COLUMNS for size in [(2, (32, 48)), (1, (48, 32))]),
        ('rest-small', None, 2, (64, 96)),
        ('shuffle-tiny', [0, 1], 2, (56, 56)),
        ('shuffle-tiny', [2], 1, (14, 28)),
    ],
)
def test_system_is_its_equations_in_training(name, stages, batch, size):
    """By the statistics of the batch."""
    torch.manual_seed(sum(size))
    backbone = build(name, size, stages, training=True)
    assert_is_the_system(name, backbone, batch, size, stages, training=True)


@pytest.mark.parametrize(
    ('name', 'stages', 'size', 'other'),
    [
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
    ],
)
def test_another_grid_than_in_training(name, stages, size, other):
    """Grids are padded to whole windows; stripes are as long as the grid; the rest goes along."""
    torch.manual_seed(sum(other))
    assert_is_the_system(name, build(name, size, stages), 2, other, stages)


@pytest.mark.parametrize('name', ['swin-tiny', 'gg-tiny'])
def test_a_grid_smaller_than_a_window_is_the_window(name):
    torch.manual_seed(0)
    assert_is_the_system(name, build(name, (6, 10), [3]), 2, (6, 10), [3], built=(96, 160))


@pytest.mark.parametrize('training', TRAINING)
def test_last_class_token_looks_at_those_of_all_blocks(training):
    torch.manual_seed(0)
    backbone = build('ceit-small', (32, 48), training=training)
    neck = randomise(MODELS.build(read('ceit-small').neck.to_dict() | dict(channels=12, num_heads=4)))

    def theirs(x, weights):
        layers = published.ceit(x.permute(0, 2, 3, 1), published.under(weights, 'parts.0'), [4], training)
        return published.layerwise_class_attention(layers, published.under(weights, 'parts.1'), heads=4)

    assert_equal_with_gradients(Alone(backbone, neck), theirs, torch.randn(2, 3, 32, 48))


@pytest.mark.parametrize('name', SURVEY_MODELS)
def test_full_size(name):
    """Parameters with a head of 1000 classes, heads, and how often branches are dropped, up to the last block's."""
    _, reads_class_token, num_parameters, heads, rate = SURVEY_MODELS[name]
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


# Windows, stripes and dilated windows by themselves: height and width, dilated, shift, the grid in training, another,
# and which options they have.
FIXED = dict(shrink=False)
CENTERED = dict(shrink=False, centered=True)
WINDOWS = [
    (7, False, 0, (14, 21), (10, 17), {}),
    (7, False, 3, (14, 7), (9, 30), {}),
    (7, False, 3, (7, 7), (28, 14), {}),  # shifted on a larger grid than in training
    (7, False, 3, (24, 24), (3, 40), {}),
    ((2, 5), False, 1, (6, 10), (3, 11), {}),
    (8, False, 4, (16, 16), (17, 5), {}),
    (3, True, 0, (6, 9), (4, 10), {}),
    (7, True, 0, (7, 7), (15, 8), {}),
    (7, False, 3, (14, 5), (9, 12), {}),
    ((None, 2), False, 0, (5, 4), (3, 7), {}),
    ((1, None), False, 0, (5, 4), (2, 3), {}),
    (None, False, 0, (3, 5), (4, 2), {}),
    (7, False, 0, (6, 10), (3, 5), FIXED),
    (7, False, 0, (6, 10), (3, 24), CENTERED),
    (7, True, 0, (6, 10), (15, 8), CENTERED),
    (7, False, 3, (6, 10), (15, 8), CENTERED),
    ((None, 3), False, 0, (5, 4), (3, 7), CENTERED),
]


def windows_of(window, dilated, shift, built, size, options):
    """The part, and where in the grid the tokens of each window stand."""
    part = Windows(window, dilated=dilated, shift=shift, size=built, **options)
    sides = window if isinstance(window, tuple) else (window, window)
    if options.get('shrink', True):
        sides = tuple(min(side, max(built)) if side else None for side in sides)
    sides = tuple(side or whole for side, whole in zip(sides, size))
    shift = (shift, shift) if min(sides) != min(size) else (0, 0)
    places = published.windows(size, sides, dilated, shift, options.get('centered', False))
    return part, sides, places, any(shift)


@pytest.mark.parametrize('grid', ['in training', 'another'])
@pytest.mark.parametrize(('window', 'dilated', 'shift', 'size', 'other', 'options'), WINDOWS)
class TestWindows:
    def test_every_token_is_in_one_window(self, window, dilated, shift, size, other, options, grid):
        rows, columns = size if grid == 'in training' else other
        part, _, expected, _ = windows_of(window, dilated, shift, size, (rows, columns), options)
        found = part.partition(torch.arange(1, rows * columns + 1)[None, :, None], (rows, columns))[..., 0] - 1
        assert found[found >= 0].sort().values.tolist() == list(range(rows * columns))
        inside = [[0 <= i < rows and 0 <= j < columns for i, j in places] for places in expected]
        numbers = [[i * columns + j for i, j in places] for places in expected]
        assert found.tolist() == torch.where(torch.tensor(inside), torch.tensor(numbers), -1).tolist()

    def test_reverse_undoes_partition(self, window, dilated, shift, size, other, options, grid):
        size, built = (size if grid == 'in training' else other), size
        part = Windows(window, dilated=dilated, shift=shift, size=built, **options)
        x = torch.randn(2, size[0] * size[1], 3)
        assert torch.equal(part.reverse(part.partition(x, size), size), x)

    def test_what_a_shift_brings_together_stays_apart(self, window, dilated, shift, size, other, options, grid):
        size, built = (size if grid == 'in training' else other), size
        part, sides, expected, is_shifted = windows_of(window, dilated, shift, built, size, options)
        mask = part.mask_of(size, torch.zeros(()))
        if not is_shifted:
            assert mask is None
            return
        hidden = torch.stack([published.wrapped(places, sides) for places in expected])
        assert hidden.any()
        assert torch.equal(mask[:, 0], torch.zeros(hidden.shape).masked_fill(hidden, -torch.inf))


@pytest.mark.parametrize(('window', 'shift'), [(7, 7), (7, -1), ((7, 3), 3), ((None, 7), 3)])
def test_a_shift_of_a_window_or_more_is_one_clear_line(window, shift):
    with pytest.raises(UserError, match=f'shift={shift} must be less than the sides of window=') as error:
        Windows(window, shift=shift)
    assert '\n' not in str(error.value)


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
