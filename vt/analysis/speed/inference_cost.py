"""Inference cost of a model and of its neck, for ``tools/test.py --benchmark``."""

from functools import partial
from typing import Any

import numpy as np
import torch
from mmengine.runner import Runner
from torch import nn

from vt.checkpoints.weights import unwrap
from vt.engine.counting import count_complexity, has_neck, neck_inputs, one_input

from .timing import time_interleaved


def benchmark_inference(runner: Runner) -> dict[str, Any]:
    """Measure the model of a runner, from normalised images to scores, at the size of the test images.

    Wrappers for distribution or test-time augmentation are removed first. The scores of a segmentor are those of its
    head, without resizing to the image size.

    Returns:
        ``batch_size``; ``image_shape``, ``(3, H, W)``, or of a clip ``(3, T, H, W)``; ``dtype``; ``flops``,
        multiply-adds of an image or clip, and ``parameters``; ``latency_median`` and ``latency_95``, the 95th
        percentile, seconds of one image; ``throughput``, images/s from the median step at the batch size; on a GPU
        ``peak_memory`` of a step, bytes; and ``neck``, the same of the neck from ``flops`` on, None without a neck that
        has parameters.
    """
    model, loader = unwrap(runner.model), runner.test_dataloader
    shape, parameter = one_input(loader.dataset).shape, next(model.parameters())
    one, batch = (torch.randn(size, *shape).to(parameter) for size in (1, loader.batch_size))
    neck = None
    if has_neck(model):
        neck = _measure(model.neck, 'Neck', neck_inputs(model, one), neck_inputs(model, batch), loader.batch_size)
    about = dict(image_shape=tuple(shape), dtype=str(parameter.dtype).removeprefix('torch.'))
    whole = _measure(model, 'Model', one, batch, loader.batch_size, mode='tensor')
    return dict(batch_size=loader.batch_size, **about, **whole, neck=neck)


def _measure(module: nn.Module, title: str, one: Any, batch: Any, batch_size: int, **options) -> dict[str, float]:
    """Measure ``module(one, **options)`` and ``module(batch, **options)``; the module stays in evaluation mode."""
    call, device = torch.inference_mode()(module.eval().__call__), next(module.parameters()).device
    latency, seconds = (
        time_interleaved({what: partial(call, x, **options)}, device, f'{title}, {what}', rounds, seconds=20.0)[what]
        for what, x, rounds in (('latency', one, 100), ('throughput', batch, 20))
    )
    cost = dict(
        **vars(count_complexity(module, one, **options)),
        latency_median=float(np.median(latency)),
        latency_95=float(np.percentile(latency, 95)),
        throughput=float(batch_size / np.median(seconds)),
    )
    if device.type == 'cuda':
        torch.cuda.reset_peak_memory_stats(device)
        call(batch, **options)
        cost['peak_memory'] = torch.cuda.max_memory_allocated(device)
    return cost


def describe_benchmark(result: dict[str, Any]) -> list[dict[str, str]]:
    """Return the rows of a table of a benchmark: the whole model and its neck."""
    what = 'images' if len(result['image_shape']) == 3 else 'clips'
    return [
        {
            'part': part,
            'FLOPs (G)': f'{cost["flops"] / 1e9:.3f}',
            'parameters (M)': f'{cost["parameters"] / 1e6:.2f}',
            'latency, median (ms)': f'{cost["latency_median"] * 1e3:.2f}',
            'latency, 95 % (ms)': f'{cost["latency_95"] * 1e3:.2f}',
            f'{what}/s at batch {result["batch_size"]}': f'{cost["throughput"]:.1f}',
        }
        | ({'peak memory (MB)': f'{cost["peak_memory"] / 1e6:.0f}'} if 'peak_memory' in cost else {})
        for part, cost in {'whole model': result, 'neck alone': result['neck']}.items()
        if cost
    ]
