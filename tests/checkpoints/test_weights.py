"""A file fits a model completely, or is refused in one line that names a tensor, and nothing of it is loaded."""

import copy

import pytest
import torch
from checkpoints.small_models import Line, build_runner, load_part
from hypothesis import given, settings
from hypothesis import strategies as st
from mmengine.model import BaseModule
from mmengine.registry import MODELS, init_default_scope
from safetensors.torch import save_file
from torch import nn
from torch.nn.functional import interpolate

from vt.apis import get_model
from vt.checkpoints.loading import WeightsMatchHook, weights_only
from vt.checkpoints.reading import Checkpoint, load_checkpoint
from vt.checkpoints.weights import load_weights
from vt.errors import UserError
from vt.models.survey.positions.absolute import SinusoidalPosition

SGD = dict(type='SGD', lr=0.1)
LOADS = [load_weights, load_part]
NAME = 'layer.weight'


def trained(width=3):
    torch.manual_seed(width)
    return Line(width).state_dict()


def with_weight(weight, **more):
    return dict(state_dict=trained() | {NAME: weight(torch.ones(2, 3))}, **more)


def of_data(**meta):
    return dict(state_dict=trained(), meta=dict(dataset_meta=meta))


NAN, COLOURS, CLEARS = float('nan'), [[0, 0, 0], [1, 2, 255]], 'cat\x1b[2J'
HOSTILE = f'\x1b[2J\n{"x" * 10**6}'
UNUSABLE = 'a.pth has invalid weights: layer.weight is '
# What a file holds, as an object or as bytes, and why it is refused.
REFUSED = {
    'nothing': (b'', 'is damaged: it does not begin like a checkpoint'),
    'an archive of nothing': (b'PK\x03\x04' + bytes(1000), 'is damaged: it is truncated or changed'),
    'NaN': (with_weight(lambda weight: weight * NAN), f'{UNUSABLE}not finite'),
    'complex': (with_weight(lambda weight: weight.to(torch.complex64)), f'{UNUSABLE}complex'),
    'NaN of averages': (with_weight(abs, state_dict_ema={NAME: torch.tensor(NAN)}), f'{UNUSABLE}not finite'),
    'NaN of a mask': (dict(state_dict={'head.mask': torch.tensor(NAN)}), 'head.mask is not finite'),
    'no weights': (dict(state_dict={}), 'a.pth has no named tensors'),
    'a tensor of a hostile name': (trained() | {HOSTILE: torch.ones(1)}, 'it also has \\x1b[2J\\nxxx'),
    'a list as data': (dict(meta=dict(dataset_meta=['a'])), "a.pth is damaged: AttributeError: 'list' object"),
    'a text of classes': (of_data(classes='cat'), "dataset_meta.classes of {} is 'cat', not a list of class names"),
    'a set of classes': (of_data(classes={'a', 'b'}), 'dataset_meta.classes of {} is a set, which has no order'),
    'a number as class': (of_data(classes=['a', 5]), 'name 1 of dataset_meta.classes of {} must be 1 to 500 char'),
    'a class that clears': (of_data(CLASSES=[CLEARS]), 'name 0 of dataset_meta.CLASSES of {} must be 1 to 500 char'),
    'a colour too many': (of_data(classes=['a'], palette=COLOURS), ', three numbers up to 255 for each of'),
}


@pytest.mark.parametrize('kind', REFUSED)
def test_what_is_no_weights_of_a_model_is_one_line(kind, tmp_path):
    (content, words), path = REFUSED[kind], tmp_path / 'a.pth'
    path.write_bytes(content) if isinstance(content, bytes) else torch.save(content, path)
    for load in LOADS[: 1 if kind == 'a tensor of a hostile name' else 2]:
        with pytest.raises(UserError) as raised:
            load(Line(), path)
        line = str(raised.value)
        assert line.isprintable()
        assert len(line) < 500 + len(str(path))
        assert words.replace('{}', str(path)) in line


def test_what_is_so_on_purpose_is_loaded(tmp_path):
    state = dict(attn_mask=torch.full((2,), -float('inf')), counts=torch.ones(2).long(), half=torch.ones(2).half())
    torch.save(dict(state_dict=state, optimizer=dict(best=float('inf'))), tmp_path / 'a.pth')
    assert load_checkpoint(tmp_path / 'a.pth')['state_dict'].keys() == state.keys()


def test_a_model_needs_as_many_names_as_it_has_classes(tmp_path):
    config, path = 'vt-resnet18-half_digits', tmp_path / 'a.pth'
    names, state = [f'number {index}' for index in range(10)], get_model(config).state_dict()
    torch.save(dict(state_dict=state, meta=dict(dataset_meta=dict(classes=names))), path)
    assert get_model(config, path).dataset_meta['classes'] == names
    assert get_model(config, path, head=dict(num_classes=3)).dataset_meta == {}  # a new head has no names
    for classes in (names[:3], [*names, 'more']):
        torch.save(dict(state_dict=state, meta=dict(dataset_meta=dict(classes=classes))), path)
        with pytest.raises(UserError, match=rf'a\.pth has {len(classes)} class names, but the model has 10'):
            get_model(config, path)


