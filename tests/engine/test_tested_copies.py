"""A test may compute otherwise, with folded normalisations or compiled: it predicts what the model does, and leaves it.

``speed.compile`` compiles backbone and neck, in training and in tests, and nothing else changes.
"""

import copy

import pytest
import torch
from mmcv.cnn import ConvModule
from mmengine.config import Config
from mmengine.dataset import DefaultSampler
from mmengine.hooks import EMAHook, Hook
from mmengine.registry import DefaultScope
from mmpretrain.models import AverageClsScoreTTA
from mmpretrain.registry import MODELS
from mmpretrain.structures import DataSample
from mmseg.registry import MODELS as SEGMENTORS
from process_groups import run_processes
from tool_runner import ROOT
from torch import nn
from torch._dynamo import register_backend  # documented there, and nowhere else
from torch.nn.modules.batchnorm import _NormBase

from vt.checkpoints.weights import unwrap
from vt.engine.config.steps import Run, RunOptions, apply_arguments
from vt.engine.run.folding import fold_norms
from vt.engine.run.runner import VTRunner
from vt.engine.run.speed_settings import compile_parts

CONFIG = ROOT / 'configs/vt_resnet/vt-resnet18_digits.py'
HEAD = dict(type='LinearClsHead', num_classes=3, in_channels=512)
POOLING = dict(type='GlobalAveragePooling')
RESNET = dict(type='ImageClassifier', backbone=dict(type='ResNet', depth=18), neck=POOLING, head=HEAD)
VT = dict(type='vt.VTResNet', depth=50, num_tokens=4, token_channels=64)
VT = RESNET | dict(backbone=VT, neck=dict(type='vt.TokenAverage'), head=HEAD | dict(in_channels=64))
BN = dict(type='BN')
NECK = dict(type='vt.VTFPN', in_channels=[256, 512, 1024, 2048], out_channels=32, token_channels=64, norm_cfg=BN)
MAPS = dict(in_channels=[32] * 4, in_index=[0, 1, 2, 3], feature_strides=[4, 8, 16, 32])
SEGMENTOR = dict(type='EncoderDecoder', backbone=dict(type='ResNetV1c', depth=50, norm_cfg=BN), neck=NECK)
SEGMENTOR['decode_head'] = dict(type='FPNHead', channels=16, num_classes=5, norm_cfg=BN, **MAPS)
SEGMENTOR['test_cfg'] = dict(mode='whole')
# PyTorch's call of the C++ compiler breaks at a space in its own path, so that we refuse to compile there.
compiles = pytest.mark.skipif(' ' in torch.__file__, reason="a space in PyTorch's path")


def build(cfg):
    """A model whose normalisations have seen something."""
    torch.manual_seed(0)
    is_segmentor = cfg['type'] == 'EncoderDecoder'
    with DefaultScope.overwrite_default_scope('mmseg' if is_segmentor else 'mmpretrain'):
        model = (SEGMENTORS if is_segmentor else MODELS).build(copy.deepcopy(cfg)).eval()
    for norm in norms(model):
        nn.init.uniform_(norm.weight, 0.5, 1.5)
        nn.init.normal_(norm.bias)
        norm.running_mean.normal_()
        norm.running_var.uniform_(0.5, 2)
    return model


def norms(model):
    return [part for part in model.modules() if isinstance(part, _NormBase)]


@pytest.mark.parametrize('cfg', [RESNET, VT, SEGMENTOR], ids=['ResNet', 'VT', 'VT-FPN'])
@torch.no_grad()
def test_folded_predictions_are_the_models(cfg):
    model, x = build(cfg).double(), torch.randn(2, 3, 64, 96, dtype=torch.double)
    expected = model(x, mode='tensor')
    assert norms(model)
    folded = fold_norms(copy.deepcopy(model))
    assert not norms(folded)
    torch.testing.assert_close(folded(x, mode='tensor'), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
@torch.no_grad()
def test_folded_predictions_in_half_precision_are_as_near(dtype):
    model, x = build(VT), torch.randn(2, 3, 64, 96)
    exact = copy.deepcopy(model).double()(x.double(), mode='tensor')
    errors = []
    for each in (model, fold_norms(copy.deepcopy(model))):
        with torch.autocast('cpu', dtype):
            errors.append((each(x, mode='tensor') - exact).norm())
    assert errors[1] < 1.5 * errors[0] < 1.5 * 8 * torch.finfo(dtype).eps * exact.norm()


class Preactivated(nn.Module):
    """A normalisation behind a convolution in the list of parts, and before it in the forward pass."""

    def __init__(self):
        super().__init__()
        self.convolution, self.norm = nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3)


