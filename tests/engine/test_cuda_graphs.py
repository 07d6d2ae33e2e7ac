"""``speed.cuda_graphs``: what is captured when, what is refused; and, on a GPU, that replays are the model's results.

The bookkeeping runs on a CPU too: there a call that is made again, into the same memory, is what a replay is on a GPU.
"""

import json

import pytest
import torch
from forked_tools import run_forked
from mmengine.registry import DefaultScope
from mmpretrain.models import AverageClsScoreTTA
from mmpretrain.registry import MODELS
from tool_runner import ROOT, SMALL_CLASSIFIER, assert_one_line

from vt.engine.cuda_graphs import (
    MOST_SHAPES,
    CudaGraphsHook,
    GraphedFeatures,
    capture,
)
from vt.errors import UserError

CONFIG = ROOT / 'configs/vt_resnet/vt-resnet18_digits.py'
CLASSIFIER = dict(
    type='ImageClassifier',
    backbone=dict(type='vt.VTResNet', depth=18, num_tokens=4, token_channels=64),
    neck=dict(type='vt.TokenAverage'),
    head=dict(type='LinearClsHead', num_classes=3, in_channels=64),
)
HAS_GPU = torch.cuda.is_available()
ON_GPU = pytest.mark.skipif(not HAS_GPU, reason='needs a GPU')


def fill(targets, values):
    if isinstance(targets, torch.Tensor):
        targets.copy_(values)
    else:
        for target, value in zip(targets, values, strict=True):
            fill(target, value)


class Repeated:
    """A capture on a CPU: the call is made again, into the memory of its first results."""

    def __init__(self):
        self.captures = self.replays = 0

    def __call__(self, call):
        results = call()
        self.captures += 1

        def replay():
            self.replays += 1
            fill(results, call())

        return replay, results


def features_of(images):
    return [images * 2, (images.mean((2, 3)),)]


@pytest.fixture
def graphed():
    return GraphedFeatures(features_of, Repeated())


@torch.no_grad()
def test_each_shape_is_captured_once_and_results_are_their_own(graphed):
    first, second, wider = torch.randn(2, 3, 4, 4), torch.randn(2, 3, 4, 4), torch.randn(2, 3, 4, 8)
    found = [graphed(images) for images in (first, second, wider, first)]
    assert (graphed.capture.captures, graphed.capture.replays) == (2, 4)
    for images, value in zip((first, second, wider, first), found):
        torch.testing.assert_close(value, features_of(images), rtol=0, atol=0)
    assert first.data_ptr() not in [images.data_ptr() for images, *_ in graphed.captured.values()]


@torch.no_grad()
def test_shapes_that_vary_are_refused(graphed):
    for width in range(4, 4 + MOST_SHAPES):
        graphed(torch.randn(1, 3, 4, width))
    with pytest.raises(UserError, match=r'needs images of one size, but the test has 1x3x4x4, .*, 1x3x4x32: resize to'):
        graphed(torch.randn(1, 3, 4, 32))
    graphed(torch.randn(1, 3, 4, 4))  # those that are captured still run


@torch.no_grad()
def test_autocast_keeps_no_weights_for_a_capture():
    weight, states = torch.nn.Linear(3, 3), []

    def extract(images):
        states.append((torch.is_autocast_enabled('cpu'), torch.is_autocast_cache_enabled()))
        return weight(images)

    graphed = GraphedFeatures(extract, Repeated())
    with torch.autocast('cpu', dtype=torch.bfloat16):
        assert graphed(torch.randn(2, 3)).dtype == torch.bfloat16
    assert graphed(torch.randn(1, 3)).dtype == torch.float32
    assert [states[0], states[2]] == [(True, False), (False, False)]


def test_copies_are_of_tensors_and_of_nothing_else():
    def graphed(value):
        with torch.no_grad():
            return GraphedFeatures(lambda images: value, lambda call: (lambda: None, call()))(torch.ones(1))

    value = dict(a=(torch.ones(2), [torch.zeros(1)]))
    torch.testing.assert_close(graphed(value), value)
    assert graphed(value)['a'][0] is not value['a'][0]
    with pytest.raises(TypeError, match="'str'"):
        graphed([torch.ones(1), 'a'])


def test_the_hook_leaves_the_model_as_it_was():
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        model = MODELS.build(CLASSIFIER)
    runner = type('Runner', (), dict(model=AverageClsScoreTTA(model)))
    hook, own = CudaGraphsHook(), model.extract_feat
    for _ in range(2):
        hook.before_test_epoch(runner)
        assert isinstance(model.extract_feat, GraphedFeatures)
        assert model.extract_feat.extract == own
        hook.after_test_epoch(runner)
        assert model.extract_feat == own


@pytest.mark.gpu
@ON_GPU
@pytest.mark.parametrize('dtype', [None, torch.bfloat16, torch.float16])
def test_replays_are_the_models_results(dtype):
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        model = MODELS.build(CLASSIFIER).cuda().eval()
    graphed = GraphedFeatures(model.extract_feat)
    for size in (64, 96, 64):
        images = torch.randn(2, 3, size, size, device='cuda')
        with torch.no_grad(), torch.autocast('cuda', dtype=dtype or torch.float16, enabled=dtype is not None):
            found, expected = graphed(images), model.extract_feat(images)
        torch.testing.assert_close(found, expected)
    assert len(graphed.captured) == 2
    replay, result = capture(lambda: model(images))
    images.zero_()
    replay()
    torch.testing.assert_close(result, model(images))


@pytest.mark.gpu
@ON_GPU
def test_a_test_has_the_same_scores(tmp_path):
    options = [*SMALL_CLASSIFIER, 'train_cfg.max_epochs=1']
    result = run_forked('train.py', CONFIG, '--work-dir', 'run', cwd=tmp_path, options=options)
    assert result.returncode == 0, result.stderr
    refused = run_forked('train.py', CONFIG, cwd=tmp_path, options=[*options, 'speed.cuda_graphs=True'])
    assert_one_line(refused, 'speed.cuda_graphs is only for tests: remove it for training')
    metrics = {}
    for on in (False, True):
        arguments = [CONFIG, 'run/epoch_1.pth', '--out', f'{on}.json']
        more = ['test_dataloader.batch_size=12', f'speed.cuda_graphs={on}']  # 32 images: the last batch is smaller
        result = run_forked('test.py', *arguments, cwd=tmp_path, options=[*SMALL_CLASSIFIER, *more])
        assert result.returncode == 0, result.stderr
        assert f'cuda_graphs={on}' in result.stdout
        metrics[on] = json.loads((tmp_path / f'{on}.json').read_text())
    assert metrics[True] == metrics[False]
