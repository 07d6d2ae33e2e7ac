"""Inference cost of a model and of its neck, for ``tools/test.py --benchmark``."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from mmengine.runner import Runner
from torch import nn

from vt.checkpoints.weights import unwrap
from vt.engine.counting import count_complexity, has_neck, neck_inputs, one_input
from vt.engine.cuda_graphs import capture
from vt.engine.run_record import describe_device
from vt.engine.runner import VTRunner

from .timing import Step, peak_memory, time_interleaved


@dataclass
class Speed:
    """Speed of inference: ``latency_median`` and ``latency_95``, the 95th percentile, in seconds per image at batch
    size 1; ``throughput`` in images/s, from the median step at the batch size.
    """

    latency_median: float
    latency_95: float
    throughput: float


@dataclass
class Cost(Speed):
    """Cost of a module: multiply-adds of one image or clip, parameters, speed and memory.

    ``peak_memory`` is in bytes, at the batch size. ``cuda_graph`` is the speed of the module as one CUDA graph; None on
    a CPU, or if the capture fails.
    """

    flops: int
    parameters: int
    peak_memory: int
    cuda_graph: Speed | None


@dataclass
class Benchmark(Cost):
    """Cost of a model on one device, and of its neck if it has one with parameters.

    ``image_shape`` is the shape of an image, ``(3, H, W)``, or of a clip of a video, ``(3, T, H, W)``. ``compiled``
    tells whether the run used ``speed.compile``.
    """

    batch_size: int
    image_shape: tuple[int, ...]
    device: str
    dtype: str
    torch: str
    compiled: bool
    neck: Cost | None


def benchmark_inference(runner: Runner) -> Benchmark:
    """Measure the model of a runner, from normalised images to scores, at the size of the test images.

    Wrappers for distribution or test-time augmentation are removed first. The scores of a segmentor are those of its
    head, without resizing to the image size.
    """
    model, loader = unwrap(runner.model), runner.test_dataloader
    image = one_input(loader.dataset)
    parameter, batch_size = next(model.parameters()), loader.batch_size
    one, batch = (torch.randn(size, *image.shape).to(parameter) for size in (1, batch_size))
    neck = None
    if has_neck(model):
        neck = _measure(model.neck, 'Neck', neck_inputs(model, one), neck_inputs(model, batch), batch_size)
    whole = _measure(model, 'Model', one, batch, batch_size, mode='tensor')
    return Benchmark(
        **vars(whole),
        batch_size=batch_size,
        image_shape=tuple(image.shape),
        device=describe_device(parameter.device),
        dtype=str(parameter.dtype).removeprefix('torch.'),
        torch=torch.__version__,
        compiled=isinstance(runner, VTRunner) and bool(runner.speed.compile),
        neck=neck,
    )


def _measure(module: nn.Module, title: str, one: Any, batch: Any, batch_size: int, **options) -> Cost:
    """Measure ``module(one, **options)`` and ``module(batch, **options)``; the module stays in evaluation mode."""
    module.eval()
    call = torch.inference_mode()(module.__call__)
    device = next(module.parameters()).device
    complexity = count_complexity(module, one, **options)
    steps = [partial(call, inputs, **options) for inputs in (one, batch)]
    speed, memory, graph = _time(steps, batch_size, device, title), peak_memory(steps[1], device), None
    if device.type == 'cuda':
        try:
            replays = [capture(step)[0] for step in steps]
        except RuntimeError as error:
            print(f'{title}: cannot be captured as a CUDA graph ({str(error).strip().splitlines()[0]})')
        else:
            graph = _time(replays, batch_size, device, f'{title}, CUDA graph')
    return Cost(**vars(speed), **vars(complexity), peak_memory=memory, cuda_graph=graph)


def _time(steps: Sequence[Step], batch_size: int, device: torch.device, title: str) -> Speed:
    """Time a step of one image and a step of a batch."""
    latency, seconds = (
        time_interleaved({what: step}, device, f'{title}, {what}', rounds, seconds=20.0)[what]
        for step, what, rounds in zip(steps, ('latency', 'throughput'), (100, 20))
    )
    return Speed(float(np.median(latency)), float(np.percentile(latency, 95)), float(batch_size / np.median(seconds)))


def describe_benchmark(result: Benchmark) -> list[dict[str, str]]:
    """Return the rows of a table of a benchmark: the whole model and its neck."""
    costs = {'whole model': result, 'neck alone': result.neck}
    rows = [(part, cost, speed) for part, cost in costs.items() if cost for speed in (cost, cost.cuda_graph) if speed]
    what = 'images' if len(result.image_shape) == 3 else 'clips'
    return [
        {
            'part': part if speed is cost else f'{part}, CUDA graph',
            'FLOPs (G)': f'{cost.flops / 1e9:.3f}',
            'parameters (M)': f'{cost.parameters / 1e6:.2f}',
            'latency, median (ms)': f'{speed.latency_median * 1e3:.2f}',
            'latency, 95 % (ms)': f'{speed.latency_95 * 1e3:.2f}',
            f'{what}/s at batch {result.batch_size}': f'{speed.throughput:.1f}',
            'peak memory (MB)': f'{cost.peak_memory / 1e6:.0f}' if speed is cost else '',
        }
        for part, cost, speed in rows
    ]
