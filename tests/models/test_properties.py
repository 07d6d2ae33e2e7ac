"""One table of models, and what holds for every one: gradients, samples by themselves, copies, graphs, recomputation.

The survey's models are as their configs have them, two blocks a stage; their maths is in ``test_survey_parts.py``.
"""

import copy
import pickle
from functools import partial

import pytest
import torch
from mmengine.config import Config
from mmengine.model import convert_sync_batchnorm, revert_sync_batchnorm
from models.test_mvit import small as small_mvit
from models.test_survey_models import OURS, OWN, flat, randomise, small_backbone
from tool_runner import ROOT
from torch import nn

from vt.models import (
    VTFPN,
    ClusteringTokenizer,
    PoolingTokenizer,
    TokenEncoder,
    VTResNet,
    VTResNetAnywhere,
    VTResNetCIFAR,
)
from vt.models.visual_transformers.vt_stage import HasVTStages

SLOW = pytest.mark.slow
EARLY = Config.fromfile(ROOT / 'configs/_base_/models/vt-early.py')
SMALL = dict(num_tokens=4, token_channels=32)
SIZES = [(8, 12, 8), (16, 6, 4)]  # of VT-FPN's levels


class Modules(nn.Module):
    """Two VT modules in turn; the map and the tokens."""

    def __init__(self, **options):
        super().__init__()
        self.stage = HasVTStages(**SMALL, **options).build_stage(16, [0.0, 0.0], 'featmap')

    def forward(self, x):
        first, second = self.stage
        return second(*first(x))


# Models as they start, and the size of a sample; necks have a list of maps.
OF_VT = {
    'modules': (Modules, (16, 5, 3)),
    'early modules': (lambda: Modules(**EARLY.early_backbone), (16, 5, 3)),
    'pooling tokenizer': (lambda: PoolingTokenizer(8, 12, num_tokens=4), (8, 5, 3)),
    'clustering tokenizer': (lambda: ClusteringTokenizer(8, 12, num_tokens=4), (8, 5, 3)),
    'VT-ResNet': (lambda: VTResNet(18, **SMALL, zero_init_residual=False), (3, 64, 64)),
    'VT-ResNet for small images': (lambda: VTResNetCIFAR(18, **SMALL, zero_init_residual=False), (3, 16, 16)),
    'modules at two stages': (
        lambda: VTResNetAnywhere(18, **SMALL, zero_init_residual=False, positions=('layer2', 'layer4')),
        (3, 64, 64),
    ),
    'early VT-ResNet': (
        lambda: VTResNet(18, num_tokens=4, token_channels=256, zero_init_residual=False, **EARLY.early_backbone),
        (3, 64, 64),
    ),
    'VT-FPN': (lambda: VTFPN([8, 16], 16, token_channels=32), SIZES),
    'early VT-FPN': (lambda: VTFPN([8, 16], 32, token_channels=64, groups=1, **EARLY.early_neck), SIZES),
    'class token': (lambda: TokenEncoder(64, num_tokens=8), [(64, 4, 5)]),
}
MVITS = {
    'MViT': {},
    'MViTv2': dict(version=2),
    'MViT of images': dict(num_frames=None),
    'MViTv2 of images': dict(version=2, num_frames=None, class_tokens=0),
    'MViT, maxima': dict(pooling='max', kernel='s+1', skip='raw'),
    'MViT, averages': dict(
        pooling='average', kernel='2s+1', skip='none', position=dict(type='vt.AbsolutePosition')
    ),
    'MViT, maxima of even kernels': dict(pooling='max', kernel='s'),
    'MViT, averages of even kernels': dict(pooling='average', kernel=4, class_tokens=0, num_frames=None),
}  # fmt: skip
MODELS_OF_ALL = [*OF_VT, *MVITS, *OWN]


