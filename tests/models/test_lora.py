"""Adapters against their equation, W + (alpha / r) B A, in float64, and what of a model they leave as it is."""

import copy

import pytest
import torch
from mmpretrain.models.peft.lora import LoRALinear
from survey_backbones import small_config

from vt.errors import UserError
from vt.registry import MODELS

TARGETS = tuple(dict(type=name) for name in ('qkv', 'proj', '.*fc[12]'))


@pytest.fixture(params=['swin-tiny', 'vit-early-conv'])  # the last one has batch normalisations
def case(request):
    torch.manual_seed(0)
    config = small_config(request.param)
    model = MODELS.build(dict(type='vt.LoRAModel', module=config, targets=TARGETS, rank=3, alpha=5.0))
    model.init_weights()
    size = config['image_size']
    return model, MODELS.build(config), torch.rand(2, 3, size, size, dtype=torch.float64)


def without_adapter(name):
    name = name.removeprefix('module.').replace('.original_layer', '')
    return name.replace('.lora_down.weight', '.weight').replace('.lora_up.weight', '.weight')


def total(outputs):
    """A number that depends on every output."""
    parts = [outputs]
    while not all(isinstance(part, torch.Tensor) for part in parts):
        parts = [each for part in parts for each in ([part] if isinstance(part, torch.Tensor) else part)]
    return sum((part * torch.linspace(-1, 1, part.numel(), dtype=part.dtype).view(part.shape)).sum() for part in parts)


def test_layers_are_counted_as_without_adapters(case):
    """For the decay of learning rates by layers: an adapter has the rate of its matrix."""
    adapted, plain, _ = case
    expected = {key: plain.get_layer_depth(f'backbone.{key}', 'backbone.') for key, _ in plain.named_parameters()}
    found = {}
    for key, _ in adapted.named_parameters():
        found.setdefault(without_adapter(key), set()).add(adapted.get_layer_depth(f'backbone.{key}', 'backbone.'))
    assert found == {key: {depth} for key, depth in expected.items()}
    assert len(set(expected.values())) > 2


def test_adapters_are_the_equation(case):
    """Output and gradients are those of the plain model with W + (alpha / r) B A in the places of its matrices."""
    model, plain, x = case
    model, plain = model.double().eval(), plain.double().eval()
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if 'lora_' in key:
                parameter.normal_(std=0.2)
    state = {without_adapter(key): value for key, value in model.state_dict().items() if 'lora_' not in key}
    adapted = {key: part for key, part in model.module.named_modules() if isinstance(part, LoRALinear)}
    for key, part in adapted.items():
        state[f'{key}.weight'] = part.original_layer.weight + 5 / 3 * part.lora_up.weight @ part.lora_down.weight
    plain.load_state_dict({key: value.detach() for key, value in state.items()})
    assert len(adapted) >= 8
    first, second = total(model(x)), total(plain(x))
    assert abs(first - second) < 1e-9 * abs(second)
    first.backward()
    second.backward()
    for key, part in adapted.items():
        gradient, up, down = plain.get_submodule(key).weight.grad, part.lora_up.weight, part.lora_down.weight
        torch.testing.assert_close(up.grad, 5 / 3 * gradient @ down.T, rtol=1e-8, atol=1e-10)
        torch.testing.assert_close(down.grad, 5 / 3 * up.T @ gradient, rtol=1e-8, atol=1e-10)


def test_only_adapters_move_and_the_start_is_the_frozen_part(case):
    model, _, x = case
    model.eval()
    before, x = copy.deepcopy(model.state_dict()), x.float()
    start = total(model(x))
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if 'lora_down' in key:
                parameter.add_(1.0)  # B is zero
    assert torch.equal(total(model(x)), start)
    model.load_state_dict(before)
    optimizer = torch.optim.SGD([each for each in model.parameters() if each.requires_grad], 0.1)
    total(model.train()(x)).backward()
    optimizer.step()
    moved = {key for key, value in model.state_dict().items() if not torch.equal(value, before[key])}
    assert moved
    assert all('lora_up' in key for key in moved)  # B first: the gradient of A is zero with it
    average = copy.deepcopy(model).eval()  # as EMAHook makes it
    assert torch.equal(total(average(x)), total(model.eval()(x)))


def test_the_frozen_weights_are_loaded_from_a_plain_file_and_are_in_the_checkpoint(tmp_path):
    torch.manual_seed(1)
    plain = MODELS.build(small_config('deit-small'))
    plain.init_weights()
    torch.save({f'backbone.{key}': value for key, value in plain.state_dict().items()}, tmp_path / 'a.pth')
    init_cfg = dict(type='Pretrained', checkpoint=str(tmp_path / 'a.pth'), prefix='backbone.')
    module = small_config('deit-small', init_cfg=init_cfg)
    settings = dict(type='vt.LoRAModel', module=module, targets=[dict(type='qkv')])
    model = MODELS.build(settings)
    model.init_weights()
    x = torch.rand(1, 3, 64, 64)
    assert torch.equal(total(model.eval()(x)), total(plain.eval()(x)))
    (tmp_path / 'a.pth').unlink()
    other = MODELS.build(settings)
    other.load_state_dict(model.state_dict())
    assert torch.equal(total(other.eval()(x)), total(plain(x)))


def test_adapters_of_a_frozen_backbone_are_trained():
    frozen = dict(type='vt.FrozenBackbone', backbone=small_config('deit-small'))
    model = MODELS.build(dict(type='vt.LoRAModel', module=frozen, targets=[dict(type='qkv')])).train()
    assert all(each.requires_grad == ('.lora_' in key) for key, each in model.named_parameters())
    with pytest.raises(NotImplementedError, match='FrozenBackbone does not count its layers'):
        model.get_layer_depth('backbone.module', 'backbone.')


def test_a_target_without_effect_is_refused():
    targets = [dict(type='qkv'), dict(type='query')]
    with pytest.raises(UserError, match=r"no linear layer matches target 'query': use some of fc1, fc2, proj$"):
        MODELS.build(dict(type='vt.LoRAModel', module=small_config('deit-small'), targets=targets))
