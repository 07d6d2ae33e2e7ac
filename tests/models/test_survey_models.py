"""The survey's models, as their configs build them: sizes, costs, public references, and what every backbone can do."""

import json
from functools import cache

import pytest
import torch
from mmengine.config import Config
from mmengine.model import revert_sync_batchnorm
from mmengine.optim import build_optim_wrapper
from mmengine.registry import DefaultScope
from mmpretrain.registry import MODELS
from mmpretrain.structures import DataSample
from mmseg.registry import MODELS as SEGMENTORS
from survey_backbones import bicubic
from tool_runner import ROOT

from docs.reports.references import measure_difference
from vt.apis import find_config
from vt.checkpoints.grids import FileGrids
from vt.engine.counting import count_complexity
from vt.errors import UserError
from vt.models import record_attention

SURVEY_MODELS = json.loads((ROOT / 'docs/reports/survey_models.json').read_text())['models']
REFERENCES = {name: entry['reference'] for name, entry in SURVEY_MODELS.items() if 'reference' in entry}
OWN = [name for name, entry in SURVEY_MODELS.items() if 'backbone_of' not in entry]
OURS = [*OWN, 'hrformer-small']  # MViT has tests of its own
SLOW = pytest.mark.slow
SEVENS = ('swin-tiny', 'twins-svt-small', 'gg-tiny', 'hswin-tiny', 'msg-tiny', 'hrformer-small')
SMALL = dict.fromkeys(SEVENS, 56) | {'shuffle-tiny': 112}  # whole windows of 7x7


@cache
def read_config(name: str, task: str = '16xb64-300e_in1k') -> Config:
    return Config.fromfile(find_config(f'{name}_{task}'))


def build(config: dict) -> torch.nn.Module:
    model = MODELS.build(config)
    model.eval()
    return model


def small_backbone(name: str, **options) -> tuple[torch.nn.Module, int]:
    """A model's backbone for small images, two blocks a stage; and their size."""
    config = read_config(name).model.backbone.to_dict()
    size = SMALL.get(name, 64)
    stages = []
    if name == 'hrformer-small':
        stages = [stage | dict(modules=1) for stage in config['stages']]
        return build(config | dict(stages=stages, image_size=size, drop_path_rate=0.0) | options), size
    for stage in config['stages']:
        depth = min(2, stage['depth'])
        ends = {key: [value[0], value[-1]] for key, value in stage.items() if isinstance(value, list)}
        stages.append(stage | ends | dict(depth=depth))
    return build(config | dict(stages=stages, image_size=size, drop_path_rate=0.0) | options), size


def randomise(model: torch.nn.Module) -> None:
    """Every parameter away from its start, which hides what zeros and ones multiply."""
    for parameter in model.parameters():
        parameter.data.add_(0.02 * torch.randn_like(parameter))


@pytest.mark.parametrize('name', SURVEY_MODELS)
def test_parameters_and_flops_are_the_published_ones(name):
    entry = SURVEY_MODELS[name]
    with torch.device(
        'cpu' if entry.get('backbone_of') == 'MMPretrain' else 'meta'
    ):  # nothing is computed where that is possible
        model = build(read_config(name).model)
        size = entry.get('image_size', 224)
        cost = count_complexity(model, torch.zeros(1, 3, size, size), mode='tensor')
    parameters, flops = entry.get('code', entry['published'])[:2]
    assert cost.parameters / 1e6 == pytest.approx(parameters, rel=0.01)
    assert cost.flops / 1e9 == pytest.approx(flops, rel=0.03)


@pytest.mark.parametrize('name', REFERENCES)
def test_a_public_checkpoint_gives_the_references_logits(name):
    assert measure_difference(read_config(name), REFERENCES[name], SURVEY_MODELS[name].get('image_size', 224)) < 1e-4


def test_mmpretrains_t2t_is_ours_but_for_its_logits(tmp_path):
    """MMPretrain 1.2 divides the logits by ``d^-1/2``, and so multiplies them: its queries are made smaller by d."""
    torch.manual_seed(0)
    options = dict(t2t_cfg=dict(token_dims=64), layer_cfgs=dict(num_heads=6, feedforward_channels=1152))
    theirs = build(dict(type='T2T_ViT', img_size=64, num_layers=2, **options))
    randomise(theirs)
    torch.save({f'backbone.{key}': value for key, value in theirs.state_dict().items()}, tmp_path / 'mmpretrain.pth')
    ours, _ = small_backbone('t2t-vit-t-14')
    ours.init_cfg = dict(type='Pretrained', checkpoint=str(tmp_path / 'mmpretrain.pth'))
    ours.init_weights()
    for layer in (theirs.tokens_to_token.attention1, theirs.tokens_to_token.attention2, *theirs.encoder):
        attention = layer.attn
        wanted = (attention.input_dims if layer.v_shortcut else attention.head_dims) ** -0.5
        attention.qkv.weight.data[: attention.embed_dims] *= wanted * attention.head_dims**-0.5
    images = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        torch.testing.assert_close(ours(images)[0], theirs(images)[0], atol=1e-5, rtol=1e-4)


