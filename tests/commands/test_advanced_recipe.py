"""The paper's advanced recipe (section 5.2) from the command line, on the embedded digits, with a small teacher."""

import re

import pytest
import torch
from mmengine.config import Config
from mmengine.optim import OptimWrapper
from mmengine.registry import PARAM_SCHEDULERS
from mmpretrain.registry import MODELS
from tool_runner import ROOT, SMALL_CLASSIFIER, call, succeed

CONFIG = ROOT / 'configs/vt_resnet/vt-resnet18-advanced_digits.py'
FEW = [
    'train_cfg.max_epochs=1',
    *SMALL_CLASSIFIER,
    'model.teacher.backbone.base_channels=8',
    'model.teacher.backbone.stem_channels=8',
    'model.teacher.head.in_channels=64',
    'default_hooks.logger.interval=1',
]


@pytest.fixture(scope='module')
def trained(tmp_path_factory):
    """The log of a finished run of one epoch with a small teacher, and its checkpoint."""
    cfg = Config.fromfile(CONFIG)
    cfg.model.teacher.backbone.update(base_channels=8, stem_channels=8)
    cfg.model.teacher.head.in_channels = 64
    folder = tmp_path_factory.mktemp('a run')
    torch.save(dict(state_dict=MODELS.build(cfg.model.teacher).state_dict()), folder / 'teacher.pth')
    options = [*FEW, f'model.teacher_checkpoint={folder / "teacher.pth"}']
    result = succeed(call('train.py', CONFIG, '--work-dir', 'out', cwd=folder, options=options))
    return result.stdout, folder / 'out/epoch_1.pth'


def test_the_log_shows_both_losses_and_that_sync_bn_is_bn(trained):
    output, _ = trained
    assert output.count('SyncBN is replaced by BN, because there is one process') == 1
    lines = [line for line in output.splitlines() if 'Epoch(train)' in line]
    assert len(lines) == 2
    for line in lines:
        losses = {name: float(value) for name, value in re.findall(r'(loss\w*): (\S+)', line)}
        assert losses['loss_cls'] > 0 < losses['loss_distillation']
        assert losses['loss'] == pytest.approx(losses['loss_cls'] + losses['loss_distillation'], abs=2e-4)


def test_a_checkpoint_holds_a_plain_classifier_and_its_average(trained, tmp_path):
    checkpoint = torch.load(trained[1], weights_only=False)
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
    assert 'accuracy/top1' in succeed(call('test.py', CONFIG, trained[1], cwd=tmp_path, options=options)).stdout


def test_the_learning_rate_is_the_papers():
    """0.01 up to 0.16 in five epochs, by iteration; then 0.9875 times it from epoch to epoch."""
    cfg = Config.fromfile(ROOT / 'configs/vt_resnet/vt-resnet18_8xb256-400e-distill_in1k.py')
    epoch_length = 7
    rate = cfg.optim_wrapper.optimizer.lr
    optimizer = OptimWrapper(torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=rate))
    arguments = dict(optimizer=optimizer, epoch_length=epoch_length, end=cfg.train_cfg.max_epochs)
    warm_up, decay = (
        PARAM_SCHEDULERS.build(dict(scheduler), default_args=arguments) for scheduler in cfg.param_scheduler
    )
    rates = []
    for _ in range(cfg.train_cfg.max_epochs):
        for _ in range(epoch_length):
            rates.append(optimizer.get_lr()['lr'][0])
            warm_up.step()
        decay.step()
    expected = [0.01 + 0.15 * step / (5 * epoch_length - 1) for step in range(5 * epoch_length)]
    expected += [0.16 * 0.9875**epoch for epoch in range(cfg.train_cfg.max_epochs - 5) for _ in range(epoch_length)]
    assert rates == pytest.approx(expected)
