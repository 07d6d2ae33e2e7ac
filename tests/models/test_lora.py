"""Adapters against their equation, W + (alpha / r) B A, in float64, and what of a model they leave as it is."""

import copy

import pytest
import torch
from mmpretrain.models.peft.lora import LoRALinear

from vt.engine.config_files import ROOT, read_config
from vt.errors import UserError
from vt.models.grouped_linear import GroupedLinear
from vt.registry import MODELS

TOKEN_SIDE = '.*(tokenizer|relation|projector).*'


def backbone(name, **options):
    (path,) = (ROOT / 'configs').rglob(f'{name}.py')
    return read_config(str(path), options).model.backbone


def small_deit():
    sizes = {f'model.backbone.stages.0.{key}': value for key, value in dict(channels=24, depth=2, num_heads=2).items()}
    return backbone('deit-small_digits', **sizes)


def small_swin():
    sizes = {}
    for index, channels in enumerate((8, 16, 16, 32)):
        sizes |= {
            f'model.backbone.stages.{index}.{key}': value for key, value in dict(channels=channels, num_heads=2).items()
        }
    sizes |= {'model.backbone.stages.2.depth': 2}
    return backbone('swin-tiny_digits', **sizes)


def small_vt(groups=1):
    options = dict(num_tokens=3, token_channels=16, base_channels=8, stem_channels=8, token_groups=groups)
    options = {f'model.backbone.{key}': value for key, value in options.items() if key != 'token_groups'}
    return backbone('vt-resnet18-half_digits', **options)


CASES = {
    'deit': (small_deit, ['qkv', 'proj', 'fc1', 'fc2'], 64),
    'swin': (small_swin, ['qkv', 'proj', 'fc1', 'fc2'], 56),
    'vt': (small_vt, [TOKEN_SIDE], 32),
}


@pytest.mark.parametrize('name', CASES)
def test_layers_are_counted_as_without_adapters(name):
    """For the decay of learning rates by layers: an adapter has the rate of its matrix."""
    adapted, plain, _ = build(name)
    expected = {key: plain.get_layer_depth(f'backbone.{key}', 'backbone.') for key, _ in plain.named_parameters()}
    found = {}
    for key, _ in adapted.named_parameters():
        own = key.removeprefix('module.').replace('.original_layer', '')
        own = own.replace('.lora_down.weight', '.weight').replace('.lora_up.weight', '.weight')
        if '.parametrizations.' in own:
            owner, _, rest = own.partition('.parametrizations.')
            own = f'{owner}.{rest.split(".")[0]}'
        found.setdefault(own, set()).add(adapted.get_layer_depth(f'backbone.{key}', 'backbone.'))
    assert found == {key: {depth} for key, depth in expected.items()}
    assert len(set(expected.values())) > 2


@pytest.mark.parametrize(
    ('targets', 'options', 'message'),
    [
        ([dict(type='*.qkv')], {}, 'is no regular expression: nothing to repeat'),
        ([dict(type='qkv', rnk=4)], {}, 'needs a type, and may have rank, alpha and drop_rate'),
        ([dict()], {}, 'needs a type, and may have rank, alpha and drop_rate'),
        ([dict(type='qkv')], dict(rank=2.5), 'rank 2.5: give a rank of at least 1'),
        ([dict(type='qkv')], dict(alpha=0), 'alpha=0 must be above 0'),
    ],
)
def test_arguments_that_are_none_of_its_own(targets, options, message):
    with pytest.raises(UserError, match=message):
        MODELS.build(dict(type='vt.LoRAModel', module=small_deit(), targets=targets, **options))


def build(name, rank=3, alpha=5.0):
    make, targets, size = CASES[name]
    torch.manual_seed(0)
    model = MODELS.build(
        dict(type='vt.LoRAModel', module=make(), targets=[dict(type=each) for each in targets], rank=rank, alpha=alpha)
    )
    model.init_weights()
    plain = MODELS.build(make())
    return model, plain, torch.rand(2, 3, size, size, dtype=torch.float64)


