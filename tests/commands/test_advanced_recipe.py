"""The paper's advanced recipe (section 5.2) from the command line, on the embedded digits, with a small teacher."""

import re

import pytest
import torch
from mmengine.config import Config
from mmpretrain.registry import MODELS
from tool_runner import ROOT, SMALL_CLASSIFIER, call, succeed

CONFIG = ROOT / 'configs/vt_resnet/vt-resnet18-advanced_digits.py'
FEW = ['train_cfg.max_epochs=1', *SMALL_CLASSIFIER, 'default_hooks.logger.interval=1']
FEW += [
    f'model.teacher.{key}' for key in ('backbone.base_channels=8', 'backbone.stem_channels=8', 'head.in_channels=64')
]


def test_both_losses_are_shown_and_a_checkpoint_holds_a_plain_classifier_and_its_average(tmp_path):
    cfg = Config.fromfile(CONFIG)
    cfg.model.teacher.backbone.update(base_channels=8, stem_channels=8)
    cfg.model.teacher.head.in_channels = 64
    torch.save(dict(state_dict=MODELS.build(cfg.model.teacher).state_dict()), tmp_path / 'teacher.pth')
    options = [*FEW, f'model.teacher_checkpoint={tmp_path / "teacher.pth"}']
    output = succeed(call('train.py', CONFIG, '--work-dir', 'out', cwd=tmp_path, options=options)).stdout
    assert output.count('SyncBN is replaced by BN, because there is one process') == 1
    lines = [line for line in output.splitlines() if 'Epoch(train)' in line]
    assert len(lines) == 2
    for line in lines:
        losses = {name: float(value) for name, value in re.findall(r'(loss\w*): (\S+)', line)}
        assert losses['loss_cls'] > 0 < losses['loss_distillation']
        assert losses['loss'] == pytest.approx(losses['loss_cls'] + losses['loss_distillation'], abs=2e-4)

    checkpoint = torch.load(tmp_path / 'out/epoch_1.pth', weights_only=False)
    cfg = Config.fromfile(ROOT / 'configs/vt_resnet/vt-resnet18_digits.py')
    cfg.model.backbone.update(num_tokens=4, token_channels=64)
    cfg.model.head.in_channels = 64
    plain = MODELS.build(cfg.model)
    plain.load_state_dict(checkpoint['state_dict'])
    average = checkpoint['ema_state_dict']
    assert set(average) == {'steps'} | {f'module.{name}' for name in plain.state_dict()}
    assert average['steps'] == 2
    # Validation and tests take the average; the weights that training goes on from have moved further.
    assert not torch.equal(average['module.head.fc.weight'], checkpoint['state_dict']['head.fc.weight'])
    assert len(checkpoint['optimizer']['state']) == len(list(plain.parameters()))
    options = [*FEW, 'model.teacher.type=TimmClassifier']  # a test builds no teacher
    result = succeed(call('test.py', CONFIG, 'out/epoch_1.pth', cwd=tmp_path, options=options))
    assert 'accuracy/top1' in result.stdout