def make(name, **options):
    """A model in evaluation mode, and a function that draws so many samples for it."""
    torch.manual_seed(1)
    if name in OF_VT:
        build, size = OF_VT[name]
        model, sizes = build(), size if isinstance(size, list) else [size]
        if hasattr(model, 'init_weights'):
            model.init_weights()
    elif name in MVITS:
        model, sizes = small_mvit(**MVITS[name], **options), [(3, *[4] * ('num_frames' not in MVITS[name]), 32, 32)]
    else:
        model, side = small_backbone(name, **options)
        sizes = [(3, side, side)]

    def draw(number):
        return [torch.randn(number, *size) for size in sizes]

    return model.eval(), draw


def run(model, samples):
    """The outputs, flat; a neck takes the list."""
    outs = model(samples if isinstance(model, (VTFPN, TokenEncoder)) else samples[0])
    return flat(outs if isinstance(outs, tuple) else (outs,))


@pytest.mark.parametrize('name', MODELS_OF_ALL)
def test_gradients_reach_every_parameter_and_samples_are_independent(name):
    # A class token does not see all of the last block.
    model, draw = make(name, **{} if name in OF_VT else dict(out_type='tokens'))
    if name not in OF_VT:
        randomise(model)
    samples = [each.double() for each in draw(3)]
    together, apart = run(model.double(), samples), run(model, [each[1:2] for each in samples])
    torch.testing.assert_close([out[1:2] for out in together], apart)
    sum(out.square().sum() for out in together).backward()
    assert [key for key, parameter in model.named_parameters() if not parameter.grad.abs().sum()] == []


@pytest.mark.parametrize('name', MODELS_OF_ALL)
def test_a_copy_is_the_same(name):
    """A pickle with synchronised norms, and another model with its weights."""
    model, draw = make(name)
    other, _ = make(name)
    randomise(model)
    with torch.no_grad():
        expected = run(model, samples := draw(1))
        other.load_state_dict(model.state_dict())
        assert all(map(torch.equal, run(other, samples), expected))
        again = revert_sync_batchnorm(pickle.loads(pickle.dumps(convert_sync_batchnorm(model))))
        torch.testing.assert_close(run(again.eval(), samples), expected)


@pytest.mark.parametrize('name', OF_VT)
def test_a_batch_may_be_empty(name):
    model, draw = make(name)
    full, empty = (run(model, draw(number)) for number in (1, 0))
    assert [out.shape for out in empty] == [(0, *out.shape[1:]) for out in full]


@pytest.mark.parametrize(
    'name', [each if each == 'swin-tiny' else pytest.param(each, marks=SLOW) for each in [*OURS, *MVITS]]
)
def test_compiled_in_one_graph_and_exported(name):
    model, draw = make(name)
    samples = draw(2)
    torch.compiler.reset()
    with torch.no_grad():
        expected = run(model, samples)
        torch.testing.assert_close(run(torch.compile(model, fullgraph=True, backend='eager'), samples), expected)
        torch.testing.assert_close(run(torch.export.export(model, (*samples,)).module(), samples), expected)


def with_and_without(name):
    """A backbone whose blocks are recomputed, and its twin."""
    if name in OF_VT:
        build = partial(VTResNetAnywhere, positions=('layer2', 'layer4')) if name.startswith('modules') else VTResNet
        recomputed, plain = build(18, **SMALL, with_cp=True), build(18, **SMALL)
        plain.load_state_dict(recomputed.state_dict())
        return recomputed, plain, make(name)[1]
    recomputed, draw = make(name, with_cp=True)
    plain = copy.deepcopy(recomputed)
    plain.with_cp = False
    return recomputed, plain, draw


@pytest.mark.parametrize('name', ['VT-ResNet', 'modules at two stages', *OURS])
def test_recomputed_blocks_give_the_same_gradients_and_statistics(name):
    *models, draw = with_and_without(name)
    found, samples = [], draw(2)
    for each in models:
        torch.manual_seed(1)
        loss = sum(out.square().sum() for out in run(each.train(), samples))
        found.append(torch.autograd.grad(loss, [*each.parameters()], allow_unused=True, materialize_grads=True))
    torch.testing.assert_close(*found)
    for own, other in zip(*(model.buffers() for model in models), strict=True):
        assert torch.equal(own, other)
