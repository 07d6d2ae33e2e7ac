"""Compilers, exporters and tracers; what they write down holds for other batches and sizes."""

import warnings

import pytest
import torch
from mmengine import Config
from mmengine.analysis import get_model_complexity_info
from mmengine.registry import DefaultScope
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from tool_runner import ROOT
from torch.export import Dim
from torch.testing import assert_close

from vt.engine.counting import count_complexity
from vt.models import VTFPN
from vt.models.visual_transformers.vt_stage import HasVTStages

CONFIGS = ROOT / 'configs'
EARLY = Config.fromfile(CONFIGS / '_base_/models/vt-early.py')


def maps(n, h, w):
    return torch.randn(n, 16, h, w)


def levels(n, h, w):
    return [torch.randn(n, 8, h, w), torch.randn(n, 16, h // 2, w // 2)]


def make_modules(**options):
    return HasVTStages(num_tokens=4, token_channels=64, **options).build_stage(16, [0.0, 0.0], 'featmap')


MAKERS = dict(
    modules=lambda: (make_modules(), maps),
    early_modules=lambda: (make_modules(**EARLY.early_backbone | dict(projector=EARLY.early_neck.projector)), maps),
    neck=lambda: (VTFPN([8, 16], 16, num_outs=3, token_channels=32), levels),
)


def make(name):
    torch.manual_seed(0)
    model, make_inputs = MAKERS[name]()
    return model.eval(), make_inputs


@pytest.mark.parametrize('name', MAKERS)
def test_a_trace_holds_for_other_batches_and_sizes(name):
    model, make_inputs = make(name)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # tracing is deprecated, and checks of sizes become constants
        traced = torch.jit.trace(model, (make_inputs(2, 12, 8),), check_trace=False, strict=False)
    for sizes in ((3, 12, 8), (1, 10, 14)):
        inputs = make_inputs(*sizes)
        assert_close(traced(inputs), model(inputs))


@pytest.mark.parametrize('name', MAKERS)
def test_exported_with_open_sizes(name):
    """Of the first version the batch alone."""
    model, make_inputs = make(name)
    inputs = make_inputs(2, 12, 8)
    early = name.startswith('early')
    is_open = dict.fromkeys((0,) if early else (0, 2, 3), Dim.DYNAMIC)
    sizes = [is_open for _ in inputs] if isinstance(inputs, list) else is_open
    with torch.no_grad():
        program = torch.export.export(model, (inputs,), dynamic_shapes=[sizes])
        others = make_inputs(3, 12, 8) if early else make_inputs(3, 10, 14)
        assert_close(program.module()(others), model(others))


@pytest.mark.parametrize(
    ('name', 'memory_format', 'autocast'),
    [
        ('modules', torch.contiguous_format, False),
        ('neck', torch.channels_last, False),
        ('modules', torch.channels_last, True),
        ('neck', torch.contiguous_format, True),
    ],
)
def test_compiled_in_one_graph(name, memory_format, autocast):
    model, make_inputs = make(name)
    model = model.to(memory_format=memory_format)
    inputs, found = make_inputs(2, 12, 8), []
    torch._dynamo.reset()
    backend = 'eager' if autocast else 'aot_eager'
    for module in (torch.compile(model, fullgraph=True, backend=backend), model):
        with torch.autocast('cpu', torch.bfloat16, enabled=autocast):
            outs = module(inputs)
        outs = outs if isinstance(outs, tuple) else (outs,)
        gradients = torch.autograd.grad(sum(out.float().square().sum() for out in outs), list(model.parameters()))
        with torch.no_grad(), torch.autocast('cpu', torch.bfloat16, enabled=autocast):
            found.append([outs, gradients, module(inputs)])
    for own, other in zip(*found, strict=True):
        if autocast:
            own, other = (torch.cat([tensor.float().flatten() for tensor in each]) for each in (own, other))
            assert (own - other).norm() <= 0.05 * other.norm()
        else:
            assert_close(own, other, rtol=1e-5, atol=1e-4)


def test_mmsegs_counter_of_flops():
    """As its ``get_flops.py`` does: a segmentor and preprocessed images."""
    cfg = Config.fromfile(CONFIGS / 'vt_fpn/vt-fpn_r18_digit-scenes.py')
    cfg.model.backbone.init_cfg = None
    cfg.model.data_preprocessor.size = (64, 96)
    with DefaultScope.overwrite_default_scope('mmseg'):
        model = MODELS.build(cfg.model).eval()
    sample = SegDataSample(metainfo=dict(ori_shape=(64, 96), pad_shape=(64, 96)))
    data = model.data_preprocessor(dict(inputs=[torch.rand(3, 64, 96)], data_samples=[sample]))
    flops = get_model_complexity_info(model, inputs=data['inputs'], show_table=False, show_arch=False)['flops']
    assert flops == pytest.approx(count_complexity(model, data['inputs']).flops, rel=0.01)