class Part(BaseModule):
    def __init__(self, checkpoint, **init_cfg):
        super().__init__(dict(type='Pretrained', checkpoint=str(checkpoint), **init_cfg))
        self.layer, self.norm = nn.Linear(3, 2), nn.BatchNorm1d(2)

    def begin(self):
        with weights_only():
            self.init_weights()
        return self.layer.weight


def run_from(path, whole=False, **options):
    runner = build_runner(path.parent / 'out', SGD, load_from=path, **options)
    runner.register_hook(WeightsMatchHook(whole))
    runner.train()
    return runner


@pytest.mark.parametrize('write', [torch.save, save_file])
def test_every_way_of_loading_refuses_what_is_not_finite(write, tmp_path):
    path = tmp_path / ('a.pth' if write is torch.save else 'a.safetensors')
    write(trained() | {NAME: torch.full((2, 3), NAN)}, path)
    for load in (load_checkpoint, run_from, lambda path: Part(path).begin(), lambda path: load_weights(Line(), path)):
        with pytest.raises(UserError, match=f'{path.name} has invalid weights: {NAME} is not finite'):
            load(path)


@settings(max_examples=60)
@given(st.sampled_from(sorted(trained())), st.sampled_from(['missing', 'longer', 'more']), st.sampled_from(LOADS))
def test_any_other_tensor_is_named_and_nothing_is_loaded(name, damage, load):
    """Counters of batches may be missing."""
    state, model = trained(), Line()
    before, tensor = copy.deepcopy(model.state_dict()), state.pop(name)
    sides = (*tensor.shape[:-1], tensor.shape[-1] + 1) if tensor.dim() else (2,)
    damaged = dict(missing={}, longer={name: torch.ones(sides)}, more={name: tensor, f'{name}_more': tensor})
    state |= damaged[damage]
    if damage == 'missing' and 'num_batches' in name:
        load(model, state)
        assert all(torch.equal(model.state_dict()[key], tensor) for key, tensor in state.items())
        return
    size = f'{tuple(tensor.shape)}'.replace('(', r'\(').replace(')', r'\)')
    words = dict(
        missing=f'it lacks {name}; give', longer=f'has shape .*, not {size}', more=f'also has {name}_more; give'
    )
    with pytest.raises(UserError, match=words[damage]) as raised:
        load(model, state)
    assert '\n' not in str(raised.value)
    assert all(torch.equal(tensor, before[key]) for key, tensor in model.state_dict().items())


def test_a_part_may_differ_where_it_is_said():
    assert len(load_part(Line(width=5), trained(), may_differ=NAME)) == 6  # the others
    with pytest.raises(UserError, match=r'layer\.weight has shape \(2, 3\), not \(2, 5\) \(it has 7 of the 7'):
        load_part(Line(width=5), trained())


def test_a_run_stops_at_weights_of_another_model(tmp_path):
    torch.save(dict(state_dict=dict(other=torch.ones(1))), tmp_path / 'given.pth')
    with pytest.raises(UserError, match=r'given\.pth does not fit: it has none of the 7 tensors'):
        run_from(tmp_path / 'given.pth')
    with pytest.raises(UserError, match=r'given\.pth does not fit the model: of 7 tensors it lacks layer'):
        run_from(tmp_path / 'given.pth', whole=True)


@pytest.mark.parametrize('lacking', ['meta', 'message_hub', 'optimizer'])
def test_training_needs_its_state(lacking, tmp_path):
    whole = dict(meta=dict(epoch=1, iter=2), message_hub={}, optimizer={}, state_dict=trained())
    whole.pop(lacking)
    torch.save(whole, tmp_path / 'given.pth')
    with pytest.raises(UserError, match=r'given\.pth contains no training state .*: start from its weights'):
        run_from(tmp_path / 'given.pth', resume=True)


def test_a_run_begins_from_a_part_of_plain_weights(tmp_path):
    """With averaged weights too, for which mmengine asks for a ``state_dict``."""
    torch.save(trained(width=4), tmp_path / 'given.pth')
    assert run_from(tmp_path / 'given.pth', custom_hooks=[dict(type='EMAHook')]).iter == 2


@MODELS.register_module('LineOfAnotherTask', force=True)
class Wider(Line):
    """With another layer, as a head of other classes is."""

    def __init__(self):
        super().__init__(3)
        self.head = nn.Linear(2, 5)

    def forward(self, inputs, mode='tensor'):
        outputs = super().forward(inputs, mode)
        return dict(loss=outputs['loss'] + self.head.weight.sum()) if mode == 'loss' else outputs


