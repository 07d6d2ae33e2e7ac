"""``speed.cuda_graphs`` and ``speed.train_graphs``: what is captured when, what is refused; on a GPU, the results.

The bookkeeping runs on a CPU too: there a call that is made again, into the same memory, is what a replay is on a GPU.
"""

import copy
from types import SimpleNamespace

import pytest
import torch
from checkpoints.small_models import Points
from engine.interruption.small_runs import loader, log_of, train_small
from engine.processes.in_each_process import CLASSIFIER
from mmengine.model import BaseModel
from mmengine.registry import DATASETS, DefaultScope
from mmengine.registry import MODELS as ALL_MODELS
from mmengine.runner import Runner
from mmpretrain.models import AverageClsScoreTTA
from mmpretrain.registry import MODELS
from torch import nn
from torch.nn.functional import dropout
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from vt.engine.run import cuda_graphs
from vt.engine.run.cuda_graphs import (
    CudaGraphsHook,
    GraphedFeatures,
    TrainGraphs,
    refuse_train_graphs,
    require_same_step,
)
from vt.engine.run.runner import VTRunner
from vt.engine.run.speed_settings import SpeedSettings
from vt.errors import UserError
from vt.models import VTFPN, optimize_for

HAS_GPU = torch.cuda.is_available()
ON_GPU = pytest.mark.skipif(not HAS_GPU, reason='needs a GPU')


def build_classifier(**backbone):
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        return MODELS.build(copy.deepcopy(CLASSIFIER | dict(backbone=CLASSIFIER['backbone'] | backbone)))


@ALL_MODELS.register_module('SmallMaps', force=True)
class Maps(BaseModel):
    """A convolution and a normalisation with a head that draws random numbers."""

    def __init__(self, neck=False):
        super().__init__(data_preprocessor=dict(type='ImgDataPreprocessor'))
        self.backbone = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))
        self.neck = VTFPN([4, 4], 8, num_tokens=2, token_channels=16) if neck else None
        self.head = nn.Linear(4, 2)

    def extract_feat(self, images):
        maps = (self.backbone(images),)
        return self.neck(2 * maps) if self.neck else maps

    def forward(self, inputs, data_samples=None, mode='tensor'):
        (x,) = self.extract_feat(inputs)
        scores = self.head(dropout(x.mean((2, 3)), 0.3, self.training))
        return dict(loss=(scores - 1).square().mean()) if mode == 'loss' else list(scores)


class Casts(TorchDispatchMode):
    """Counts the casts and concatenations of weights."""

    number = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func in (torch.ops.aten._to_copy.default, torch.ops.aten.cat.default):
            self.number += any(isinstance(each, nn.Parameter) for each in tree_leaves(args))
        return func(*args, **kwargs or {})


class Repeated:
    """A capture on a CPU: the call is made again, into the memory of its first results."""

    captures = replays = 0

    def __call__(self, call, pool):
        call()
        with Casts() as seen:
            results = call()
        self.captures, self.casts, self.pool = self.captures + 1, seen.number, pool

        def replay():
            self.replays += 1
            for target, value in zip(tree_leaves(results), tree_leaves(call()), strict=True):
                target.copy_(value)

        return replay, results


def features_of(images):
    return [images * 2, (images.mean((2, 3)),)]


@torch.no_grad()
def test_each_shape_is_captured_once_and_its_next_call_overwrites_the_results(monkeypatch):
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: True)
    monkeypatch.setattr(torch.cuda, 'graph_pool_handle', object)  # another one each time
    graphed = GraphedFeatures(features_of, Repeated())
    first, second, wider = torch.randn(2, 3, 4, 4), torch.randn(2, 3, 4, 4), torch.randn(2, 3, 4, 8)
    found, pools = [], set()
    for images in (first, second, wider, first):
        found.append(graphed(images))
        pools.add(graphed.capture.pool)
        torch.testing.assert_close(found[-1], features_of(images), rtol=0, atol=0)
    assert (graphed.capture.captures, graphed.capture.replays) == (2, 4)
    assert found[0] is found[1] is found[3]  # nothing is copied
    assert len(pools - {None}) == 1
    assert first.data_ptr() not in [images.data_ptr() for images, *_ in graphed.captured.values()]
    for width in range(5, 3 + cuda_graphs.MOST_SHAPES):
        graphed(torch.randn(1, 3, 4, width))
    words = r'requires images of one size, but the test has 2x3x4x4, 2x3x4x8, .*, 1x3x4x32: resize to'
    with pytest.raises(UserError, match=words):
        graphed(torch.randn(1, 3, 4, 32))
    graphed(first)  # those that are captured still run


