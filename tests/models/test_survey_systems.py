"""The survey's systems, as their configs build them: sizes, costs, public twins, and what every backbone can do."""

import json
from functools import cache

import pytest
import torch
from mmengine.config import Config
from mmpretrain.registry import MODELS
from tool_runner import ROOT

from vt.analysis.complexity.counting import count_complexity
from vt.models.backbones.public_names import to_own_names

SYSTEMS = json.loads((ROOT / 'vt/analysis/survey_systems.json').read_text())['systems']
TWINS = {name: system['twin'] for name, system in SYSTEMS.items() if 'twin' in system}
OWN = [name for name, system in SYSTEMS.items() if 'backbone_of' not in system]
SLOW = pytest.mark.slow
SMALL = {'swin-tiny': 56, 'twins-svt-small': 56, 'gg-tiny': 56, 'shuffle-tiny': 112}  # whole windows of 7x7


@cache
def read_config(name: str, task: str = '16xb64-300e_in1k') -> Config:
    return Config.fromfile(ROOT / f'configs/survey/{name}_{task}.py')


def build(config: dict) -> torch.nn.Module:
    model = MODELS.build(config)
    model.eval()
    return model


def small_backbone(name: str, **options) -> tuple[torch.nn.Module, int]:
    """A system's backbone for small images, two blocks a stage; and their size."""
    config = read_config(name).model.backbone.to_dict()
    size = SMALL.get(name, 64)
    stages = []
    for stage in config['stages']:
        depth = min(2, stage['depth'])
        ends = {key: [value[0], value[-1]] for key, value in stage.items() if isinstance(value, list)}
        stages.append(stage | ends | dict(depth=depth))
    return build(config | dict(stages=stages, image_size=size, drop_path_rate=0.0) | options), size


def randomise(model: torch.nn.Module) -> None:
    """Every parameter away from its start, which hides what zeros and ones multiply."""
    for parameter in model.parameters():
        parameter.data.add_(0.02 * torch.randn_like(parameter))


@pytest.mark.parametrize('name', SYSTEMS)
def test_parameters_and_flops_are_the_published_ones(name):
    system = SYSTEMS[name]
    with torch.device('meta' if name in OWN else 'cpu'):  # nothing is computed where that is possible
        model = build(read_config(name).model)
        size = system.get('image_size', 224)
        cost = count_complexity(model, torch.zeros(1, 3, size, size), mode='tensor')
    parameters, flops = system.get('code', system['published'])[:2]
    assert cost.parameters / 1e6 == pytest.approx(parameters, rel=0.01)
    assert cost.flops / 1e9 == pytest.approx(flops, rel=0.03)


@pytest.mark.parametrize('name', TWINS)
def test_a_public_checkpoint_gives_the_twins_logits(name, tmp_path):
    timm = pytest.importorskip('timm')
    torch.manual_seed(0)
    twin = timm.create_model(TWINS[name]).eval()
    randomise(twin)
    torch.save(twin.state_dict(), tmp_path / 'twin.pth')
    config = read_config(name).model.to_dict() | dict(type='ImageClassifier')
    config = {key: value for key, value in config.items() if key in ('type', 'backbone', 'head')}
    config['backbone']['init_cfg'] = dict(type='Pretrained', checkpoint=str(tmp_path / 'twin.pth'))
    model = build(config)
    model.backbone.init_weights()
    renamed = to_own_names(twin.state_dict(), model.backbone.public_names)
    head = {key.removeprefix('head.'): value for key, value in renamed.items() if key.startswith('head.')}
    model.head.load_state_dict(head)
    size = SYSTEMS[name].get('image_size', 224)
    images = torch.randn(1, 3, size, size)
    with torch.no_grad():
        expected, found = twin(images), model(images, mode='tensor')
    assert (found - expected).abs().max() < 1e-4 * expected.abs().max()


@pytest.mark.parametrize('name', OWN)
def test_gradients_reach_every_parameter_and_images_are_independent(name):
    torch.manual_seed(1)
    model, size = small_backbone(name, out_type='tokens')  # a class token does not see all of the last block
    randomise(model)
    images = torch.randn(3, 3, size, size)
    together = torch.cat([out.flatten(1) for out in flat(model(images))], dim=1)
    apart = torch.cat([out.flatten(1) for out in flat(model(images[1:2]))], dim=1)
    torch.testing.assert_close(together[1:2], apart, rtol=1e-4, atol=1e-4)
    together.square().sum().backward()
    assert [key for key, parameter in model.named_parameters() if not parameter.grad.abs().sum()] == []


def flat(outs: tuple) -> list[torch.Tensor]:
    return [each for out in outs for each in (out if isinstance(out, tuple) else (out,))]


@pytest.mark.parametrize('name', OWN)
def test_another_input_size_and_maps_of_every_stage(name):
    model, size = small_backbone(name, out_type='map', norm_outputs=True)
    model.out_indices = range(len(model.stages))
    height, width = 2 * size, size + 32
    with torch.no_grad():
        outs = model(torch.randn(1, 3, height, width))
    strides = [size // stage.size[0] for stage in model.stages]
    for out, stride in zip(outs, strides, strict=True):
        assert out.isfinite().all()
        assert abs(out.shape[2] - height / stride) <= 1
        assert abs(out.shape[3] - width / stride) <= 1


@pytest.mark.parametrize('name', [each if each == 'swin-tiny' else pytest.param(each, marks=SLOW) for each in OWN])
def test_compiled_in_one_graph_and_exported(name):
    model, size = small_backbone(name)
    images = torch.randn(2, 3, size, size)
    torch.compiler.reset()
    with torch.no_grad():
        expected = flat(model(images))
        compiled = flat(torch.compile(model, fullgraph=True, backend='eager')(images))
        exported = flat(torch.export.export(model, (images,)).module()(images))
    for own, *others in zip(expected, compiled, exported, strict=True):
        for other in others:
            torch.testing.assert_close(own, other)
