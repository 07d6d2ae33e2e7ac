"""What ``tools/test.py --benchmark`` reports of a model and of its neck."""

from dataclasses import asdict, dataclass

import numpy as np
import torch
from torch import nn

from vt.analysis.complexity.counting import count_complexity, has_neck, neck_inputs

from .timing import Step, describe_device, peak_memory, time_alone


@dataclass
class Cost:
    """The cost of a module.

    Attributes:
        flops: multiply-adds of one image.
        parameters: number of parameters.
        latency_median: seconds of one image, batch 1.
        latency_95: the 95th percentile of the same.
        throughput: images a second at the batch size, from the median step.
        peak_memory: bytes at the peak of a step at the batch size.
    """

    flops: int
    parameters: int
    latency_median: float
    latency_95: float
    throughput: float
    peak_memory: int


@dataclass
class Benchmark(Cost):
    """The cost of one model on one device, and of its neck alone.

    Attributes:
        batch_size: images in a step.
        image_shape: channels, height, width.
        device: name of the device.
        dtype: precision of the weights and images.
        torch: version of PyTorch.
        neck: cost of the neck on the maps that it is given; None where no neck has parameters.
    """

    batch_size: int
    image_shape: tuple[int, int, int]
    device: str
    dtype: str
    torch: str
    neck: Cost | None


def benchmark_inference(model: nn.Module, image_shape: tuple[int, int, int], batch_size: int) -> Benchmark:
    """Measure a classifier or segmentor of OpenMMLab, from normalised images to scores, on the device it is on.

    A segmentor's scores are those of its head, before they are enlarged to the image's size.

    Args:
        model: called with ``mode='tensor'``.
        image_shape: channels, height, width of an image after the pipeline.
        batch_size: images in the step whose throughput is measured.
    """
    parameter = next(model.parameters())
    one, batch = (
        torch.randn(size, *image_shape, device=parameter.device, dtype=parameter.dtype) for size in (1, batch_size)
    )
    neck = None
    if has_neck(model):
        neck = _measure(model.neck, 'Neck', neck_inputs(model, one), neck_inputs(model, batch), batch_size)
    return Benchmark(
        **asdict(_measure(model, 'Model', one, batch, batch_size, mode='tensor')),
        batch_size=batch_size,
        image_shape=tuple(image_shape),
        device=describe_device(parameter.device),
        dtype=str(parameter.dtype).removeprefix('torch.'),
        torch=torch.__version__,
        neck=neck,
    )


def _measure(module: nn.Module, title: str, one, batch, batch_size: int, **options) -> Cost:
    device = next(module.parameters()).device
    complexity = count_complexity(module, one, **options)
    latency = time_alone(inference_step(module, one, **options), device, f'{title}, latency', rounds=100)
    step = inference_step(module, batch, **options)
    throughput = batch_size / np.median(time_alone(step, device, f'{title}, throughput'))
    return Cost(
        complexity.flops,
        complexity.parameters,
        float(np.median(latency)),
        float(np.percentile(latency, 95)),
        float(throughput),
        peak_memory(step, device),
    )


def inference_step(module: nn.Module, inputs, **options) -> Step:
    """A step that calls ``module(inputs, **options)`` without gradients; puts the module in evaluation mode."""
    module.eval()

    @torch.inference_mode()
    def step() -> None:
        module(inputs, **options)

    return step


def describe_benchmark(result: Benchmark) -> list[dict[str, str]]:
    """One benchmark as rows, the whole model and its neck, in the units that people read."""
    rows = [_describe_cost('whole model', result, result.batch_size)]
    return [*rows, _describe_cost('neck alone', result.neck, result.batch_size)] if result.neck else rows


def _describe_cost(part: str, cost: Cost, batch_size: int) -> dict[str, str]:
    return {
        'part': part,
        'FLOPs (G)': f'{cost.flops / 1e9:.3f}',
        'parameters (M)': f'{cost.parameters / 1e6:.2f}',
        'latency, median (ms)': f'{cost.latency_median * 1e3:.2f}',
        'latency, 95 % (ms)': f'{cost.latency_95 * 1e3:.2f}',
        f'images/s at batch {batch_size}': f'{cost.throughput:.1f}',
        'peak memory (MB)': f'{cost.peak_memory / 1e6:.0f}',
    }