@pytest.mark.parametrize('scope', ['mmengine', 'mmpretrain'])  # whose EMAHooks differ
def test_averages_of_another_task_are_where_training_begins(scope, tmp_path):
    init_default_scope(scope)
    averages, raw = Wider().state_dict(), {f'module.{key}': value for key, value in Wider().state_dict().items()}
    for state, head in ((averages, 'head.weight'), (raw, 'module.head.weight')):
        state[head] = torch.ones(3, 2)  # of a head of three classes
    torch.save(dict(state_dict=averages, ema_state_dict=raw | dict(steps=torch.ones(1))), tmp_path / 'given.pth')
    options = dict(custom_hooks=[dict(type='EMAHook')], model=dict(type='mmengine.LineOfAnotherTask'))
    runner = build_runner(tmp_path / 'out', SGD, load_from=tmp_path / 'given.pth', default_scope=scope, **options)
    runner.register_hook(WeightsMatchHook())
    runner.call_hook('before_run')
    runner.load_or_resume()
    (ema,) = [hook for hook in runner.hooks if type(hook).__name__ == 'EMAHook']
    for model in (runner.model, ema.ema_model.module):
        assert torch.equal(model.state_dict()[NAME], averages[NAME])
        assert model.head.weight.shape == (5, 2)
    log = next((tmp_path / 'out').glob('*/*.log')).read_text()
    assert 'left out of the file: 1 (head.*)' in log
    assert 'weights: state_dict (others: ema_state_dict)' in log


def test_pretrained_backbones(tmp_path):
    state, below, plain = trained(), tmp_path / 'below.pth', tmp_path / 'plain.pth'
    torch.save(dict(state_dict={f'backbone.{name}': value for name, value in state.items()}), below)
    torch.save({f'module.{name}': value for name, value in state.items()}, plain)
    for part in (Part(below, prefix='backbone'), Part(below), Part(plain)):
        assert torch.equal(part.begin(), state[NAME])
    with pytest.raises(UserError, match=r'below\.pth does not fit: of 7 tensors it lacks layer\.bias'):
        Part(below, prefix='head').begin()


class Positioned(nn.Module):
    """A network with fixed positions, and modules without state that a file may have tensors of."""

    def __init__(self, size=2):
        super().__init__()
        self.position = SinusoidalPosition(4, (size, size))
        self.scale, self.layer = nn.Identity(), nn.Linear(4, 2)


@pytest.mark.parametrize('load', LOADS)
@pytest.mark.parametrize('key', ['scale.weight', 'layer.lora.weight'])
def test_tensors_of_modules_without_state_are_refused(load, key):
    """As of a model that was trained with an option that the config does not set."""
    model = Positioned()
    with pytest.raises(UserError, match=rf'also has {key}'):
        load(model, model.state_dict() | {key: torch.ones(4)})


@pytest.mark.parametrize('load', LOADS)
@pytest.mark.parametrize('size', [3, 4])
def test_fixed_positions_of_a_file_are_used(load, size):
    """Resized to another grid, as in T2T-ViT's code; without them in the file the model computes its own."""
    stored, model = Positioned(3).state_dict(), Positioned(size)
    computed = model.position.vectors.clone()
    vectors = stored['position.vectors'] + 1e-3  # as others round them
    load(model, stored | {'position.vectors': vectors})
    grid = vectors.view(1, 3, 3, 4).permute(0, 3, 1, 2)
    expected = interpolate(grid, size=(size, size), mode='bicubic').permute(0, 2, 3, 1).reshape(1, -1, 4)
    torch.testing.assert_close(model.position.vectors, expected)
    again = Positioned(size)
    load(again, model.state_dict())
    assert torch.equal(again.position.vectors, model.position.vectors)
    del stored['position.vectors']
    again = Positioned(size)
    load(again, stored)
    assert torch.equal(again.position.vectors, computed)
    assert torch.equal(again.layer.weight, stored['layer.weight'])


@pytest.mark.parametrize('key', ['backbone.reg_token', 'backbone.norm_pre.weight', 'backbone.register_tokens'])
def test_tensors_at_the_input_are_no_classifier(key):
    model = nn.ModuleDict(dict(backbone=Positioned()))
    with pytest.raises(UserError, match=f'also has {key}'):
        load_part(model, model.state_dict() | {key: torch.ones(1, 4, 4)})
    load_part(model, model.state_dict() | {'backbone.head.weight': torch.ones(9, 4)})
    model.backbone.register_parameter(key.removeprefix('backbone.').replace('.', '_'), nn.Parameter(torch.ones(1, 4)))
    state = {name: tensor[:, :2] if tensor.shape == (1, 4) else tensor for name, tensor in model.state_dict().items()}
    with pytest.raises(UserError, match=r'has shape .*, not'):
        load_part(model, state, resizes=False)


def test_only_later_stages_of_a_file_are_left_out():
    model = nn.ModuleDict(dict(stages=nn.ModuleList(nn.ModuleDict(dict(block=nn.Linear(2, 2))) for _ in range(2))))
    state, more = model.state_dict(), torch.ones(2, 2)
    load_part(model, state | {'stages.1.downsample.weight': more, 'stages.2.block.weight': more})
    with pytest.raises(UserError, match=r'it also has stages\.0\.downsample\.weight'):
        load_part(model, state | {'stages.0.downsample.weight': more})


def test_versions_of_modules_are_kept():
    """Modules rename old tensors by them."""
    state = trained()
    assert Checkpoint('a.pth', dict(state_dict=state)).state()._metadata == state._metadata
