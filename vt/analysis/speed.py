"""Measure the speed of models, with random inputs: time, FLOPs and parameters.

Steps that are compared run in turn in one process, A B C A B C ..., so that drifts in the speed of the machine affect
all of them; medians and ratios are reported.

Letters: N batch, H and W height and width of an image, T frames of a clip.
"""

import copy
import math
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from mmengine.runner import Runner
from mmengine.structures import PixelData
from mmpretrain.structures import DataSample
from rich.progress import track
from torch import Tensor, nn

from vt.checkpoints.weights import unwrap
from vt.engine.counting import Complexity, count_complexity, one_input
from vt.models.optimize import optimize_for

Step = Callable[[], object]
SHORTEST_RUN = 0.01  # seconds on a GPU


def time_interleaved(
    steps: dict[Hashable, Step], device: torch.device, title: str, rounds: int, warmup: int = 3, seconds: float = 60.0
) -> dict[Hashable, np.ndarray]:
    """Time steps in turn; return the seconds of each round, ``(rounds,)``, by the names of the steps.

    A GPU is synchronised around each run. There, a run repeats a short step until it takes about ten milliseconds, so
    that a step is launched while the previous one is still computed.

    Args:
        steps: steps to time, by name.
        device: their device.
        title: title of the progress bar.
        rounds: number of runs of each step.
        warmup: number of runs of each step before timing.
        seconds: approximate time limit; it reduces the number of rounds, to 3 at least.
    """
    repeats = dict.fromkeys(steps, 1)
    for _ in range(warmup):
        once = {name: run_seconds(step, 1, device) for name, step in steps.items()}
    if device.type == 'cuda':
        repeats = {name: max(1, math.ceil(SHORTEST_RUN / value)) for name, value in once.items()}
    a_round = sum(value * repeats[name] for name, value in once.items())
    rounds = max(3, min(rounds, int(seconds / a_round)))
    times = [
        [run_seconds(step, repeats[name], device) for name, step in steps.items()] for _ in track(range(rounds), title)
    ]
    return dict(zip(steps, np.array(times).T))


def run_seconds(step: Step, repeats: int, device: torch.device) -> float:
    """Return the mean seconds of ``repeats`` consecutive runs; a GPU is synchronised before and after."""
    synchronize(device)
    start = time.perf_counter()
    for _ in range(repeats):
        step()
    synchronize(device)
    return (time.perf_counter() - start) / repeats


def synchronize(device: torch.device) -> None:
    """Wait for a GPU; do nothing on a CPU."""
    if device.type == 'cuda':
        torch.cuda.synchronize(device)


@dataclass(frozen=True)
class Setting:
    """How models are run; weights and images are in channels_last.

    Attributes:
        device: name of the device, as in PyTorch.
        dtype: ``'tf32'``: float32 with TensorFloat-32 convolutions and matrix products, as runs on a GPU;
            ``'float32'``: exact products, as runs on a CPU; or the precision of autocast, as with ``--amp``: weights
            are float32, and operators without autocast run as with ``'tf32'``.
        batch_size: N.
        size: H and W of images, or T, H and W of clips.
    """

    device: str = 'cpu'
    dtype: str = 'float32'
    batch_size: int = 8
    size: tuple[int, ...] = (224, 224)

    def describe(self) -> str:
        """Describe the setting in one line, for titles."""
        return f'batch {self.batch_size}, {"x".join(map(str, self.size))}, {self.dtype}'

    @property
    def tensor_dtype(self) -> torch.dtype:
        """Precision of the operands of matrix products."""
        return torch.float32 if self.dtype == 'tf32' else getattr(torch, self.dtype)

    def autocast(self) -> torch.autocast:
        """Return the autocast context of a forward pass."""
        lower = self.tensor_dtype != torch.float32
        return torch.autocast(torch.device(self.device).type, self.tensor_dtype, enabled=lower)

    def choose_products(self) -> None:
        """Set the precision of float32 products for this process, and PyTorch's own attention, as runs do."""
        tf32 = torch.device(self.device).type == 'cuda' and self.dtype != 'float32'
        torch.set_float32_matmul_precision('high' if tf32 else 'highest')
        torch.backends.cudnn.allow_tf32 = tf32
        torch.backends.cuda.enable_cudnn_sdp(False)

    def place(self, model: nn.Module) -> nn.Module:
        """Move a model to the device and choose its implementations; return it."""
        return optimize_for(model.to(self.device))

    def random(self, *shape: int) -> Tensor:
        """Return random images, clips or maps of a shape; only 4-D tensors are in channels_last, as in a run."""
        layout = torch.channels_last if len(shape) == 4 else torch.contiguous_format
        return torch.randn(shape, device=self.device).contiguous(memory_format=layout)

    def forward(self, module: nn.Module) -> Callable[..., Any]:
        """Return the forward pass of a module in the precision of the setting."""
        return self.autocast()(module.__call__)


