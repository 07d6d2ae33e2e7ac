"""What ``tools/test.py --benchmark`` reports of a model and of its neck."""

from dataclasses import asdict, dataclass

import numpy as np
import torch
from torch import Tensor, nn

from .complexity import count_complexity
from .speed import Step, describe_device, peak_memory, time_alone


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


def has_neck(model: nn.Module) -> bool:
    """Whether a model has a neck worth measuring: one with parameters."""
    neck = getattr(model, 'neck', None)
    return neck is not None and any(True for _ in neck.parameters())


@torch.no_grad()
def neck_inputs(model: nn.Module, images: Tensor) -> tuple[Tensor, ...]:
    """The maps that the backbone gives to the neck for ``images``, in evaluation mode."""
    model.eval()
    return tuple(model.backbone(images))


def inference_step(module: nn.Module, inputs, **options) -> Step:
    """A step that calls ``module(inputs, **options)`` without gradients; puts the module in evaluation mode."""
    module.eval()

    @torch.inference_mode()
    def step() -> None:
        module(inputs, **options)

    return step
