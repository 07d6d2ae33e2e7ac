"""What a benchmark runs, and what it records of it."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from projects.speed.comparison import Comparison, peak_memories, tabulate
from projects.speed.settings import Measurement, Setting
from projects.speed.subject import Subject
from projects.speed.timing import time_token_side, token_side
from projects.speed.workload import Workload
from vt.models.visual_transformers.grouped_linear import GroupedLinear

CONFIGS = Path(__file__).parents[3] / 'configs'
FPN, VT_FPN = (str(CONFIGS / f'{name}_r18_digit-scenes.py') for name in ('baselines/fpn', 'vt_fpn/vt-fpn'))
RESNET, VT_RESNET = (str(CONFIGS / f'{name}18_digits.py') for name in ('baselines/resnet', 'vt_resnet/vt-resnet'))
PEER = 'torchvision:resnet18'
SMALL = Setting(batch_size=2, size=(64, 96))


def test_a_peer_learns_from_the_cross_entropy():
    model = Subject(PEER, num_classes=7).build(SMALL)
    workload = Workload(model, 'whole', SMALL)
    before = model.network.fc.weight.detach().clone()
    workload.step('training')()
    assert not torch.equal(model.network.fc.weight, before)
    workload.step('inference')()
    assert not model.training
    assert model(workload.inputs).shape == (2, 7)


@pytest.mark.parametrize(
    ('source', 'part'), [(PEER, 'whole'), (RESNET, 'whole'), (VT_RESNET, 'whole'), (FPN, 'neck'), (VT_FPN, 'neck')]
)
def test_a_training_step_waits_for_no_element(source, part):
    """On a GPU the host would wait for each element that it reads."""
    step = Workload(Subject(source).build(SMALL), part, SMALL).step('training')
    step()
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        step()
    names = {event.key for event in seen.key_averages()}
    assert 'aten::convolution' in names
    assert names.isdisjoint({'aten::_local_scalar_dense', 'aten::nonzero'})


def test_a_peer_of_mmpretrain_has_the_classes_asked_for():
    model = Subject('mmpretrain:resnet18_8xb32_in1k', num_classes=7).build(SMALL)
    assert model(torch.rand(2, 3, 64, 96)).shape == (2, 7)


def test_tokens_are_those_asked_for():
    assert Subject(FPN).with_tokens([8, 16]) == [Subject(FPN)]
    assert Subject(PEER).with_tokens([8, 16]) == [Subject(PEER)]
    assert Subject(VT_FPN).with_tokens([]) == [Subject(VT_FPN)]
    for source, tokenizer in ((VT_FPN, 'neck.tokenizers.0'), (VT_RESNET, 'backbone.layer4.0.tokenizer')):
        for subject, count in zip(Subject(source).with_tokens([4, 32]), (4, 32)):
            assert subject.tokens == count
            assert subject.build(SMALL).get_submodule(tokenizer).num_tokens == count


@pytest.mark.parametrize('name', ['torchvision:resnet19', 'timm:resnet19', 'mmpretrain:resnet19'])
def test_a_missing_peer_is_an_error_that_names_it(name):
    """A model that its library lacks, or a library that is not installed."""
    with pytest.raises(ValueError, match=name):
        Subject(name).build(SMALL)


@pytest.mark.parametrize('dtype', ['float32', 'bfloat16'])
@pytest.mark.parametrize('part', ['whole', 'neck', 'backbone'])
def test_parts_run_in_both_kinds(part, dtype):
    setting = Setting(dtype=dtype, batch_size=2, size=(64, 96))
    model = Subject(VT_FPN).build(setting)
    workload = Workload(model, part, setting)
    calls = []
    workload.module.register_forward_hook(lambda module, inputs, out: calls.append(module.training))
    workload.step('inference')()
    assert calls == [False]
    workload.step('training')()
    assert calls[-1]


def test_folded_normalisation_changes_the_steps_not_the_scores(monkeypatch):
    """Inference runs a copy without batch normalisation, which gives the same scores; training keeps it."""
    setting = replace(SMALL, fuse_conv_bn=True)
    model = Subject(VT_FPN).build(setting)
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
    seen = []

    def forward(segmentor, *args, **options):
        batch_norms = sum(isinstance(module, torch.nn.BatchNorm2d) for module in segmentor.modules())
        seen.append((batch_norms, original(segmentor, *args, **options)))
        return seen[-1][1]

    original = type(model).forward
    monkeypatch.setattr(type(model), 'forward', forward)
    for own in (setting, SMALL):
        workload = Workload(model, 'whole', own)
        workload.inputs = torch.ones_like(workload.inputs)
        workload.step('inference')()
    (folded, ours), (kept, theirs) = seen
    assert folded == 0
    assert kept > 20
    torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)
    Workload(model, 'whole', setting).step('training')()
    assert seen[-1][0] == kept


def test_a_neck_gets_the_maps_that_the_backbone_would_give():
    model = Subject(VT_FPN).build(SMALL)
    maps = Workload(model, 'neck', SMALL).inputs
    model.eval()
    with torch.no_grad():
        real = model.backbone(torch.randn(2, 3, 64, 96))
    assert [x.shape for x in maps] == [x.shape for x in real]
    assert all(x.is_contiguous(memory_format=torch.channels_last) for x in maps)


def test_a_part_that_is_not_there_is_named():
    with pytest.raises(ValueError, match='ImageClassifier has no neck'):
        Workload(Subject(RESNET).build(SMALL), 'neck', SMALL)


def test_the_token_side_is_what_sees_tokens_alone():
    neck = Subject(VT_FPN).build(SMALL).neck
    parts = token_side(neck)
    assert neck.relation in parts
    matrices = [part for part in parts if part is not neck.relation]
    assert all(isinstance(part, GroupedLinear) for part in matrices)
    assert {id(part) for part in matrices}.isdisjoint(map(id, neck.relation.modules()))
    maps = Workload(Subject(VT_FPN).build(SMALL), 'neck', SMALL).inputs
    with torch.no_grad():
        seconds = time_token_side(neck, lambda: neck(maps), torch.device('cpu'), rounds=4)
    assert len(seconds) == 4
    assert min(seconds) > 0
    assert not neck.relation._forward_hooks
    assert token_side(Subject(FPN).build(SMALL).neck) == []


def test_a_comparison_holds_every_model_part_and_kind():
    comparison = Comparison(
        [Subject(FPN), *Subject(VT_FPN).with_tokens([4, 8])],
        ['inference', 'training'],
        rounds=3,
        seconds=1,
        memory=False,
    )
    comparison.measure(SMALL, ['neck'])
    found = comparison.measurements
    assert [(m.kind, m.tokens) for m in found] == [(k, t) for k in comparison.kinds for t in (None, 4, 8)]
    assert comparison.ceilings == []
    for m in found:
        assert len(m.seconds) == 3
        assert m.bound_seconds is None
        assert (m.token_side_seconds is not None) == (m.kind == 'inference' and m.tokens is not None)
    assert found[1].flops < found[2].flops < found[0].flops
    rows = tabulate(found[:3])
    assert rows[0]['faster'] == rows[0]['fewer'] == '1.000x'
    assert rows[2]['fewer'] == f'{found[0].flops / found[2].flops:.3f}x'


def test_one_model_named_twice_is_refused():
    with pytest.raises(ValueError, match='same name'):
        Comparison([Subject(FPN), Subject(FPN)], ['inference'], rounds=3, seconds=1)


# In a fresh process: one that has freed much memory may hold enough of it to allocate without growing.
PEAKS = """
import torch
from projects.speed.timing import peak_memory

