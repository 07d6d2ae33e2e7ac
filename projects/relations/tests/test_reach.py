"""The reach of attentions whose equations say what their pattern is."""

import pytest
import torch

from projects.relations.influence import draw_reaches, measure_reach, measure_reaches
from vt.errors import UserError
from vt.models import (
    Attention,
    ClassAttention,
    HadamardAttention,
    PoolingAttention,
    ReducedAttention,
    SparseAttention,
    TokenBackbone,
    WindowAttention,
)

SIZE, PLACE = (8, 8), (0.4, 0.7)  # row 3, column 5
ROWS, COLUMNS = torch.meshgrid(torch.arange(8), torch.arange(8), indexing='ij')
EVERYTHING = torch.ones(8, 8, dtype=torch.bool)
NEAR = ((ROWS - 3).abs() <= 1) & ((COLUMNS - 5).abs() <= 1)


def windows(**options):
    return WindowAttention(8, 2, SIZE, windows=dict(type='vt.Windows', **options))


@pytest.mark.parametrize(
    ('attention', 'num_class_tokens', 'seen'),
    [
        (lambda: Attention(8, 2, SIZE), 1, EVERYTHING),
        (lambda: windows(window=4), 0, (ROWS < 4) & (COLUMNS >= 4)),
        (lambda: windows(window=4, shift=2), 0, (ROWS >= 2) & (ROWS < 6) & (COLUMNS >= 2) & (COLUMNS < 6)),
        (lambda: windows(window=4, dilated=True), 0, (ROWS % 2 == 1) & (COLUMNS % 2 == 1)),
        (lambda: windows(window=(None, 2)), 0, (COLUMNS == 4) | (COLUMNS == 5)),
        (lambda: SparseAttention(8, 2, SIZE, near=1), 1, NEAR),
        (lambda: SparseAttention(8, 2, SIZE, stride=3), 0, ((ROWS - 3) % 3 == 0) & ((COLUMNS - 5) % 3 == 0)),
        (lambda: HadamardAttention(12, 2, SIZE, kernel_size=3, group_width=4), 0, None),
        (lambda: ReducedAttention(8, 2, SIZE, reduce=dict(type='vt.PoolingReduction', side=2)), 0, EVERYTHING),
        (lambda: ClassAttention(8, 2), 1, EVERYTHING),
    ],
)
def test_a_token_sees_what_its_equation_says(attention, num_class_tokens, seen):
    torch.manual_seed(0)
    part = attention()
    channels = part.proj.in_features
    x = torch.randn(1, num_class_tokens + 64, channels)
    strengths, place = measure_reach(part, x, SIZE, PLACE)
    assert strengths.max() == 1
    assert place == (None if isinstance(part, ClassAttention) else (3, 5))
    if seen is None:  # maps of products around it, and values around it
        assert strengths[3, 5] > 0
        assert torch.equal(strengths > 0, NEAR)
    else:
        assert torch.equal(strengths > 0, seen)


def test_a_pooled_query_stands_in_the_middle_of_what_it_pools():
    torch.manual_seed(0)
    part = PoolingAttention(8, 2, SIZE, query=dict(stride=(2, 2), kernel=3))
    strengths, place = measure_reach(part, torch.randn(1, 64, 8), SIZE, PLACE)
    assert (strengths > 0).all()
    assert place == (3, 5)


def test_blocks_that_see_the_same_are_one_cell():
    torch.manual_seed(0)
    windows = dict(type='vt.Windows', window=4), dict(type='vt.Windows', window=4, shift=2)
    grid = [dict(type='vt.WindowAttention', windows=each) for each in windows]
    embed = dict(type='vt.PatchEmbed', kernel_size=4)
    stage = dict(channels=8, num_heads=2, depth=5, embed=embed, attention=grid)
    backbone = TokenBackbone([stage], image_size=32).eval()
    image = torch.rand(1, 3, 32, 32)
    reaches = measure_reaches(backbone, image, 'swin', 1, PLACE)
    assert [reach.title for reach in reaches] == ['swin\nstage 1, block 1', 'swin\nstage 1, block 2']
    cells = draw_reaches(image[0], reaches).axes
    assert [cell.get_title() for cell in cells] == [reach.title for reach in reaches]
    with pytest.raises(UserError, match='Linear has no stages of blocks'):
        measure_reaches(torch.nn.Linear(1, 1), image, 'linear', 0, PLACE)
