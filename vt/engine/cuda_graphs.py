"""CUDA graphs for inference: the kernels for images of one shape are captured once and replayed in one call.

At small batch sizes, launching kernels from Python takes longer than the computation on the GPU. A graph launches all
of them at once, on the same memory each time.
"""

from collections.abc import Callable
from typing import Any

import torch
from mmengine.hooks import Hook
from mmengine.runner import Runner
from mmengine.utils import apply_to
from torch import Tensor

from vt.checkpoints.weights import unwrap
from vt.errors import UserError

MOST_SHAPES = 4  # input shapes in a test; the last batch may have its own
WARM_UP = 3  # calls before the capture, in which libraries choose their kernels

Replay = Callable[[], None]


def capture(call: Callable[[], Any]) -> tuple[Replay, Any]:
    """Capture the kernels that a call launches on the current GPU, with gradients unless they are disabled.

    Args:
        call: function that reads tensors at fixed addresses and launches the same kernels for any values.

    Returns:
        A function that repeats the computation on the current values of these tensors, and the results of the call,
        which each repetition overwrites.
    """
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM_UP):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    # 'thread_local' lets other threads, such as the one that pins a loader's memory, use CUDA during the capture.
    with torch.cuda.graph(graph, capture_error_mode='thread_local'):
        results = call()
    return graph.replay, results


class GraphedFeatures:
    """``extract_feat`` of a model (backbone and neck), captured once for each input shape and then replayed.

    Python code inside it, such as forward hooks, runs only during the capture.

    Args:
        extract: the model's method, from images ``(N, C, H, W)`` to tensors in tuples, lists and dicts.
        capture: function like :func:`capture`.
    """

    def __init__(self, extract: Callable[..., Any], capture: Callable = capture) -> None:
        self.extract = extract
        self.capture = capture
        self.captured: dict[tuple, tuple[Tensor, Replay, Any]] = {}

    def __call__(self, inputs: Tensor) -> Any:
        """Return a copy of the features of images.

        Raises:
            UserError: there are more than ``MOST_SHAPES`` input shapes.
            TypeError: a feature is not a tensor.
        """
        shape, device = tuple(inputs.shape), inputs.device.type
        if shape not in self.captured:
            if len(self.captured) == MOST_SHAPES:
                shapes = ', '.join('x'.join(map(str, each)) for each in [*self.captured, shape])
                raise UserError(
                    f'speed.cuda_graphs needs images of one size, but the test has {shapes}: resize to one size in '
                    'the pipeline of test_dataloader (keep_ratio=False), or remove speed.cuda_graphs'
                )
            images = inputs.clone()
            # Weights in autocast's cache would be freed before the next replay.
            with torch.autocast(device, enabled=torch.is_autocast_enabled(device), cache_enabled=False):
                self.captured[shape] = images, *self.capture(lambda: self.extract(images))
        images, replay, features = self.captured[shape]
        images.copy_(inputs)
        replay()
        return apply_to(features, lambda part: True, Tensor.clone)


class CudaGraphsHook(Hook):
    """Replay backbone and neck as CUDA graphs during a test; the model is restored afterwards."""

    priority = 'LOWEST'  # capture the model as other hooks have changed it
    model: Any = None  # may be a copy for the test

    def before_test_epoch(self, runner: Runner) -> None:
        self.model = unwrap(runner.model)
        self.model.extract_feat = GraphedFeatures(self.model.extract_feat)

    def after_test_epoch(self, runner: Runner, metrics: dict | None = None) -> None:
        del self.model.extract_feat
        self.model = None
