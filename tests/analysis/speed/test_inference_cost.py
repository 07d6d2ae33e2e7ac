"""What a model and its neck cost."""

from types import SimpleNamespace

import torch
from mmengine.registry import DefaultScope
from mmpretrain.registry import MODELS

from vt.analysis.speed.inference_cost import benchmark_inference, describe_benchmark

CLASSIFIER = dict(
    type='ImageClassifier',
    backbone=dict(type='ResNet', depth=18, base_channels=8, stem_channels=8),
    neck=dict(type='LinearNeck', in_channels=64, out_channels=16),
    head=dict(type='LinearClsHead', num_classes=3, in_channels=16),
)
NECK = dict(latency_median=0.002, latency_95=0.003, throughput=1000.0, flops=10**9, parameters=10**6, peak_memory=10**8)
WHOLE = dict(batch_size=8, image_shape=(3, 64, 64), dtype='float32', **NECK, neck=NECK)


def test_the_neck_is_a_row():
    whole, neck = describe_benchmark(WHOLE)
    assert [*whole.values()] == ['whole model', '1.000', '1.00', '2.00', '3.00', '1000.0', '100']
    assert neck['part'] == 'neck alone'
    assert len(describe_benchmark(WHOLE | dict(neck=None))) == 1


def test_a_model_is_measured_with_its_neck():
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        model = MODELS.build(CLASSIFIER)
    loader = SimpleNamespace(dataset=[dict(inputs=torch.zeros(3, 32, 32))], batch_size=2)
    found = benchmark_inference(SimpleNamespace(model=model, test_dataloader=loader))
    assert 0 < found['latency_median'] <= found['latency_95']
    assert found['neck']['parameters'] == 64 * 16 + 16 + 32
    assert [*describe_benchmark(found)[1]] == [*describe_benchmark(found)[0]]