def test_the_hook_leaves_the_model_as_it_was():
    model = build_classifier()
    runner = SimpleNamespace(model=AverageClsScoreTTA(model))
    hook, own = CudaGraphsHook(), model.extract_feat
    for end in (lambda: hook.after_test_epoch(runner), hook.close):  # the second after an error
        hook.before_test_epoch(runner)
        assert isinstance(model.extract_feat, GraphedFeatures)
        assert model.extract_feat.extract == own
        end()
        assert model.extract_feat == own


@torch.no_grad()
@pytest.mark.parametrize(('neck', 'number'), [(False, 2), (True, 15)])
def test_weights_are_cast_once_in_a_test(neck, number):
    """Also a frozen one, and the joined weights of VT-FPN."""
    model, images, casts = optimize_for(Maps(neck).eval()), torch.randn(1, 3, 8, 8), []
    model.backbone[0].bias.requires_grad_(False)
    hook, runner = CudaGraphsHook(), SimpleNamespace(model=model)
    for _ in range(2):  # tests, between which weights may change
        hook.before_test_epoch(runner)
        model.extract_feat.capture = Repeated()
        for _ in range(2):  # steps
            with Casts() as seen, torch.autocast('cpu', torch.bfloat16):
                model.extract_feat(images)
            casts.append(seen.number)
        assert model.extract_feat.capture.casts == 0  # in the graph
        hook.after_test_epoch(runner)
        assert not model.backbone[0].bias.requires_grad
    assert casts == [number, 0, number, 0]  # replays find them


@pytest.mark.gpu
@ON_GPU
@pytest.mark.parametrize('dtype', [None, torch.bfloat16, torch.float16])
def test_replays_are_the_models_results(dtype):
    model, hook, extract = build_classifier().cuda().eval(), CudaGraphsHook()
    extract = model.extract_feat
    hook.before_test_epoch(SimpleNamespace(model=model))
    for size in (64, 96, 64, 96):
        images = torch.randn(2, 3, size, size, device='cuda')
        with torch.no_grad(), torch.autocast('cuda', dtype=dtype or torch.float16, enabled=dtype is not None):
            found, expected = model.extract_feat(images), extract(images)
        torch.testing.assert_close(found, expected)
    assert len(model.extract_feat.captured) == 2
    hook.close()
    replay, result = cuda_graphs.capture(lambda: model(images))
    images.zero_()
    replay()
    torch.testing.assert_close(result, model(images))


@pytest.mark.gpu
@ON_GPU
@pytest.mark.parametrize('is_half', [False, True])
def test_training_with_graphs_is_training_without(is_half):
    torch.manual_seed(0)
    plain = build_classifier().cuda().train()
    graphed, results = copy.deepcopy(plain), []
    batches = torch.randn(20, 2, 3, 64, 64, device='cuda')
    autocast = torch.autocast('cuda', torch.bfloat16, enabled=is_half)
    with autocast:
        graphed.extract_feat = TrainGraphs(graphed, batches[0])
    for model in (plain, graphed):
        optimizer, found = torch.optim.SGD(model.parameters(), lr=0.01), []
        for images in batches:
            with autocast:
                (features,) = model.extract_feat(images)
                loss = model.head.fc(features).square().mean()
            loss.backward()
            found += [loss.detach(), [parameter.grad.clone() for parameter in model.parameters()]]
            optimizer.step()
            optimizer.zero_grad()
        results.append([found, [*model.buffers()]])
    torch.testing.assert_close(*results, rtol=0.05 if is_half else 1e-3, atol=1e-3 if is_half else 1e-5)


@DATASETS.register_module('SmallImages', force=True)
class Images(Points):
    """Images of few values; the last batch of three is smaller."""

    def __getitem__(self, index):
        return dict(inputs=torch.arange(index, index + 192).view(3, 8, 8).remainder(5 + index))


@pytest.fixture
def events(monkeypatch):
    """What happens, with a stand-in for PyTorch's function that does to the model what its warm-up does."""
    found = []

    def make(part, samples, allow_unused_input):
        assert allow_unused_input
        assert not (torch.is_autocast_enabled('cpu') and torch.is_autocast_cache_enabled())
        assert len([*part.parameters()]) == 4  # not the head's
        torch.autograd.grad(part(*samples)[0].sum() * torch.rand(1), [*part.parameters()])
        found.append('made')
        return lambda images: found.append(images.shape) or part(images)

    monkeypatch.setattr(torch.cuda, 'make_graphed_callables', make)
    return found


def test_making_graphs_changes_nothing_and_other_calls_are_eager(events):
    model, images = Maps(), torch.randn(3, 3, 8, 8)
    before = copy.deepcopy([torch.get_rng_state(), model.state_dict()])
    with torch.autocast('cpu', torch.bfloat16):
        model.extract_feat = TrainGraphs(model, images)
    torch.testing.assert_close([torch.get_rng_state(), model.state_dict()], before, rtol=0, atol=0)
    assert all(parameter.grad is None for parameter in model.parameters())
    model.extract_feat(images)
    model.extract_feat(images[:2])
    with torch.no_grad():
        model.extract_feat(images)
    model.eval().extract_feat(images)
    assert events == ['made', images.shape]


