"""The survey's models against published equations, in float64 with gradients, and against public code.

Networks and single stages of them, small but as their configs have them, over grids that are not square, one window,
one sample, and other sizes than in training.
"""

import json

import published_survey as published
import published_survey_second as second
import pytest
import timm
import torch
from mmpretrain.models import SwinTransformer, SwinTransformerV2
from survey_backbones import Alone, assert_equal_with_gradients, assert_is_its_equations, build, randomise, read
from tool_runner import ROOT

from docs.reports.references import measure_difference
from vt.registry import MODELS

REFERENCES = json.loads((ROOT / 'docs/reports/survey_models.json').read_text())['models']
REFERENCES = {name: entry for name, entry in REFERENCES.items() if 'reference' in entry}
FOUR = [0, 1, 2, 3]
COLUMNS = 'ceit-small', 'localvit-small', 'deepvit-small'
ROWS = [  # name, stages, batch, size
    ('pvt-small', None, 2, (64, 96)),
    ('pvt-small', None, 1, (69, 103)),  # remainders are cropped
    ('pvt-small', [3], 1, (2, 2)),  # one token, and the class token
    ('rest-small', None, 1, (51, 70)),
    ('rest-small', [2, 3], 3, (5, 8)),
    ('cswin-tiny', [2, 3], 2, (14, 28)),
    ('cswin-tiny', [2], 1, (14, 14)),  # one stripe
    ('cpvt-small-gap', None, 2, (32, 48)),
    ('cpvt-small-gap', None, 1, (16, 16)),
    ('p2t-small', None, 2, (120, 72)),
    ('p2t-small', [1], 1, (30, 29)),
    ('p2t-small', [3], 3, (6, 13)),
    ('shuffle-tiny', [2, 3], 2, (28, 56)),
    ('shuffle-tiny', [3], 1, (14, 14)),  # one window
    ('gg-tiny', [2, 3], 2, (28, 56)),
    ('gg-tiny', [1], 1, (14, 42)),
    ('t2t-vit-t-14', None, 2, (32, 48)),
    ('t2t-vit-t-14', None, 1, (37, 50)),
    ('swin-tiny', [2, 3], 2, (28, 56)),
    ('swin-tiny', [3], 1, (14, 14)),
    ('swinv2-tiny', [0, 1], 2, (64, 128)),
    ('swinv2-tiny', [3], 1, (16, 16)),
    ('vit-rezero', None, 2, (32, 48)),
    ('vit-early-conv', None, 2, (32, 48)),
    ('vit-sparse', None, 2, (96, 112)),
    ('vit-performer', None, 2, (32, 48)),
    ('vit-tokenlearner', None, 2, (32, 48)),
    ('elsa-swin-tiny', [2, 3], 2, (28, 56)),
    ('ps-vit-b14', None, 2, (32, 48)),
    ('lv-vit-small', None, 2, (32, 48)),
    ('hswin-tiny', [3], 1, (14, 28)),
    ('msg-tiny', None, 2, (56, 112)),
    ('vitae-small', None, 2, (48, 16)),
    *((name, None, 2, (32, 48)) for name in COLUMNS),
]
TRAINED = [  # by the statistics of the batch
    ('rest-small', None, 2, (64, 96)),
    ('shuffle-tiny', [0, 1], 2, (56, 112)),
    ('vit-early-conv', None, 2, (32, 48)),
    ('ps-vit-b14', None, 2, (32, 48)),
    ('lv-vit-small', None, 2, (32, 48)),
    *((name, None, 1, (48, 32)) for name in COLUMNS),
]
# Another grid than in training: it is padded to whole windows; stripes are as long as the grid; the rest goes along.
OTHERS = [  # name, stages, size in training, size
    ('swin-tiny', [3], (6, 10), (6, 10)),  # a grid smaller than a window is the window
    ('gg-tiny', [3], (6, 10), (6, 10)),
    ('rest-small', None, (64, 64), (51, 70)),
    ('cpvt-small-gap', None, (32, 32), (48, 16)),
    ('p2t-small', [0, 1], (96, 96), (120, 72)),
    *((name, FOUR, built, size)
      for name in ('swin-tiny', 'swinv2-tiny', 'cswin-tiny', 'shuffle-tiny', 'gg-tiny', 'elsa-swin-tiny', 'hswin-tiny',
                   'msg-tiny')
      for built, size in [((128, 96), (128, 96)), ((224, 224), (100, 75))]),
]  # fmt: skip
CASES = [(*row, row[3], training) for rows, training in ((ROWS, False), (TRAINED, True)) for row in rows]
CASES += [(name, stages, 1, built, size, False) for name, stages, built, size in OTHERS]
pytestmark = [
    pytest.mark.filterwarnings('ignore:Unnecessary conv bias'),  # as the authors have it
    pytest.mark.usefixtures('double_precision'),
]


