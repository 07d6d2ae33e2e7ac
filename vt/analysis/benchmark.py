"""What ``tools/test.py --benchmark`` and ``tools/benchmark.py`` report of a model."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from .complexity import count_complexity
from .speed import Step, describe_device, peak_memory, time_alone


@dataclass
class Benchmark:
    """The cost of one model on one device.

    Attributes:
        flops: multiply-adds of one image.
        parameters: number of parameters.
        latency_median: seconds of one image, batch 1.
        latency_95: the 95th percentile of the same.
        throughput: images a second at ``batch_size``, from the median step.
        peak_memory: bytes at the peak of a step at ``batch_size``.
        batch_size: images in a step.
        image_shape: channels, height, width.
        device: name of the device.
        dtype: precision of the weights and images.
        torch: version of PyTorch.
    """

    flops: int
    parameters: int
    latency_median: float
    latency_95: float
    throughput: float
    peak_memory: int
    batch_size: int
    image_shape: tuple[int, int, int]
    device: str
    dtype: str
    torch: str


def benchmark_inference(model: nn.Module, image_shape: tuple[int, int, int], batch_size: int) -> Benchmark:
    """Measure a classifier or segmentor of OpenMMLab, from normalised images to scores, on the device it is on.

    Args:
        model: called with ``mode='tensor'``.
        image_shape: channels, height, width of an image after the pipeline.
        batch_size: images in the step whose throughput is measured.
    """
    parameter = next(model.parameters())
    device = parameter.device
    one = torch.randn(1, *image_shape, device=device, dtype=parameter.dtype)
    batch = torch.randn(batch_size, *image_shape, device=device, dtype=parameter.dtype)
    complexity = count_complexity(model, one, mode='tensor')
    latency = time_alone(inference_step(model, one), device, 'Latency', rounds=100)
    step = inference_step(model, batch)
    throughput = batch_size / np.median(time_alone(step, device, 'Throughput'))
    return Benchmark(
        complexity.flops,
        complexity.parameters,
        float(np.median(latency)),
        float(np.percentile(latency, 95)),
        float(throughput),
        peak_memory(step, device),
        batch_size,
        tuple(image_shape),
        describe_device(device),
        str(parameter.dtype).removeprefix('torch.'),
        torch.__version__,
    )


def inference_step(model: nn.Module, images: torch.Tensor) -> Step:
    """A step that scores ``images`` without gradients; puts the model in evaluation mode."""
    model.eval()

    @torch.inference_mode()
    def step() -> None:
        model(images, mode='tensor')

    return step


def training_step(model: nn.Module, images: torch.Tensor, samples: list) -> Step:
    """A step that trains on ``images``: forward, loss, backward, SGD's update; puts the model in training mode."""
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6, momentum=0.9)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        loss, _ = model.parse_losses(model(images, samples, mode='loss'))
        loss.backward()
        optimizer.step()

    return step
