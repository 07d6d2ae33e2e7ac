"""Weights that no model can use, a checkpoint without a name, and averages of another task."""

import copy

import pytest
import torch
from checkpoints.small_models import Line, build_runner
from mmengine.model import BaseModule
from mmengine.registry import MODELS, init_default_scope
from safetensors.torch import save_file
from torch import nn

from vt.apis import get_model
from vt.checkpoints.loading import WeightsMatchHook, weights_only
from vt.checkpoints.reading import load_checkpoint
from vt.checkpoints.weights import load_weights
from vt.errors import UserError

SGD = dict(type='SGD', lr=0.1)
NAME = 'layer.weight'
SPOILED = dict(
    NaN=(lambda weight: weight.fill_(float('nan')), 'not finite'),
    infinite=(lambda weight: weight.fill_(-float('inf')), 'not finite'),
    complex=(lambda weight: weight.to(torch.complex64), 'complex'),
)


def by_init_cfg(path):
    part = BaseModule(dict(type='Pretrained', checkpoint=str(path)))
    part.layer = nn.Linear(3, 2)
    with weights_only():
        part.init_weights()


def by_a_run(path):
    runner = build_runner(path.parent, SGD, load_from=path)
    runner.register_hook(WeightsMatchHook())
    runner.train()


WAYS = [load_checkpoint, lambda path: load_weights(Line(), path), by_init_cfg, by_a_run]


@pytest.mark.parametrize('kind', SPOILED)
def test_every_way_of_loading_names_them(kind, tmp_path):
    state = Line().state_dict()
    spoil, words = SPOILED[kind]
    state[NAME] = spoil(state[NAME].clone())
    for path, write in ((tmp_path / 'a.pth', torch.save), (tmp_path / 'a.safetensors', save_file)):
        write(state, path)
        for load in WAYS if kind == 'NaN' else WAYS[:1]:
            with pytest.raises(UserError, match=f'{path.name} has weights that cannot be used: {NAME} is {words}'):
                load(path)


@pytest.mark.parametrize('key', ['state_dict', 'model', 'state_dict_ema', 'ema_state_dict'])
def test_every_set_of_weights_is_looked_at(key, tmp_path):
    torch.save({'state_dict': Line().state_dict(), key: {NAME: torch.tensor([1.0, float('nan')])}}, tmp_path / 'a.pth')
    with pytest.raises(UserError, match='is not finite'):
        load_checkpoint(tmp_path / 'a.pth')


def test_what_is_so_on_purpose_is_loaded(tmp_path):
    state = dict(attn_mask=torch.full((2,), -float('inf')), counts=torch.ones(2).long(), half=torch.ones(2).half())
    torch.save(dict(state_dict=state, optimizer=dict(best=float('inf'))), tmp_path / 'a.pth')
    assert load_checkpoint(tmp_path / 'a.pth')['state_dict'].keys() == state.keys()
    torch.save(dict(state_dict={'head.mask_norm.weight': torch.tensor(float('nan'))}), tmp_path / 'a.pth')
    with pytest.raises(UserError, match=r'head\.mask_norm\.weight is not finite'):
        load_checkpoint(tmp_path / 'a.pth')


def test_a_checkpoint_without_a_name():
    with pytest.raises(UserError, match=r'there is no checkpoint \.: train the model first'):
        by_init_cfg('')
    with pytest.raises(UserError, match='the name of the checkpoint is empty'):
        get_model('vt-resnet18-half_digits', '')


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
    hooks = [dict(type='EMAHook')]
    options = dict(custom_hooks=hooks, model=dict(type='mmengine.LineOfAnotherTask'), default_scope=scope)
    runner = build_runner(tmp_path / 'out', SGD, load_from=tmp_path / 'given.pth', **copy.deepcopy(options))
    runner.register_hook(WeightsMatchHook())
    runner.call_hook('before_run')
    runner.load_or_resume()
    (ema,) = [hook for hook in runner.hooks if type(hook).__name__ == 'EMAHook']
    for model in (runner.model, ema.ema_model.module):
        assert torch.equal(model.state_dict()['layer.weight'], averages['layer.weight'])
        assert model.head.weight.shape == (5, 2)
    log = next((tmp_path / 'out').glob('*/*.log')).read_text()
    assert 'left out of the file: 1 (head.*)' in log
    assert 'weights: state_dict (others: ema_state_dict)' in log