def flat(outs: tuple) -> list[torch.Tensor]:
    return [each for out in outs for each in (out if isinstance(out, tuple) else (out,))]


@pytest.mark.parametrize('name', OWN)
def test_another_input_size_and_maps_of_every_stage(name):
    model, size = small_backbone(name, out_type='map', norm_outputs=True)
    model.out_indices = range(len(model.stages))
    height, width = 2 * size, size + 32
    with torch.no_grad():
        outs = model(torch.randn(1, 3, height, width))
    for out, stage in zip(outs, model.stages, strict=True):
        assert out.isfinite().all()
        if hasattr(stage.embed, 'grid'):  # as many tokens of any map
            assert out.shape[2:] == stage.size
            continue
        stride = size // stage.size[0]
        assert abs(out.shape[2] - height / stride) <= 1
        assert abs(out.shape[3] - width / stride) <= 1


@pytest.mark.parametrize('neck', ['fpn', 'vt-fpn'])
@pytest.mark.parametrize('name', ['swin-tiny', 'pvtv2-b2'])
def test_a_segmentor_takes_the_maps_of_every_stage(name, neck):
    cfg = Config.fromfile(find_config(f'{name}_{neck}_4xb4-160k_ade20k-512x512'))
    for stage in cfg.model.backbone.stages:
        stage.depth = min(2, stage.depth)
    with DefaultScope.overwrite_default_scope('mmseg'):
        model = revert_sync_batchnorm(SEGMENTORS.build(cfg.model))
    model.init_weights()
    model.eval()
    logits = model(torch.randn(1, 3, 64, 96), mode='tensor')
    assert logits.shape == (1, 150, 16, 24)
    logits.square().mean().backward()
    assert all(parameter.grad is not None for parameter in [*model.backbone.parameters(), *model.neck.parameters()])


def stage(**options) -> dict:
    attention = dict(type='vt.WindowAttention', windows=dict(type='vt.Windows', window=4))
    return (
        dict(channels=16, depth=2, num_heads=2, embed=dict(type='vt.PatchEmbed', kernel_size=4), attention=attention)
        | options
    )


@pytest.mark.parametrize('name', ['RelativePositionBias', 'ContinuousPositionBias'])
def test_a_bias_in_the_grid_follows_its_size(name):
    attention = dict(type='vt.WindowAttention', bias=dict(type=f'vt.{name}'))
    backbone = build(dict(type='vt.TokenBackbone', image_size=32, stages=[stage(attention=attention)]))
    bias = backbone.stages[0].blocks[0].attention.part.bias
    randomise(bias)
    assert backbone(torch.randn(1, 3, 48, 32))[0].shape == (1, 16)
    if name == 'ContinuousPositionBias':  # offsets that both grids have are biased alike
        assert torch.allclose(bias((12, 8)).unflatten(2, (12, 8))[:, 0, :8].flatten(1), bias((8, 8))[:, 0], atol=1e-5)
    else:
        middles = bias((12, 8)).diagonal(dim1=1, dim2=2), bias((8, 8)).diagonal(dim1=1, dim2=2)
        assert all(torch.allclose(each, each[:, :1].expand_as(each)) for each in middles)  # of the offset 0


@pytest.mark.parametrize('name', ['vt-resnet18', 'swin-tiny'])
def test_the_loss_reaches_every_parameter_of_the_digits_configs(name):
    """As configured: whole depth, its own output and head."""
    torch.manual_seed(0)
    cfg = read_config(name, 'digits')
    cfg.model.backbone.drop_path_rate = 0.0
    model = MODELS.build(cfg.model).train()
    randomise(model)
    size = cfg.model.backbone.get('image_size', 64)
    samples = [DataSample().set_gt_label(each) for each in (3, 7)]
    model(torch.randn(2, 3, size, size), samples, mode='loss')['loss'].backward()
    assert [key for key, each in model.named_parameters() if each.grad is None or not each.grad.abs().sum()] == []


@pytest.mark.parametrize('name', OURS)
def test_frozen_stages_stay_as_they_are(name):
    model, _ = small_backbone(name, frozen_stages=0)
    model.train()
    frozen = ('stages.0.', 'stem.', 'transitions.0.')
    for key, parameter in model.named_parameters():
        assert parameter.requires_grad is not key.startswith(frozen), key
    for key, module in model.named_modules():
        assert module.training is not f'{key}.'.startswith(frozen), key


