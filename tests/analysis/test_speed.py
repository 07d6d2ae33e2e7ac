"""Timing, models side by side, and the cost of one: what is run, and what is told of it; no test holds a time limit."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

from vt.analysis import speed
from vt.analysis.speed import Setting, Workload, benchmark_inference, compare, describe_benchmark, tabulate
from vt.apis import get_model
from vt.engine.run.record import describe_device

RESNET, VT_RESNET = 'resnet18-half_digits', 'vt-resnet18-half_digits'
CLIPS = str(Path(__file__).parents[1] / 'video/files.py')
CPU = torch.device('cpu')
SMALL = Setting(batch_size=2, size=(32, 64))


def test_a_training_step_waits_for_no_element():
    """On a GPU the host would wait for each element that it reads; and each weight learns."""
    model = get_model(VT_RESNET)
    step = Workload(SMALL.place(model), SMALL).step('training')
    step()
    assert model.training
    assert all(weight.grad is not None for weight in model.parameters() if weight.requires_grad)
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        step()
    names = {event.key for event in seen.key_averages()}
    assert 'aten::convolution' in names
    assert names.isdisjoint({'aten::_local_scalar_dense', 'aten::nonzero'})


def test_clips_are_counted_by_hand():
    setting = Setting(batch_size=2, size=(4, 24, 24))
    workload = Workload(setting.place(get_model(CLIPS)), setting)
    for kind in ('inference', 'training'):
        workload.step(kind)()
    assert workload.count().flops == 4 * 6 * 6 * 8 * 3 * 75 + 8 * 2


def test_float32_is_exact_on_a_cpu_and_where_it_is_asked_for():
    cases = ('cuda', 'tf32', True), ('cuda', 'bfloat16', True), ('cuda', 'float32', False), ('cpu', 'bfloat16', False)
    for device, dtype, tf32 in cases:
        Setting(device, dtype).choose_products()
        assert torch.get_float32_matmul_precision() == ('high' if tf32 else 'highest')
        assert torch.backends.cudnn.allow_tf32 == tf32
        assert not torch.backends.cuda.cudnn_sdp_enabled()
    assert Setting(dtype='tf32').tensor_dtype == torch.float32
    with Setting(dtype='tf32').autocast():  # which is none
        assert torch.mm(torch.ones(2, 2), torch.ones(2, 2)).dtype == torch.float32


def test_models_are_compared_with_the_first():
    found = compare({name: get_model(name) for name in (RESNET, VT_RESNET)}, SMALL, 'inference', 3, 1.0)
    assert [(each['model'], len(each['seconds'])) for each in found] == [(RESNET, 3), (VT_RESNET, 3)]
    assert found[1]['flops'] != found[0]['flops']
    rows = tabulate([found[0] | dict(seconds=[1, 2, 4], flops=100), found[1] | dict(seconds=[1] * 3, flops=50)], SMALL)
    found = [tuple(row[key] for key in ('faster', 'fewer', 'spread (%)', 'images/s')) for row in rows]
    assert found == [('1.000x', '1.000x', '75.0', '1'), ('2.000x', '2.000x', '0.0', '2')]


def test_steps_run_in_turn_on_a_device_with_its_threads():
    calls = []
    steps = {'a': lambda: calls.append('a'), 'b': lambda: calls.append('b')}
    for seconds, rounds in ((60, 5), (0, 3)):  # as many as the time allows, three at least
        calls.clear()
        times = speed.time_interleaved(steps, CPU, 'Steps', rounds=5, warmup=2, seconds=seconds)
        assert calls == ['a', 'b'] * (2 + rounds)
        assert [len(times[name]) for name in 'ab'] == [rounds, rounds]
    threads = torch.get_num_threads()
    assert describe_device(CPU).endswith(f', {threads} thread' if threads == 1 else f', {threads} threads')


def test_a_model_is_measured(monkeypatch):
    """Latency of one image, throughput of a batch; a stand-in for the clock, of 1 to 101 seconds an image."""
    loader = SimpleNamespace(dataset=[dict(inputs=[torch.zeros(3, 32, 32), None])], batch_size=2)
    times = np.arange(1.0, 102)
    monkeypatch.setattr(
        speed,
        'time_interleaved',
        lambda steps, *_, **options: {k: len(step.args[0]) * times for k, step in steps.items()},
    )
    found = benchmark_inference(SimpleNamespace(model=get_model(VT_RESNET), test_dataloader=loader))
    assert (found['latency_median'], found['latency_95'], found['throughput']) == (51, 96, 2 / 102)
    assert found['image_shape'] == (3, 32, 32)
    known = dict(flops=10**9, parameters=10**6, latency_median=0.002, latency_95=0.003, throughput=1e3)
    row = describe_benchmark(found | known | dict(peak_memory=10**8))
    assert [*row.values()] == ['1.000', '1.00', '2.00', '3.00', '1000.0', '100']
