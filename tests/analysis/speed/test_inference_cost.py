"""What a model and its neck cost: on a GPU as CUDA graphs too, on a CPU without them."""

from dataclasses import asdict, replace
from types import SimpleNamespace

import pytest
import torch
from mmengine.registry import DefaultScope
from mmpretrain.registry import MODELS

from vt.analysis.speed.inference_cost import Benchmark, Cost, Speed, benchmark_inference, describe_benchmark

CLASSIFIER = dict(
    type='ImageClassifier',
    backbone=dict(type='ResNet', depth=18, base_channels=8, stem_channels=8),
    neck=dict(type='LinearNeck', in_channels=64, out_channels=16),
    head=dict(type='LinearClsHead', num_classes=3, in_channels=16),
)
EAGER = dict(latency_median=0.002, latency_95=0.003, throughput=1000.0)
GRAPH = Speed(0.001, 0.0015, 4000.0)
NECK = Cost(**EAGER, flops=10**9, parameters=10**6, peak_memory=10**8, cuda_graph=GRAPH)
WHOLE = Benchmark(
    **vars(NECK),
    batch_size=8,
    image_shape=(3, 64, 64),
    device='a card',
    dtype='float32',
    torch='2',
    compiled=False,
    neck=NECK,
)


def test_graphs_are_rows_beside_eager():
    rows = describe_benchmark(WHOLE)
    assert [row['part'] for row in rows] == [
        'whole model',
        'whole model, CUDA graph',
        'neck alone',
        'neck alone, CUDA graph',
    ]
    eager, graph = (list(row.values())[1:] for row in rows[:2])
    assert eager == ['1.000', '1.00', '2.00', '3.00', '1000.0', '100']
    assert graph == ['1.000', '1.00', '1.00', '1.50', '4000.0', '']
    alone = replace(WHOLE, cuda_graph=None, neck=None)
    assert [row['part'] for row in describe_benchmark(alone)] == ['whole model']


def measured(device):
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        model = MODELS.build(CLASSIFIER).to(device)
    loader = SimpleNamespace(dataset=[dict(inputs=torch.zeros(3, 32, 32))], batch_size=2)
    return benchmark_inference(SimpleNamespace(model=model, test_dataloader=loader))


def test_a_cpu_has_no_graphs():
    found = measured('cpu')
    assert found.latency_median > 0
    assert found.neck.parameters == 64 * 16 + 16 + 32
    record = asdict(found)
    assert record['cuda_graph'] is None
    assert record['neck']['cuda_graph'] is None
    assert [row['part'] for row in describe_benchmark(found)] == ['whole model', 'neck alone']


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason='needs a GPU')
def test_a_gpu_has_graphs():
    found = measured('cuda')
    assert found.cuda_graph.throughput > 0
    assert found.neck.cuda_graph.latency_median > 0