@pytest.mark.parametrize('name', OURS)
def test_every_layer_has_a_depth(name):
    """From 0 to one less than the number of layers; blocks come one after the other."""
    model, _ = small_backbone(name)
    found = {key: model.get_layer_depth(f'backbone.{key}', 'backbone.') for key, _ in model.named_parameters()}
    (num_layers,) = {number for _, number in found.values()}
    own = {depth for depth, _ in found.values()} | {num_layers - 1}  # the head's
    assert own == set(range(num_layers))
    blocks = [depth for key, (depth, _) in found.items() if key.endswith('attention.part.proj.weight')]
    assert blocks == sorted(blocks) or name == 'hrformer-small'  # whose branches are beside each other
    assert model.get_layer_depth('head.fc.weight', 'backbone.') == (num_layers - 1, num_layers)


MIXED = ('rest-small', 'cait-s24', 'deepvit-small', 'vit-performer')  # whose maps don't sum to one


@pytest.mark.parametrize('name', OURS)
def test_every_attention_is_recorded(name):
    model, size = small_backbone(name)
    with torch.no_grad(), record_attention(model) as records:
        model(torch.randn(1, 3, size, size))
    attentions = {key for key, part in model.named_modules() if key.endswith(('attention.part', 'embed.attend'))}
    branches = {key for key in attentions if hasattr(model.get_submodule(key), 'branches')}
    attentions |= {f'{key}.branches.{index}' for key in branches for index in (0, 1)}
    assert attentions - branches <= records.keys()
    for key in attentions - branches:
        maps = records[key].attention
        assert maps.dim() == 4
        if name not in MIXED:
            torch.testing.assert_close(maps.sum(dim=-1), torch.ones(maps.shape[:-1]))


def test_layers_count_from_the_stem_to_the_head():
    """As MMPretrain's layer-wise decay of the learning rate asks for them."""
    stages = [stage(), stage(embed=dict(type='vt.PatchMerging'), channels=32, norm=True)]
    model = MODELS.build(
        dict(
            type='ImageClassifier',
            backbone=dict(type='vt.TokenBackbone', image_size=32, stages=stages),
            head=dict(type='LinearClsHead', num_classes=3, in_channels=32),
        )
    )
    optimizer = build_optim_wrapper(
        model,
        dict(
            constructor='LearningRateDecayOptimWrapperConstructor',
            optimizer=dict(type='AdamW', lr=1.0, weight_decay=0.05),
            paramwise_cfg=dict(layer_decay_rate=0.5),
        ),
    ).optimizer
    depths = {id(p): group['lr'] for group in optimizer.param_groups for p in group['params']}
    rates = {name: depths[id(parameter)] for name, parameter in model.named_parameters()}
    assert rates['backbone.stages.0.embed.projection.weight'] == 0.5**5
    for index, layer in enumerate(('0.blocks.0', '0.blocks.1', '1.blocks.0', '1.blocks.1')):
        assert rates[f'backbone.stages.{layer}.attention.part.qkv.weight'] == 0.5 ** (4 - index)
    assert rates['backbone.stages.1.embed.reduction.weight'] == 0.5**2
    assert rates['backbone.stages.1.norm.weight'] == rates['head.fc.weight'] == 1


def test_biases_take_the_size_of_another_window(tmp_path):
    def swin(window):
        config = read_config('swin-tiny').model.backbone.to_dict()
        for attention in config['every_stage']['attention']:
            windows = attention['windows']
            windows |= dict(window=window) | (dict(shift=window // 2) if 'shift' in windows else {})
        for stage in config['stages']:
            stage['depth'] = 2
        return build(config | dict(image_size=64))

    small, large = swin(2), swin(4)
    tables = [name for name in small.state_dict() if name.endswith('bias.table')]
    torch.save(small.state_dict(), tmp_path / 'small.pth')
    large.init_cfg = dict(type='Pretrained', checkpoint=str(tmp_path / 'small.pth'))
    large.init_weights()
    for name in tables:
        before, after = small.get_parameter(name), large.get_parameter(name)
        assert len(before) == 9
        if name.startswith('stages.3'):  # whose map is one window of 2x2 in both
            assert torch.equal(after, before)
            continue
        maps = [table.detach().T.unflatten(1, (round(len(table) ** 0.5), -1)) for table in (before, after)]
        resize = bicubic(maps[0].shape[1], 7).float()
        expected = resize @ maps[0] @ resize.T
        torch.testing.assert_close(maps[1], expected, atol=1e-6, rtol=1e-5)
    with pytest.raises(UserError, match='the grid of its 10 positions is unknown, and the model has 4x4'):
        large.stages[0].blocks[0].attention.part.bias.resized(torch.zeros(10, 3), 'table', FileGrids())


def test_a_continuous_bias_keeps_its_values_in_a_larger_window():
    torch.manual_seed(0)
    bias = dict(type='vt.ContinuousPositionBias', num_heads=2)
    small = MODELS.build(bias | dict(window=(4, 4)))
    large = MODELS.build(bias | dict(window=(6, 8), trained_window=4))
    large.load_state_dict(small.state_dict())
    inside = [row * 8 + column for row in range(4) for column in range(4)]
    torch.testing.assert_close(large((6, 8))[:, inside][..., inside], small((4, 4)))
