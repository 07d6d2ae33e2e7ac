"""``speed.cuda_graphs``: what is captured when, what is refused; and, on a GPU, that replays are the model's results.

The bookkeeping runs on a CPU too: there a call that is made again, into the same memory, is what a replay is on a GPU.
"""

import pytest
import torch
from engine.interruption.small_runs import train_small
from engine.processes.in_each_process import CLASSIFIER
from mmengine.registry import DefaultScope
from mmpretrain.models import AverageClsScoreTTA
from mmpretrain.registry import MODELS
from torch.utils._pytree import tree_leaves

from vt.engine.cuda_graphs import MOST_SHAPES, CudaGraphsHook, GraphedFeatures, capture
from vt.errors import UserError

HAS_GPU = torch.cuda.is_available()
ON_GPU = pytest.mark.skipif(not HAS_GPU, reason='needs a GPU')


class Repeated:
    """A capture on a CPU: the call is made again, into the memory of its first results."""

    captures = replays = 0

    def __call__(self, call):
        results = call()
        self.captures += 1

        def replay():
            self.replays += 1
            for target, value in zip(tree_leaves(results), tree_leaves(call()), strict=True):
                target.copy_(value)

        return replay, results


def features_of(images):
    return [images * 2, (images.mean((2, 3)),)]


@torch.no_grad()
def test_each_shape_is_captured_once_and_results_are_their_own():
    graphed = GraphedFeatures(features_of, Repeated())
    first, second, wider = torch.randn(2, 3, 4, 4), torch.randn(2, 3, 4, 4), torch.randn(2, 3, 4, 8)
    found = [graphed(images) for images in (first, second, wider, first)]
    assert (graphed.capture.captures, graphed.capture.replays) == (2, 4)
    for images, value in zip((first, second, wider, first), found):
        torch.testing.assert_close(value, features_of(images), rtol=0, atol=0)
    assert first.data_ptr() not in [images.data_ptr() for images, *_ in graphed.captured.values()]
    for width in range(5, 3 + MOST_SHAPES):
        graphed(torch.randn(1, 3, 4, width))
    words = r'needs images of one size, but the test has 2x3x4x4, 2x3x4x8, .*, 1x3x4x32: resize to'
    with pytest.raises(UserError, match=words):
        graphed(torch.randn(1, 3, 4, 32))
    graphed(first)  # those that are captured still run


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


def test_a_training_with_them_is_refused(tmp_path):
    with pytest.raises(UserError, match=r'speed\.cuda_graphs is only for tests: remove it for training'):
        train_small(tmp_path, 1, speed=dict(cuda_graphs=True))