def test_a_step_that_graphs_would_change_is_refused():
    model, data = Maps().train(), dict(inputs=torch.randn(3, 3, 8, 8))
    before = copy.deepcopy([torch.get_rng_state(), model.state_dict()])
    require_same_step(model, data)
    torch.testing.assert_close([torch.get_rng_state(), model.state_dict()], before, rtol=0, atol=0)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert 'extract_feat' not in vars(model)
    model.backbone.register_parameter('unread', nn.Parameter(torch.zeros(1)))
    with pytest.raises(
        UserError, match=r'requires a gradient for every weight, and backbone\.unread has none: freeze it'
    ):
        require_same_step(model, data)
    model.backbone.unread.requires_grad_(False)
    require_same_step(model, data)
    loss, words = model.forward, 'requires one call of extract_feat per step, without hooks'
    model.forward = lambda inputs, **options: [model.extract_feat(inputs), loss(inputs, **options)][1]
    with pytest.raises(UserError, match=words):
        require_same_step(model, data)

    def look(inputs, **options):
        with model.backbone[0].register_forward_hook(lambda *what: None):
            return loss(inputs, **options)

    model.forward = look
    with pytest.raises(UserError, match=words):
        require_same_step(model, data)


def test_graphs_are_made_before_the_model_is_wrapped_and_change_no_weight(events, tmp_path, monkeypatch):
    monkeypatch.setattr('vt.engine.run.runner.refuse_train_graphs', lambda runner: None)
    monkeypatch.setattr(VTRunner, 'distributed', property(lambda runner: hasattr(runner, 'visualizer')))
    monkeypatch.setattr(Runner, 'wrap_model', lambda runner, cfg, model: events.append('wrapped') or model)
    data, runs = loader('SmallImages', batch_size=3), []
    for graphs in (False, True):
        options = dict(model=dict(type='SmallMaps'), train_dataloader=data, val_dataloader=data)
        runs.append(train_small(tmp_path / str(graphs), 2, speed=dict(train_graphs=graphs), **options))
    torch.testing.assert_close(runs[1].model.state_dict(), runs[0].model.state_dict(), rtol=0, atol=0)
    assert events == ['wrapped', 'made', 'wrapped', *[(3, 3, 8, 8)] * 4]  # not the last batch, not in validation
    assert 'extract_feat' not in vars(runs[1].model)
    assert 'run as CUDA graphs for batches of (3, 3, 8, 8); others run eagerly' in log_of(tmp_path / 'True')


@pytest.mark.parametrize(
    ('message', 'options', 'backbone'),
    [
        ('fsdp', dict(sharding=True), {}),
        ('compile', dict(speed=SpeedSettings(compile=True)), {}),
        ('SyncBN', dict(cfg=dict(sync_bn='torch')), {}),
        ('with_cp or activation_checkpointing', {}, dict(with_cp=True)),
        ('drop path or dropout in backbone and neck', {}, dict(drop_path_rate=0.1)),
        ('optim_wrapper.accumulative_counts', dict(cfg=dict(optim_wrapper=dict(accumulative_counts=2))), {}),
    ],
)
def test_what_training_graphs_do_not_repeat_is_refused(message, options, backbone):
    runner = dict(cfg={}, sharding=None, speed=SpeedSettings(), distributed=True, model=build_classifier(**backbone))
    with pytest.raises(UserError, match=f'^speed.train_graphs does not work with {message}: remove one of them$'):
        refuse_train_graphs(SimpleNamespace(**runner | options))


def test_hooks_in_the_model_cpus_and_graphs_of_tests_are_refused(tmp_path):
    runner = dict(cfg={}, sharding=None, speed=SpeedSettings(), distributed=False, model=build_classifier())
    if not HAS_GPU:
        with pytest.raises(UserError, match='requires an NVIDIA GPU: remove the setting'):
            refuse_train_graphs(SimpleNamespace(**runner))
    runner['model'].neck.register_forward_hook(print)
    with pytest.raises(UserError, match='does not work with hooks in backbone and neck'):
        refuse_train_graphs(SimpleNamespace(**runner))
    with pytest.raises(UserError, match='requires a model with backbone and extract_feat'):
        train_small(tmp_path, 1, speed=dict(train_graphs=True))
    with pytest.raises(UserError, match=r'speed\.cuda_graphs is only for tests: remove it for training'):
        train_small(tmp_path, 1, speed=dict(cuda_graphs=True))
