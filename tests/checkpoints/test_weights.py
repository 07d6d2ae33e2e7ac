"""Weights that are not the model's are an error, wherever mmengine would only warn."""

import pytest
import torch
from checkpoints.small_models import Line, build_runner, load_part
from mmengine.model import BaseModule
from mmengine.runner import Runner
from torch import nn
from torch.nn.functional import interpolate

from vt.checkpoints.loading import WeightsMatchHook, weights_only
from vt.checkpoints.reading import Checkpoint
from vt.checkpoints.weights import load_weights
from vt.errors import UserError
from vt.models.survey.positions.absolute import AbsolutePosition, SinusoidalPosition

SGD = dict(type='SGD', lr=0.1)


def trained(width=3):
    torch.manual_seed(width)
    return Line(width)


def test_counters_of_batches_may_be_missing():
    expected, model = trained().state_dict(), Line()
    load_weights(model, {name: value for name, value in expected.items() if 'num_batches' not in name})
    assert all(torch.equal(value, expected[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        (lambda state: state.pop('layer.weight'), 'of 7 tensors it lacks layer.weight; give the config'),
        (lambda state: state.update(other=torch.ones(1)), 'of 7 tensors it also has other; give'),
        (
            lambda state: state.update({'layer.weight': torch.ones(2, 4), 'norm.bias': torch.ones(1)}),
            r'layer.weight is \(2, 4\), the model needs \(2, 3\) and 1 more \(it has 7',
        ),
        (lambda state: state.clear(), 'a.pth has no weights by name'),
    ],
)
def test_what_differs_is_named(change, message, tmp_path):
    state = trained().state_dict()
    change(state)
    torch.save(dict(state_dict=state), tmp_path / 'a.pth')
    with pytest.raises(ValueError, match=message) as raised:
        load_weights(Line(), tmp_path / 'a.pth')
    assert '\n' not in str(raised.value)


@pytest.mark.parametrize(
    'held', [dict(state_dict=5), dict(weights=dict(a=torch.ones(1))), dict(state_dict={1: 2}), [1]]
)
def test_a_checkpoint_without_weights(held, tmp_path):
    torch.save(held, tmp_path / 'a.pth')
    with pytest.raises(ValueError, match=r'a\.pth (has no weights by name|is damaged: it contains a list)'):
        load_weights(Line(), tmp_path / 'a.pth')


def test_names_of_tensors_are_printed_as_text(tmp_path):
    hostile = f'\x1b[2J\n{"x" * 10**6}'
    states = trained().state_dict() | {hostile: torch.ones(1)}, {hostile: torch.ones(1)}
    for load, wrong in ((load_weights, states), (load_part, states[1:])):
        for state in wrong:
            torch.save(state, tmp_path / 'a.pth')
            with pytest.raises(ValueError, match=r'.') as raised:
                load(Line(), tmp_path / 'a.pth')
            assert str(raised.value).isprintable()
            assert len(str(raised.value)) < 500 + len(str(tmp_path))


def test_versions_of_modules_are_kept():
    """Modules rename old tensors by them."""
    state = trained().state_dict()
    assert Checkpoint('a.pth', dict(state_dict=state)).state()._metadata == state._metadata


def test_a_part_is_loaded_whole():
    state = trained().state_dict()
    with pytest.raises(ValueError, match=r'layer\.weight is \(2, 3\), the model needs \(2, 5\) \(it has 7 of the 7'):
        load_part(Line(width=5), state)
    assert len(load_part(Line(width=5), state, may_differ='layer.weight')) == 6  # the others
    lacking = {name: value for name, value in state.items() if name != 'layer.bias'}
    with pytest.raises(ValueError, match=r'checkpoint does not fit: of 7 tensors it lacks layer\.bias; give'):
        load_part(Line(), lacking)
    with pytest.raises(ValueError, match=r'of 7 tensors it also has layer\.more; give a file'):
        load_part(Line(), state | {'layer.more': torch.ones(1)})
    with pytest.raises(ValueError, match=r'does not fit: of 7 tensors it lacks layer\.bias and 1 more; give a file'):
        load_part(Line(), dict(other=torch.ones(1)))


def run_with_hook(folder, checkpoint, whole=False, **options):
    torch.save(checkpoint, folder / 'given.pth')
    runner = build_runner(folder / 'out', SGD, load_from=folder / 'given.pth', **options)
    runner.register_hook(WeightsMatchHook(whole))
    runner.train()
    return runner


def test_a_run_stops_at_weights_of_another_model(tmp_path):
    other = dict(other=torch.ones(1))
    with pytest.raises(ValueError, match=r'given\.pth does not fit: it has none of the 7 tensors'):
        run_with_hook(tmp_path, dict(state_dict=other))
    with pytest.raises(ValueError, match=r"given\.pth is not the model's: of 7 tensors it lacks layer"):
        run_with_hook(tmp_path, dict(state_dict=other), whole=True)


@pytest.mark.parametrize('lacking', ['meta', 'message_hub', 'optimizer'])
def test_training_needs_its_state(lacking, tmp_path):
    whole = dict(meta=dict(epoch=1, iter=2), message_hub={}, optimizer={}, state_dict=trained().state_dict())
    whole.pop(lacking)
    with pytest.raises(ValueError, match=r'given\.pth has no state of a training run: start from its weights'):
        run_with_hook(tmp_path, whole, resume=True)


def test_a_run_begins_from_a_part_of_plain_weights(tmp_path):
    """With averaged weights too, for which mmengine asks for a ``state_dict``."""
    state = trained(width=4).state_dict()
    options = dict(custom_hooks=[dict(type='EMAHook')])
    runner = run_with_hook(tmp_path, state, **options)
    assert isinstance(runner, Runner)
    assert runner.iter == 2


class Backbone(BaseModule):
    def __init__(self, **init_cfg):
        super().__init__(dict(type='Pretrained', **init_cfg))
        self.layer = nn.Linear(3, 2)
        self.norm = nn.BatchNorm1d(2)


def test_pretrained_backbones(tmp_path):
    state = trained().state_dict()
    torch.save(dict(state_dict={f'backbone.{name}': value for name, value in state.items()}), tmp_path / 'below.pth')
    torch.save({f'module.{name}': value for name, value in state.items()}, tmp_path / 'plain.pth')
    for options in (
        dict(checkpoint=tmp_path / 'below.pth', prefix='backbone'),
        dict(checkpoint=tmp_path / 'below.pth'),
        dict(checkpoint=tmp_path / 'plain.pth'),
    ):
        backbone = Backbone(**options | dict(checkpoint=str(options['checkpoint'])))
        with weights_only():
            backbone.init_weights()
        assert torch.equal(backbone.layer.weight, state['layer.weight'])
    with weights_only(), pytest.raises(ValueError, match=r'below\.pth does not fit: of 7 tensors it lacks layer\.bias'):
        Backbone(checkpoint=str(tmp_path / 'below.pth'), prefix='head').init_weights()


class Positioned(nn.Module):
    """A network with positions, and modules without state that a file may have tensors of."""

    def __init__(self, fixed, size=2):
        super().__init__()
        make = SinusoidalPosition if fixed else AbsolutePosition
        self.position, self.scale, self.layer = make(4, (size, size)), nn.Identity(), nn.Linear(4, 2)


@pytest.mark.parametrize('load', [load_weights, load_part])
def test_tensors_of_modules_without_state_are_refused(load, tmp_path):
    """As of a model that was trained with an option that the config does not set."""
    fixed = Positioned(fixed=True)
    with pytest.raises(UserError, match=r'also has scale\.weight'):
        load(fixed, fixed.state_dict() | {'scale.weight': torch.ones(4)})
    with pytest.raises(UserError, match=r'also has layer\.lora\.weight'):
        load(fixed, fixed.state_dict() | {'layer.lora.weight': torch.ones(4)})


@pytest.mark.parametrize('load', [load_weights, load_part])
@pytest.mark.parametrize('size', [3, 4])
def test_fixed_positions_of_a_file_are_used(load, size):
    """Resized to another grid, as in T2T-ViT's code; without them in the file the model computes its own."""
    stored, model = Positioned(fixed=True, size=3).state_dict(), Positioned(fixed=True, size=size)
    computed = model.position.vectors.clone()
    vectors = stored['position.vectors'] + 1e-3  # as others round them
    load(model, stored | {'position.vectors': vectors})
    grid = vectors.view(1, 3, 3, 4).permute(0, 3, 1, 2)
    expected = interpolate(grid, size=(size, size), mode='bicubic').permute(0, 2, 3, 1).reshape(1, -1, 4)
    torch.testing.assert_close(model.position.vectors, expected)
    again = Positioned(fixed=True, size=size)
    load(again, model.state_dict())
    assert torch.equal(again.position.vectors, model.position.vectors)
    del stored['position.vectors']
    again = Positioned(fixed=True, size=size)
    load(again, stored)
    assert torch.equal(again.position.vectors, computed)
    assert torch.equal(again.layer.weight, stored['layer.weight'])


@pytest.mark.parametrize('key', ['backbone.reg_token', 'backbone.norm_pre.weight', 'backbone.register_tokens'])
def test_tensors_at_the_input_are_no_classifier(key, tmp_path):
    model = nn.ModuleDict(dict(backbone=Positioned(fixed=True)))
    with pytest.raises(UserError, match=f'also has {key}'):
        load_part(model, model.state_dict() | {key: torch.ones(1, 4, 4)})
    load_part(model, model.state_dict() | {'backbone.head.weight': torch.ones(9, 4)})
    model.backbone.register_parameter(key.removeprefix('backbone.').replace('.', '_'), nn.Parameter(torch.ones(1, 4)))
    state = {name: tensor[:, :2] if tensor.shape == (1, 4) else tensor for name, tensor in model.state_dict().items()}
    with pytest.raises(UserError, match='the model needs'):
        load_part(model, state, resizes=False)


def test_only_later_stages_of_a_file_are_left_out():
    model = nn.ModuleDict(dict(stages=nn.ModuleList(nn.ModuleDict(dict(block=nn.Linear(2, 2))) for _ in range(2))))
    state, more = model.state_dict(), torch.ones(2, 2)
    load_part(model, state | {'stages.1.downsample.weight': more, 'stages.2.block.weight': more})
    with pytest.raises(UserError, match=r'it also has stages\.0\.downsample\.weight'):
        load_part(model, state | {'stages.0.downsample.weight': more})
