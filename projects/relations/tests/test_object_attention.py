"""What the places on an object take: parts whose equations say it, and gradients against whole Jacobians."""

import math

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import DefaultScope
from tool_runner import ROOT
from torch.autograd.functional import jacobian

from projects.relations.influence import added_by, cover, find_parts, grids, influences, measure_objects, measure_part
from projects.relations.tasks import PSVRT
from vt.datasets import Digits
from vt.errors import UserError
from vt.models import Attention, PoolingAttention, VTModule
from vt.registry import MODELS

FRAME = (16, 24)  # 4 x 6 places of 4 x 4 pixels
SIZE = (4, 6)
RELATED = [(0, 0, 4, 8), (16, 8, 24, 12)]  # two places below each other; two beside each other
PLACES = [(0, 6), (16, 17)]
OTHERS = [(12, 12, 14, 16)]  # half of one place


def mean_of_all(x):
    return x.mean(dim=(2, 3), keepdim=True).expand_as(x)


def swap_objects(x):
    """Each of an object's places takes its partner's of the other object, and half of itself."""
    places = x.flatten(2)
    order = torch.arange(24)
    order[[*PLACES[0], *PLACES[1]]] = torch.tensor([*PLACES[1], *PLACES[0]])
    return (places[..., order] + 0.5 * places).reshape(x.shape)


def test_what_comes_from_everywhere_alike_is_by_chance():
    found = measure_part(mean_of_all, (torch.randn(1, 3, *SIZE),), FRAME, RELATED, OTHERS)
    assert found.spread == pytest.approx(1)
    assert found.elsewhere == pytest.approx(22 / 24)
    assert found.related == pytest.approx(1)
    assert found.others == pytest.approx(1)


def test_what_comes_from_the_partner_is_all_that_comes_from_elsewhere():
    found = measure_part(swap_objects, (torch.randn(1, 3, *SIZE),), FRAME, RELATED, OTHERS)
    assert found.spread == pytest.approx((1.5 / 1 ** (2 / 3) / 0.5 ** (1 / 3)) / 24)  # exp of the entropy of 2/3, 1/3
    assert found.elsewhere == pytest.approx(2 / 3)
    assert found.related == pytest.approx(22 / 2)
    assert found.others == pytest.approx(0)
    centres = [[(4 * (place // 6) + 2, 4 * (place % 6) + 2) for place in places] for places in PLACES]
    assert found.reach == pytest.approx(2 / 3 * sum(map(math.dist, *centres)) / 2)


def test_without_other_objects_their_share_is_no_number():
    assert math.isnan(measure_part(mean_of_all, (torch.randn(1, 3, *SIZE),), FRAME, RELATED, []).others)


def test_a_box_covers_its_places_in_part():
    covered = cover([*RELATED, *OTHERS], FRAME, SIZE)
    assert covered[0].nonzero().flatten().tolist() == list(PLACES[0])
    assert covered[1].nonzero().flatten().tolist() == list(PLACES[1])
    assert covered[2].unflatten(0, SIZE).tolist()[3] == [0, 0, 0, 0.5, 0, 0]
    assert covered.sum() == 4.5


def vt_module():
    parts = dict(tokenizer=dict(type='vt.FilterTokenizer', num_tokens=3), relation=None)
    return VTModule(8, 8, **parts, projector=dict(type='vt.Projector'))


@pytest.mark.parametrize(
    ('make', 'args'),
    [
        (vt_module, lambda: (torch.randn(1, 8, 3, 4),)),
        (lambda: Attention(8, 2, (3, 4)), lambda: (torch.randn(1, 1 + 12, 8), (3, 4))),
        (
            lambda: PoolingAttention(8, 2, (4, 4), query=dict(stride=(2, 2), kernel=3)),
            lambda: (torch.randn(1, 16, 8), (4, 4)),
        ),
    ],
)
def test_influences_are_norms_of_the_jacobian(make, args):
    torch.manual_seed(0)
    part, (x, *others) = make().double(), args()
    x = x.double()
    function = added_by(part)
    size, out_size = grids(part, (x, *others))
    every = range(math.prod(out_size))
    found = influences(function, (x, *others), every)

    def of_tokens(x):
        result = function(x, *others)
        result = result.flatten(2).transpose(1, 2) if result.dim() == 4 else result
        return result[0, -len(every) :]

    direction = torch.randn(8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    whole = torch.einsum('pc...,c->p...', jacobian(of_tokens, x), direction).squeeze(1)  # P', then the shape of x
    whole = whole.flatten(2).transpose(1, 2) if x.dim() == 4 else whole
    torch.testing.assert_close(found, whole[:, -math.prod(size) :].norm(dim=-1))


def build(**backbone):
    head = dict(type='LinearClsHead', num_classes=2, in_channels=32, loss=dict(type='CrossEntropyLoss'))
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        model = MODELS.build(
            dict(type='mmpretrain.ImageClassifier', backbone=backbone, neck=dict(type='vt.TokenAverage'), head=head)
        )
    return model.eval()


def test_modules_and_blocks_are_found_and_others_refused():
    vt = build(type='vt.VTResNet', depth=18, num_tokens=4, token_channels=32, num_modules=3)
    assert list(find_parts(vt)) == ['layer4.0', 'layer4.1']  # the last one's tokens go to the head, it writes no map
    swin = Config.fromfile(ROOT / 'configs/swin/swin-tiny_digits.py').model.backbone
    assert 'stages.0.blocks.1.attention' in find_parts(build(**swin))
    images = PSVRT(split='test', num_images=2, pipeline=[dict(type='mmpretrain.PackInputs')])
    for values in measure_objects(vt, images, [0, 1]).values():
        assert values.pop('others') is None
        assert all(math.isfinite(value) for value in values.values())
    with pytest.raises(UserError, match='Digits does not say where its objects are'):
        measure_objects(vt, Digits(split='test'), [0])
    with pytest.raises(UserError, match='ResNet has neither a VTModule'):
        measure_objects(build(type='mmpretrain.ResNet', depth=18), images, [0])