@pytest.mark.parametrize(('name', 'stages', 'batch', 'built', 'size', 'training'), CASES)
def test_a_network_is_its_equations(name, stages, batch, built, size, training):
    torch.manual_seed(sum(size))
    backbone = build(name, built, stages, training)
    if stages == FOUR:  # larger weights amplify what is rounded
        for parameter in backbone.parameters():
            parameter.data.mul_(0.5)
    assert_is_its_equations(name, backbone, batch, size, stages, training)


@pytest.mark.parametrize('training', [False, True])
def test_last_class_token_looks_at_those_of_all_blocks(training):
    torch.manual_seed(0)
    backbone = build('ceit-small', (32, 48), training=training)
    neck = read('ceit-small').neck.to_dict() | dict(channels=12, num_heads=4, depth=len(backbone.stages[0].blocks))

    def theirs(x, weights):
        layers = published.ceit(x.permute(0, 2, 3, 1), published.under(weights, 'parts.0'), [4], training)
        return published.layerwise_class_attention(layers, published.under(weights, 'parts.1'), heads=4)

    model = Alone(backbone, randomise(MODELS.build(neck)))
    assert_equal_with_gradients(model, theirs, torch.randn(2, 3, 32, 48))


@pytest.mark.parametrize(
    ('size', 'built', 'training'),
    [((28, 56), (28, 56), False), ((56, 28), (56, 28), True), ((100, 75), 224, False)],
)
def test_resolutions_and_their_fusion_are_their_equations(size, built, training):
    torch.manual_seed(sum(size))
    backbone = build('hrformer-small', built)
    neck = MODELS.build(dict(type='vt.ScaleFusion', in_channels=[4, 6, 8], inner_channels=[2, 3, 4], out_channels=5))

    def theirs(x, weights):
        maps, heads = x.permute(0, 2, 3, 1), [[1, 2], [1, 2, 2]]
        maps = second.hrformer(maps, published.under(weights, 'parts.0'), heads, training)
        return second.scale_fusion(maps, published.under(weights, 'parts.1'), training).permute(0, 3, 1, 2)

    model = Alone(backbone, randomise(neck)).train(training)
    assert_equal_with_gradients(model, theirs, torch.randn(2, 3, *size))


@pytest.mark.parametrize('name', REFERENCES)
def test_a_public_checkpoint_gives_the_references_logits(name):
    torch.set_default_dtype(torch.float32)
    config, entry, options = read(name, whole=True), REFERENCES[name], {}
    if name in ('vit-base', 'cait-s24'):  # whose blocks are many and alike
        config.model.backbone.stages[0].depth = options['depth'] = 2
    assert measure_difference(config, entry['reference'], entry.get('image_size', 224), **options) < 1e-4


def with_weights_of(theirs, folder, name, **options):
    """Our model of a library's random weights."""
    randomise(theirs.double())
    theirs.eval()
    torch.save({f'backbone.{key}': value for key, value in theirs.state_dict().items()}, folder / 'theirs.pth')
    init_cfg = dict(type='Pretrained', checkpoint=str(folder / 'theirs.pth'), prefix='backbone.')
    ours = MODELS.build(read(name).backbone.to_dict() | dict(init_cfg=init_cfg) | options)
    ours.init_weights()
    return ours.eval()


def stages_of(name, channels, heads):
    """Two blocks each."""
    widths = (dict(channels=own, num_heads=number, depth=2) for own, number in zip(channels, heads))
    return [stage.to_dict() | width for stage, width in zip(read(name).backbone.stages, widths)]


