"""What ``tools/test.py --benchmark`` reports of a model and of its neck."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from mmengine.runner import Runner
from torch import nn

from vt.analysis.complexity.counting import count_complexity, has_neck, neck_inputs, one_input
from vt.engine.model_parts import unwrap

from .timing import describe_device, peak_memory, time_alone


@dataclass
class Cost:
    """The cost of a module: multiply-adds of one image or clip, parameters, and what was measured.

    ``latency_median`` and ``latency_95``, the 95th percentile, are seconds of one image; ``throughput``, images/s
    from the median step, and ``peak_memory``, bytes, are those at the batch size.
    """

    flops: int
    parameters: int
    latency_median: float
    latency_95: float
    throughput: float
    peak_memory: int


@dataclass
class Benchmark(Cost):
    """The cost of one model on one device, and of its neck alone, if it has one with parameters.

    ``image_shape`` is that of an image, ``(3, H, W)``, or of one clip of a video, ``(3, T, H, W)``.
    """

    batch_size: int
    image_shape: tuple[int, ...]
    device: str
    dtype: str
    torch: str
    neck: Cost | None


def benchmark_inference(runner: Runner) -> Benchmark:
    """Measure the model that a runner tested, from normalised images to scores, at the size of the test images.

    Wrappers, for distribution or test-time augmentation, are taken off: the model itself is measured. A segmentor's
    scores are those of its head, before they are enlarged to the image's size.
    """
    model, loader = unwrap(runner.model), runner.test_dataloader
    image = one_input(loader.dataset)
    parameter, batch_size = next(model.parameters()), loader.batch_size
    one, batch = (torch.randn(size, *image.shape).to(parameter) for size in (1, batch_size))
    neck = None
    if has_neck(model):
        neck = _measure(model.neck, 'Neck', neck_inputs(model, one), neck_inputs(model, batch), batch_size)
    return Benchmark(
        **asdict(_measure(model, 'Model', one, batch, batch_size, mode='tensor')),
        batch_size=batch_size,
        image_shape=tuple(image.shape),
        device=describe_device(parameter.device),
        dtype=str(parameter.dtype).removeprefix('torch.'),
        torch=torch.__version__,
        neck=neck,
    )


def _measure(module: nn.Module, title: str, one: Any, batch: Any, batch_size: int, **options) -> Cost:
    """The cost of ``module(one, **options)`` and ``module(batch, **options)``; evaluation mode stays on."""
    module.eval()
    call = torch.inference_mode()(module.__call__)
    device = next(module.parameters()).device
    complexity = count_complexity(module, one, **options)
    latency = time_alone(lambda: call(one, **options), device, f'{title}, latency', rounds=100)
    seconds = time_alone(lambda: call(batch, **options), device, f'{title}, throughput')
    return Cost(
        complexity.flops,
        complexity.parameters,
        float(np.median(latency)),
        float(np.percentile(latency, 95)),
        float(batch_size / np.median(seconds)),
        peak_memory(lambda: call(batch, **options), device),
    )


def describe_benchmark(result: Benchmark) -> list[dict[str, str]]:
    """One benchmark as rows, the whole model and its neck, in the units that people read."""
    parts = {'whole model': result, 'neck alone': result.neck}
    what = 'images' if len(result.image_shape) == 3 else 'clips'
    return [
        {
            'part': part,
            'FLOPs (G)': f'{cost.flops / 1e9:.3f}',
            'parameters (M)': f'{cost.parameters / 1e6:.2f}',
            'latency, median (ms)': f'{cost.latency_median * 1e3:.2f}',
            'latency, 95 % (ms)': f'{cost.latency_95 * 1e3:.2f}',
            f'{what}/s at batch {result.batch_size}': f'{cost.throughput:.1f}',
            'peak memory (MB)': f'{cost.peak_memory / 1e6:.0f}',
        }
        for part, cost in parts.items()
        if cost
    ]