@pytest.mark.parametrize(
    'part',
    [
        Preactivated(),
        ConvModule(3, 3, 1, norm_cfg=BN, order=('norm', 'conv', 'act')),
        ConvModule(3, 3, 1, norm_cfg=BN, conv_cfg=dict(type='ConvWS')),
    ],
)
def test_what_would_compute_something_else_is_not_folded(part):
    assert len(norms(fold_norms(nn.Sequential(part)))) == 1


FOUND = []


@register_backend(name='recorded')
def backend(graph, inputs):
    """It computes as eager, and writes down what it was given."""
    FOUND.append(graph)
    return graph.forward


@pytest.fixture
def graphs():
    """The graphs that were compiled."""
    torch.compiler.reset()
    FOUND.clear()
    yield FOUND
    torch.compiler.reset()


def parameters_in(graphs):
    """How many parameters the graphs have as inputs."""
    return sum(node.op == 'placeholder' and 'parameters' in node.name for graph in graphs for node in graph.graph.nodes)


@pytest.mark.parametrize('training', [False, True])
def test_the_backbone_is_compiled_and_the_head_is_not(training, graphs):
    plain, model = build(RESNET).train(training), build(RESNET).train(training)
    compile_parts(AverageClsScoreTTA(model), dict(backend='recorded'))
    assert list(model.state_dict()) == list(plain.state_dict())
    x = torch.randn(2, 3, 64, 64)
    torch.testing.assert_close(model(x), plain(x), rtol=1e-5, atol=1e-5)
    assert parameters_in(graphs) == len(list(model.backbone.parameters()))
    torch.testing.assert_close(model.state_dict(), plain.state_dict())
    count = len(graphs)
    copy.deepcopy(model)(x)
    assert len(graphs) == count


class Probe(Hook):
    """Keeps what is tested; at first it gives a layer's average another value."""

    def __init__(self, averages):
        self.averages = averages
        self.tested = []

    def before_test(self, runner):
        self.averages.ema_model.module.head.fc.weight.data.fill_(0.25)

    def after_test_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        self.tested.append(runner.model)


@compiles
@pytest.mark.parametrize(('fold', 'compiled'), [(True, True), (True, False), (False, True), (False, False)])
def test_a_copy_is_tested_and_the_runner_has_its_model_back(fold, compiled, graphs, tmp_path):
    """With averages of the weights, too, which another hook puts into the model for a test, and takes out again."""
    averages, model = EMAHook(), build(RESNET)
    probe = Probe(averages)
    dataset = [dict(inputs=torch.zeros(3, 32, 32), data_samples=DataSample())]
    speed = dict(fold_norms=fold, keep_memory=False, compile=dict(backend='recorded') if compiled else False)
    runner = VTRunner(
        model=model,
        work_dir=str(tmp_path),
        test_dataloader=dict(dataset=dataset, sampler=dict(type=DefaultSampler, shuffle=False), batch_size=1),
        test_cfg=dict(),
        test_evaluator=[],
        custom_hooks=[averages, probe],
        cfg=dict(speed=speed),
    )
    assert unwrap(runner.model) is model
    weight = model.head.fc.weight.clone()
    for _ in range(2):
        runner.test()
        assert runner.model is model
        assert len(norms(model)) == 20
        assert torch.equal(model.head.fc.weight, weight)
    for tested in probe.tested:
        assert (tested is model) != fold
        assert len(norms(tested)) == (0 if fold else 20)
        assert not fold or tested.head.fc.weight.eq(0.25).all()
    assert bool(graphs) == compiled
    assert parameters_in(graphs) % len(list(probe.tested[0].backbone.parameters())) == 0


@compiles
def test_processes_train_compiled_as_they_do_otherwise(tmp_path):
    """Wrapped for several processes, and the checkpoint is one of any run."""
    options = ["model.backbone={'_delete_':True,'type':'ResNet','depth':18,'base_channels':8,'stem_channels':8}"]
    options += ["model.neck={'_delete_':True,'type':'GlobalAveragePooling'}", 'model.head.in_channels=64']
    options += ['train_cfg.max_epochs=1', 'train_dataloader.batch_size=16', 'train_dataloader.dataset.indices=32']
    ends = []
    for name, more in dict(plain=[], compiled=['speed.compile.backend=eager']).items():
        arguments = [CONFIG, '--no-validate', '--work-dir', name]
        results = run_processes(2, 'train.py', *arguments, cwd=tmp_path, options=options + more)
        assert [result.returncode for result in results] == [0, 0], results[0].stderr
        ends.append(torch.load(tmp_path / name / 'epoch_1.pth', weights_only=False)['state_dict'])
    assert ' compile=False' not in results[0].stdout
    torch.testing.assert_close(dict(ends[1]), dict(ends[0]), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize('given', [True, dict(backend='eager')])
def test_options_of_the_config_stay_beside_a_flag(given):
    cfg = Config(dict(speed=dict(compile=given if isinstance(given, dict) else False)))
    apply_arguments(Run(cfg, RunOptions(compiles=True)))
    assert cfg.speed.compile == given