class Workload:
    """A model of OpenMMLab with random inputs: images ``(N, 3, H, W)`` or clips ``(N, 3, T, H, W)``."""

    def __init__(self, model: Any, setting: Setting) -> None:
        self.module, self.setting = model, setting
        self.inputs = setting.random(setting.batch_size, 3, *setting.size)

    def count(self) -> Complexity:
        """Count multiply-adds of one image in inference, and parameters, on the meta device."""
        skeleton = copy.deepcopy(self.module).to('meta').requires_grad_(False)  # gradients bar views
        return count_complexity(skeleton, self.inputs[:1].to('meta', torch.float32), mode='tensor')

    def step(self, kind: str) -> Step:
        """Return a step of ``'inference'``, or ``'training'``: forward, loss, backward and SGD update; set the mode."""
        self.module.train(kind == 'training')
        forward = self.setting.forward(self.module)
        if kind == 'inference':
            return torch.inference_mode()(lambda: forward(self.inputs, mode='tensor'))
        samples = self._samples()
        optimizer = torch.optim.SGD(self.module.parameters(), lr=1e-6, momentum=0.9)

        def step() -> None:
            optimizer.zero_grad(set_to_none=True)
            loss, _ = self.module.parse_losses(forward(self.inputs, samples, mode='loss'))
            loss.backward()
            optimizer.step()

        return step

    def _samples(self) -> list:
        """Return targets for the loss: a class per image, or per pixel for a segmentor."""
        if not hasattr(self.module, 'decode_head'):
            return [DataSample().set_gt_label(0).to(self.inputs.device) for _ in self.inputs]
        labels = torch.zeros(1, *self.setting.size, dtype=torch.long, device=self.inputs.device)
        from mmseg.structures import SegDataSample  # not for classifiers

        return [SegDataSample(gt_sem_seg=PixelData(data=labels)) for _ in self.inputs]


def compare(
    models: dict[str, nn.Module], setting: Setting, kind: str, rounds: int, seconds: float
) -> list[dict[str, Any]]:
    """Measure models, by name, in inference or training in one setting, to whose device they are moved, interleaved.

    Returns:
        Of each model ``model``, its name, ``kind``, ``seconds`` of each step, ``flops``, multiply-adds of one image,
        and ``parameters``.
    """
    setting.choose_products()
    device = torch.device(setting.device)
    warmup = 5 if device.type == 'cuda' else 2  # the first steps on a GPU select kernels
    workloads = {name: Workload(setting.place(model), setting) for name, model in models.items()}
    steps = {name: workload.step(kind) for name, workload in workloads.items()}
    times = time_interleaved(steps, device, f'{kind.capitalize()}, {setting.describe()}', rounds, warmup, seconds)
    return [
        dict(model=name, kind=kind, seconds=times[name].tolist(), **vars(workload.count()))
        for name, workload in workloads.items()
    ]


def tabulate(measurements: Sequence[dict[str, Any]], setting: Setting) -> list[dict[str, str]]:
    """Return a row per model of :func:`compare`, compared with the first."""
    medians = [float(np.median(each['seconds'])) for each in measurements]
    spreads = [float(np.subtract(*np.percentile(each['seconds'], (75, 25)))) for each in measurements]  # interquartile
    return [
        {
            'model': each['model'],
            'FLOPs (G)': f'{each["flops"] / 1e9:.3f}',
            'fewer': f'{measurements[0]["flops"] / each["flops"]:.3f}x',
            'parameters (M)': f'{each["parameters"] / 1e6:.2f}',
            'median (ms)': f'{1e3 * median:.4g}',
            'spread (%)': f'{100 * spread / median:.1f}',
            'faster': f'{medians[0] / median:.3f}x',
            f'{"images" if len(setting.size) == 2 else "clips"}/s': f'{setting.batch_size / median:.4g}',
        }
        for each, median, spread in zip(measurements, medians, spreads)
    ]


def benchmark_inference(runner: Runner) -> dict[str, Any]:
    """Measure the model of a runner, from normalised images to scores, at the size of the test images.

    Wrappers for distribution or test-time augmentation are removed first. The scores of a segmentor are those of its
    head, without resizing to the image size.

    Returns:
        ``batch_size``; ``image_shape``, ``(3, H, W)``, or of a clip ``(3, T, H, W)``; ``dtype``; ``flops``,
        multiply-adds of an image or clip, and ``parameters``; ``latency_median`` and ``latency_95``, the 95th
        percentile, seconds of one image; ``throughput``, images/s from the median step at the batch size; on a GPU
        ``peak_memory`` of a step, bytes.
    """
    model, loader = unwrap(runner.model).eval(), runner.test_dataloader
    shape, parameter = one_input(loader.dataset).shape, next(model.parameters())
    call, device = torch.inference_mode()(partial(model, mode='tensor')), parameter.device
    steps = {size: partial(call, torch.randn(size, *shape).to(parameter)) for size in (1, loader.batch_size)}
    times = {size: time_interleaved({size: step}, device, f'Batch {size}', 100)[size] for size, step in steps.items()}
    result = dict(
        batch_size=loader.batch_size,
        image_shape=tuple(shape),
        dtype=str(parameter.dtype).removeprefix('torch.'),
        **vars(count_complexity(model, steps[1].args[0], mode='tensor')),
        latency_median=float(np.median(times[1])),
        latency_95=float(np.percentile(times[1], 95)),
        throughput=float(loader.batch_size / np.median(times[loader.batch_size])),
    )
    if device.type == 'cuda':
        torch.cuda.reset_peak_memory_stats(device)
        steps[loader.batch_size]()
        result['peak_memory'] = torch.cuda.max_memory_allocated(device)
    return result


def describe_benchmark(result: dict[str, Any]) -> dict[str, str]:
    """Return a result of :func:`benchmark_inference` as a row of a table."""
    what = 'images' if len(result['image_shape']) == 3 else 'clips'
    return {
        'FLOPs (G)': f'{result["flops"] / 1e9:.3f}',
        'parameters (M)': f'{result["parameters"] / 1e6:.2f}',
        'latency, median (ms)': f'{result["latency_median"] * 1e3:.2f}',
        'latency, 95 % (ms)': f'{result["latency_95"] * 1e3:.2f}',
        f'{what}/s at batch {result["batch_size"]}': f'{result["throughput"]:.1f}',
    } | ({'peak memory (MB)': f'{result["peak_memory"] / 1e6:.0f}'} if 'peak_memory' in result else {})
