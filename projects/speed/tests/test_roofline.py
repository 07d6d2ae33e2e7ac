"""The roofline: operators are counted as by hand, bounds computed as by hand, and ceilings are measured."""

import json
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from projects.speed.ceilings import CeilingMeter, Ceilings
from projects.speed.comparison import Comparison
from projects.speed.roofline import Operator, Roofline, bound_seconds, matrix_operators, workload_operators
from projects.speed.settings import Setting
from projects.speed.subject import Subject
from projects.speed.tests.module_call import call
from projects.speed.workload import Workload
from vt import ops
from vt.analysis.speed import time_interleaved
from vt.engine.counting import count_complexity

CONFIGS = Path(__file__).parents[3] / 'configs'
CEILINGS = Ceilings(matmul=1e9, convolution1x1=1e9, convolution3x3=2e9, copy=1e8)


def count(module, x, training=False, dtype=torch.float32):
    return matrix_operators(module, x, dtype, training)


def test_the_path_of_flash_attention_is_the_equations():
    x, queries = torch.randn(2, 12, 5, 7, dtype=torch.float64), torch.randn(5, 12, dtype=torch.float64)
    keys, values = torch.randn(2, 3, 5, 12, dtype=torch.float64), torch.randn(2, 3, 5, 4, dtype=torch.float64)
    results = []
    for path in ('plain', 'sdpa'):
        with ops.use_path(path):
            results.append([ops.tokenize(x, queries, 2, 0.7), ops.project_onto(x, keys, values, 0.7)])
    torch.testing.assert_close(*results)


def test_a_convolution_reads_map_and_weights_once_and_writes_its_map():
    convolution = nn.Conv2d(3, 8, 3, padding=1, bias=False)
    images, weights, out = 2 * 3 * 10 * 12, 8 * 3 * 9, 2 * 8 * 10 * 12
    flops = out * 3 * 9
    x = torch.randn(2, 3, 10, 12)
    assert count(convolution, x) == [Operator('convolution', flops, 4 * (images + weights + out))]
    # Backward to the weights alone: reads the gradient, the map and the weights, writes the weights' gradient.
    _, backward = count(convolution, x, training=True)
    assert backward == Operator('convolution', flops, 4 * (out + images + weights + weights))
    # And to the map, too: twice the products.
    _, backward = count(convolution, x.requires_grad_(), training=True)
    assert backward == Operator('convolution', 2 * flops, 4 * (out + images + weights + weights + images))


def test_a_matrix_product_is_counted_in_the_bytes_of_its_precision():
    linear = nn.Linear(64, 32, bias=False)
    values = 5 * 64 + 64 * 32 + 5 * 32
    assert count(linear, torch.randn(5, 64)) == [Operator('matmul', 5 * 64 * 32, 4 * values)]
    assert count(linear, torch.randn(5, 64), dtype=torch.bfloat16)[0].bytes == 2 * values


class Pooling(nn.Module):
    """Four tokens from pixels that are key and value in one."""

    def __init__(self):
        super().__init__()
        self.queries = nn.Parameter(torch.randn(1, 1, 4, 16))

    def forward(self, x):
        return scaled_dot_product_attention(self.queries, x, x)


def test_an_attention_reads_its_pixels_once_and_writes_their_gradient_once():
    pixels, queries, tokens = 100 * 16, 4 * 16, 4 * 16
    forward, backward = count(Pooling(), torch.randn(1, 1, 100, 16).requires_grad_(), training=True)
    assert forward == Operator('attention', 2 * 4 * 100 * 16, 4 * (pixels + queries + tokens))
    assert backward == Operator('attention', 4 * 4 * 100 * 16, 4 * (2 * pixels + 2 * queries + tokens))


@pytest.mark.parametrize(
    ('operator', 'seconds'),
    [
        (Operator('matmul', 5 * 10**8, 10**7), 1.0),  # arithmetic: 1e9 FLOP at 1e9 a second
        (Operator('matmul', 10**7, 2 * 10**8), 2.0),  # bytes
        (Operator('convolution', 10**9, 1), 1.0),  # at the faster convolution's rate
        (Operator('attention', 10**9, 1), 2.0),
    ],
)
def test_an_operator_takes_the_longer_of_arithmetic_and_bytes(operator, seconds):
    assert bound_seconds([operator], CEILINGS) == pytest.approx(seconds)
    assert bound_seconds([operator, operator], CEILINGS) == pytest.approx(2 * seconds)


@pytest.mark.parametrize('name', ['vt_fpn/vt-fpn_r18_digit-scenes', 'baselines/fpn_r18_digit-scenes'])
def test_operators_have_the_flops_that_are_counted_elsewhere(name):
    setting = Setting(batch_size=2, size=(96, 64))
    workload = Workload(Subject(str(CONFIGS / f'{name}.py')).build(setting), 'neck', setting)
    flops = {kind: sum(op.flops for op in workload_operators(workload, kind)) for kind in ('inference', 'training')}
    assert flops['inference'] == 2 * workload.count().flops  # two images
    assert flops['training'] == 3 * flops['inference']  # each product has a gradient to both of its operands
    assert workload.count() == count_complexity(workload.module, tuple(x[:1] for x in workload.inputs))


def test_ceilings_are_rates_of_the_median_run():
    device = torch.device('cpu')
    meter = CeilingMeter(device, torch.float32)
    times = time_interleaved(meter.steps, device, 'Ceilings', rounds=3, warmup=1)
    ceilings = meter.ceilings(times)
    assert ceilings.matmul == pytest.approx(2 * 1536**3 / sorted(times['matmul'])[1])
    assert ceilings.copy == pytest.approx(2 * 2**27 / sorted(times['copy'])[1])
    assert ceilings.convolution == max(ceilings.convolution1x1, ceilings.convolution3x3)


def test_a_comparison_measures_the_ceilings_in_every_round():
    setting = Setting(batch_size=1, size=(64, 64))
    neck = Subject(str(CONFIGS / 'vt_fpn/vt-fpn_r18_digit-scenes.py'))
    comparison = Comparison([neck], ['inference', 'training'], rounds=3, seconds=1, memory=False, meter=Roofline)
    comparison.measure(setting, ['neck'])
    assert [row['kind'] for row in comparison.ceilings] == comparison.kinds
    for row, measured in zip(comparison.ceilings, comparison.measurements):
        workload = Workload(neck.build(setting), 'neck', setting)
        ceilings = Ceilings(**{name: row[name] for name in Ceilings.__dataclass_fields__})
        assert measured.bound_seconds == bound_seconds(workload_operators(workload, row['kind']), ceilings)


def test_the_ceilings_beside_a_model(tmp_path):
    arguments = [CONFIGS / 'vt_resnet/vt-resnet18_digits.py', '--sizes', '64x32', '--batch-sizes', '1', '--rounds', '3']
    arguments += ['--kinds', 'inference', '--ceilings', '--no-memory', '--out', 'b.json']
    result = call('compare', *arguments, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    record = json.loads((tmp_path / 'b.json').read_text())
    assert record['results'][0]['bound_seconds'] > 0
    assert record['ceilings'][0]['matmul'] > 0