def allocate():
    torch.ones(64, 1024, 1024)  # 256 MiB

print(peak_memory(lambda: None, torch.device('cpu')), peak_memory(allocate, torch.device('cpu')))
"""


def test_peak_memory_sees_what_a_step_allocates_and_frees():
    result = subprocess.run([sys.executable, '-c', PEAKS], capture_output=True, text=True, check=True)
    before, after = map(int, result.stdout.splitlines()[-1].split())
    assert after - before > 200 * 2**20


def test_peak_memory_is_the_models_alone():
    """Weights in inference; weights, gradients and momentum in training; activations are small at this size."""
    setting = Setting(batch_size=2, size=(64, 64))
    weights = 4 * sum(parameter.numel() for parameter in Subject('torchvision:resnet34').build(setting).parameters())
    peaks = peak_memories(Subject('torchvision:resnet34'), 'whole', setting, ('inference', 'training'))
    assert weights * 0.95 < peaks['inference'] < weights * 1.4
    assert 3 * weights * 0.95 < peaks['training'] < 4.4 * weights  # and what the update makes on the way


def measurement(model='a', size=(10, 10), tokens=None, seconds=(1.0, 2.0, 4.0), token_side=None, kind='inference'):
    return Measurement(
        model=model,
        part='neck',
        kind=kind,
        device='cpu',
        dtype='float32',
        memory_format='channels_last',
        compile='off',
        batch_size=1,
        size=size,
        tokens=tokens,
        seconds=list(seconds),
        flops=100,
        parameters=1,
        bound_seconds=1.0,
        token_side_seconds=token_side,
    )


def test_spread_is_the_interquartile_range_over_the_median():
    assert measurement().median == 2
    assert measurement().spread == (3 - 1.5) / 2
