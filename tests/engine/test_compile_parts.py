"""``speed.compile``: backbone and neck are compiled, in training and in tests, and nothing else changes."""

import copy

import pytest
import torch
from forked_tools import run_forked
from mmengine.dataset import DefaultSampler
from mmengine.hooks import Hook
from mmengine.registry import init_default_scope
from mmpretrain.models import AverageClsScoreTTA
from mmpretrain.registry import MODELS
from mmpretrain.structures import DataSample
from process_groups import run_processes
from tool_runner import ROOT, SMALL_CLASSIFIER
from torch._dynamo import register_backend  # documented there, and nowhere else
from torch.nn.modules.batchnorm import _NormBase

from vt.checkpoints.weights import unwrap
from vt.engine.runner import VTRunner
from vt.engine.speed_settings import compile_parts

CONFIG = ROOT / 'configs/vt_resnet/vt-resnet18_digits.py'
CLASSIFIER = dict(
    type='ImageClassifier',
    backbone=dict(type='ResNet', depth=18),
    neck=dict(type='GlobalAveragePooling'),
    head=dict(type='LinearClsHead', num_classes=3, in_channels=512),
)


FOUND = []


# PyTorch's call of the C++ compiler breaks at a space in its own path, so that we refuse to compile there.
compiles = pytest.mark.skipif(' ' in torch.__file__, reason="a space in PyTorch's path")


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


def build():
    init_default_scope('mmpretrain')
    torch.manual_seed(0)
    return MODELS.build(copy.deepcopy(CLASSIFIER)).eval()


def parameters_in(graphs):
    """How many parameters the graphs have as inputs."""
    return sum(node.op == 'placeholder' and 'parameters' in node.name for graph in graphs for node in graph.graph.nodes)


@pytest.mark.parametrize('training', [False, True])
def test_the_backbone_is_compiled_and_the_head_is_not(training, graphs):
    plain, model = build().train(training), build().train(training)
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
    """Keeps what is tested."""

    def after_test_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        self.tested = runner.model


@compiles
@pytest.mark.parametrize('folds', [True, False])
def test_a_test_compiles_what_it_tests(folds, graphs, tmp_path):
    probe = Probe()
    dataset = [dict(inputs=torch.zeros(3, 32, 32), data_samples=DataSample())]
    options = dict(keep_memory=False, fold_norms=folds)
    runner = VTRunner(
        model=build(),
        work_dir=str(tmp_path),
        test_dataloader=dict(dataset=dataset, sampler=dict(type=DefaultSampler, shuffle=False), batch_size=1),
        test_cfg=dict(),
        test_evaluator=[],
        custom_hooks=[probe],
        cfg=dict(speed=dict(compile=dict(backend='recorded'), **options)),
    )
    assert unwrap(runner.model) is runner.model
    runner.test()
    assert any(isinstance(part, _NormBase) for part in probe.tested.modules()) != folds
    assert parameters_in(graphs) == len(list(probe.tested.backbone.parameters()))


@compiles
def test_processes_train_compiled_as_they_do_otherwise(tmp_path):
    """Wrapped for several processes, and the checkpoint is one of any run."""
    options = [*SMALL_CLASSIFIER, 'train_cfg.max_epochs=1']
    for name, more in dict(plain=[], compiled=['speed.compile.backend=aot_eager']).items():
        arguments = [CONFIG, '--no-validate', '--work-dir', name]
        results = run_processes(2, 'train.py', *arguments, cwd=tmp_path, options=options + more)
        assert [result.returncode for result in results] == [0, 0], results[0].stderr
    assert ' compile=False' not in results[0].stdout
    plain, compiled = (
        torch.load(tmp_path / name / 'epoch_1.pth', weights_only=False)['state_dict'] for name in ('plain', 'compiled')
    )
    torch.testing.assert_close(dict(compiled), dict(plain), rtol=1e-3, atol=1e-3)


@compiles
def test_options_of_the_config_stay_beside_the_flag(tmp_path):
    options = [*SMALL_CLASSIFIER, 'train_cfg.max_epochs=1', 'speed.compile.backend=no-such-backend']
    result = run_forked('train.py', CONFIG, '--compile', '--no-validate', cwd=tmp_path, options=options)
    assert result.returncode != 0
    assert 'no-such-backend' in result.stderr
