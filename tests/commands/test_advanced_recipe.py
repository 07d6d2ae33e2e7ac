"""The paper's advanced recipe (section 5.2) from the command line, on the embedded digits, with a small teacher."""

import pytest
import torch
from forked_tools import run_forked as run
from mmengine.config import Config
from mmengine.optim import OptimWrapper
from mmengine.registry import PARAM_SCHEDULERS
from mmpretrain.registry import MODELS
from tool_runner import ROOT, SMALL_CLASSIFIER

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
def options(tmp_path_factory):
    """Settings that shrink the run, with a teacher whose weights are a file."""
    cfg = Config.fromfile(CONFIG)
    cfg.model.teacher.backbone.update(base_channels=8, stem_channels=8)
    cfg.model.teacher.head.in_channels = 64
    path = tmp_path_factory.mktemp('a teacher') / 'teacher.pth'
    torch.save(dict(state_dict=MODELS.build(cfg.model.teacher).state_dict()), path)
    return [*FEW, f'model.teacher_checkpoint={path}']


@pytest.fixture(scope='module')
def trained(options, tmp_path_factory):
    """A finished run of one epoch: its output and its checkpoint."""
    folder = tmp_path_factory.mktemp('run')
    result = run('train.py', CONFIG, '--work-dir', 'out', cwd=folder, options=options)
    assert result.returncode == 0, result.stderr
    return result.stdout, folder / 'out/epoch_1.pth'


def test_the_log_shows_both_losses_and_that_sync_bn_is_bn(trained):
    output, _ = trained
    assert output.count('SyncBN is replaced by BN, because there is one process') == 1
    steps = [line.split() for line in output.splitlines() if 'Epoch(train)' in line]
    assert len(steps) == 2
    for words in steps:
        loss, loss_cls, loss_distillation = (
            float(words[words.index(f'{name}:') + 1]) for name in ('loss', 'loss_cls', 'loss_distillation')
        )
        assert loss_cls > 0
        assert loss_distillation > 0
        assert loss == pytest.approx(loss_cls + loss_distillation, abs=2e-4)


def test_a_checkpoint_holds_a_plain_classifier_and_its_average(trained):
    _, path = trained
    checkpoint = torch.load(path, weights_only=False)
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


def test_it_is_tested_without_its_teacher(trained, tmp_path):
    _, path = trained
    result = run('test.py', CONFIG, path, cwd=tmp_path, options=[*FEW, 'model.teacher.type=TimmClassifier'])
    assert result.returncode == 0, result.stderr
    assert 'accuracy/top1' in result.stdout


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
    steps = 5 * epoch_length
    assert rates[:steps] == pytest.approx([0.01 + 0.15 * step / (steps - 1) for step in range(steps)])
    expected = [0.16 * 0.9875 ** (step // epoch_length) for step in range(len(rates) - steps)]
    assert rates[steps:] == pytest.approx(expected)