def total(outputs):
    """A number that depends on every output."""
    parts = [outputs]
    while not all(isinstance(part, torch.Tensor) for part in parts):
        parts = [each for part in parts for each in ([part] if isinstance(part, torch.Tensor) else part)]
    return sum((part * torch.linspace(-1, 1, part.numel(), dtype=part.dtype).view(part.shape)).sum() for part in parts)


@pytest.mark.parametrize('name', CASES)
def test_adapters_are_the_equation(name):
    """Output and gradients are those of the plain model with W + (alpha / r) B A in the places of its matrices."""
    model, plain, x = build(name)
    model, plain = model.double().eval(), plain.double().eval()
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if 'lora_' in key:
                parameter.normal_(std=0.2)
    adapted, state = {}, {}
    for key, part in model.module.named_modules():
        if isinstance(part, LoRALinear):
            adapted[key] = part.lora_up.weight, part.lora_down.weight
            state[f'{key}.weight'] = part.original_layer.weight + 5 / 3 * part.lora_up.weight @ part.lora_down.weight
            if part.original_layer.bias is not None:
                state[f'{key}.bias'] = part.original_layer.bias
        elif isinstance(part, GroupedLinear) and hasattr(part, 'parametrizations'):
            lora, original = part.parametrizations.weight[0], part.parametrizations.weight.original
            adapted[key] = lora.lora_down, lora.lora_up
            state[f'{key}.weight'] = torch.stack(
                [w + 5 / 3 * a @ b for w, a, b in zip(original, lora.lora_down, lora.lora_up)]
            )
    own = {key: value for key, value in model.module.state_dict().items() if key in plain.state_dict()}
    plain.load_state_dict({key: value.detach() for key, value in (own | state).items()})
    assert len(adapted) >= 8
    first, second = total(model(x)), total(plain(x))
    assert abs(first - second) < 1e-9 * abs(second)
    first.backward()
    second.backward()
    for key, (left, right) in adapted.items():  # W' = W + 5/3 left right
        gradient = plain.get_submodule(key).weight.grad
        torch.testing.assert_close(left.grad, 5 / 3 * gradient @ right.mT, rtol=1e-8, atol=1e-10)
        torch.testing.assert_close(right.grad, 5 / 3 * left.mT @ gradient, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize('name', CASES)
def test_only_adapters_move_and_the_start_is_the_frozen_part(name):
    model, _, x = build(name)
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
    plain = MODELS.build(small_deit())
    plain.init_weights()
    torch.save(
        dict(state_dict={f'backbone.{key}': value for key, value in plain.state_dict().items()}), tmp_path / 'a.pth'
    )
    init_cfg = dict(type='Pretrained', checkpoint=str(tmp_path / 'a.pth'), prefix='backbone.')
    settings = dict(type='vt.LoRAModel', module=small_deit() | dict(init_cfg=init_cfg), targets=[dict(type='qkv')])
    model = MODELS.build(settings)
    model.init_weights()
    x = torch.rand(1, 3, 64, 64)
    assert torch.equal(total(model.eval()(x)), total(plain.eval()(x)))
    (tmp_path / 'a.pth').unlink()
    other = MODELS.build(settings)
    other.load_state_dict(model.state_dict())
    assert torch.equal(total(other.eval()(x)), total(plain(x)))


@pytest.mark.parametrize(
    ('settings', 'message'),
    [
        (
            dict(targets=[dict(type='qkv'), dict(type='query')]),
            "target 'query', rank 8: give .* some of fc1, fc2, proj$",
        ),
        (dict(targets=[]), 'give a rank of at least 1 and some of'),
        (dict(targets=[dict(type='qkv')], rank=0), 'rank 0: give a rank of at least 1'),
    ],
)
def test_an_adapter_without_effect_is_refused(settings, message):
    with pytest.raises(UserError, match=message):
        MODELS.build(dict(type='vt.LoRAModel', module=small_deit(), **settings))


def test_token_side_matrices_have_no_dropout():
    settings = dict(targets=[dict(type=TOKEN_SIDE)], drop_rate=0.1)
    with pytest.raises(UserError, match=r'drop_rate=0.1 has no effect on layer4.*, a token-side matrix'):
        MODELS.build(dict(type='vt.LoRAModel', module=small_vt(), **settings))