def assert_equal(found, expected, image, tolerance):
    direction = torch.randn_like(found)
    gradients = [torch.autograd.grad(out, image, direction)[0] for out in (found, expected)]
    for own, other in ((found, expected), gradients):
        torch.testing.assert_close(own, other, rtol=0, atol=tolerance * other.abs().max().item())


# Of two windows one covers a side of the last grid; at the size of poses a side is shorter, which MMPretrain's pads if
# asked. It has the offsets of the second Swin in float32.
@pytest.mark.parametrize('size', ['two windows', (256, 192)])
@pytest.mark.parametrize('is_built_for_it', [True, False])
@pytest.mark.parametrize(
    ('name', 'kind', 'window', 'tolerance'),
    [('swin-tiny', SwinTransformer, 7, 1e-12), ('swinv2-tiny', SwinTransformerV2, 8, 1e-5)],
)
def test_swin_is_mmpretrains(name, kind, window, tolerance, size, is_built_for_it, tmp_path):
    """Built for these images, or for one window in the last stage, which is not shifted there."""
    torch.manual_seed(0)
    heads = [1, 2, 2, 4]
    arch = dict(embed_dims=6, depths=[2, 2, 2, 2], num_heads=heads)
    arch |= dict(extra_norm_every_n_blocks=0) if kind is SwinTransformerV2 else {}
    size = (64 * window, 32 * window) if size == 'two windows' else size
    options = dict(window_size=[8] * 4) if window == 8 else {}
    options |= dict(pad_small_map=size == (256, 192), out_indices=(3,), drop_path_rate=0.0)
    theirs = kind(arch=arch, img_size=32 * window, **options)
    built = dict(image_size=size if is_built_for_it else 32 * window, out_type='map')
    ours = with_weights_of(theirs, tmp_path, name, stages=stages_of(name, [6, 12, 24, 48], heads), **built)
    image = torch.randn(1, 3, *size).requires_grad_()
    assert_equal(ours(image)[0], theirs(image)[0], image, tolerance)


@pytest.mark.parametrize(('size', 'built'), [((256, 192), (256, 192)), ((233, 187), 224)])
def test_twins_is_timms(size, built, tmp_path):
    torch.manual_seed(sum(size))
    channels, heads = (16, 32, 64, 128), (1, 2, 4, 8)
    theirs = timm.create_model('twins_svt_small', embed_dims=channels, num_heads=heads, depths=(2, 2, 2, 2))
    stages = stages_of('twins-svt-small', channels, heads)
    ours = with_weights_of(theirs, tmp_path, 'twins-svt-small', stages=stages, image_size=built)
    image = torch.randn(1, 3, *size).requires_grad_()
    assert_equal(ours(image)[0], theirs.forward_features(image).mean(dim=1), image, 1e-8)


def test_mmpretrains_t2t_is_ours_but_for_its_logits(tmp_path):
    """MMPretrain 1.2 divides the logits by ``d^-1/2``, and so multiplies them: its queries are made smaller by d."""
    torch.manual_seed(0)
    options = dict(t2t_cfg=dict(token_dims=64), layer_cfgs=dict(num_heads=6, feedforward_channels=1152))
    theirs = MODELS.build(dict(type='mmpretrain.T2T_ViT', img_size=64, num_layers=2, **options))
    stage = read('t2t-vit-t-14').backbone.stages[0].to_dict() | dict(depth=2)
    ours = with_weights_of(theirs, tmp_path, 't2t-vit-t-14', stages=[stage], image_size=64)
    for layer in (theirs.tokens_to_token.attention1, theirs.tokens_to_token.attention2, *theirs.encoder):
        attention = layer.attn
        wanted = (attention.input_dims if layer.v_shortcut else attention.head_dims) ** -0.5
        attention.qkv.weight.data[: attention.embed_dims] *= wanted * attention.head_dims**-0.5
    image = torch.randn(2, 3, 64, 64).requires_grad_()
    assert_equal(ours(image)[0], theirs(image)[0], image, 1e-8)
