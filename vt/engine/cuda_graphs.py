"""CUDA graphs of inference: what a model launches for images of one shape, captured once, and replayed at once.

Python launches a hundred kernels one by one, which at small batches takes longer than the GPU computes. A graph
launches all of them in one call, on the same memory each time.
"""

from collections.abc import Callable
from typing import Any

import torch
from mmengine.hooks import Hook
from mmengine.runner import Runner
from torch import Tensor

from vt.checkpoints.weights import unwrap
from vt.errors import UserError

MOST_SHAPES = 4  # of the images of a test; its last batch has one of its own
WARM_UP = 3  # calls before the capture, in which libraries choose their kernels

Replay = Callable[[], None]


def capture(call: Callable[[], Any]) -> tuple[Replay, Any]:
    """Capture all that a call launches on the current GPU; with gradients unless its caller turned them off.

    Args:
        call: reads tensors that stay where they are, and launches the same whatever they hold.

    Returns:
        A function that computes on what these tensors hold then, and the results of the call, which it fills anew.
    """
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM_UP):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    # Other threads, such as the one that pins a loader's memory, may go on meanwhile.
    with torch.cuda.graph(graph, capture_error_mode='thread_local'):
        results = call()
    return graph.replay, results


class GraphedFeatures:
    """A model's ``extract_feat``, backbone and neck together, captured once for each shape of images and then replayed.

    Python inside of it, such as forward hooks, runs while it is captured and not again. With gradients, and where
    another stage than usual is asked for, the model's own method is called.

    Args:
        extract: the model's own method, from images ``(N, C, H, W)`` to tensors in tuples, lists and dicts.
        capture: as the function of that name.
    """

    def __init__(self, extract: Callable[..., Any], capture: Callable = capture) -> None:
        self.extract = extract
        self.capture = capture
        self.captured: dict[tuple, tuple[Tensor, Replay, Any]] = {}

    def __call__(self, inputs: Tensor, *args, **kwargs) -> Any:
        """Features of images, in memory of their own.

        Raises:
            UserError: the images have one shape more than ``MOST_SHAPES``, or the features are no tensors.
        """
        if args or kwargs or torch.is_grad_enabled():
            return self.extract(inputs, *args, **kwargs)
        key, device = describe_inputs(inputs), inputs.device.type
        if key not in self.captured:
            if len(self.captured) == MOST_SHAPES:
                shapes = ', '.join('x'.join(map(str, shape)) for shape, *_ in [*self.captured, key])
                raise UserError(
                    f'speed.cuda_graphs is for images of one size, and these came in: {shapes}; resize to one size in '
                    'the pipeline of test_dataloader (keep_ratio=False), or leave speed.cuda_graphs out'
                )
            images = inputs.clone()
            # Weights that autocast keeps in half precision from one layer to the next would be gone at the next replay.
            with torch.autocast(device, enabled=torch.is_autocast_enabled(device), cache_enabled=False):
                self.captured[key] = images, *self.capture(lambda: self.extract(images))
        images, replay, features = self.captured[key]
        images.copy_(inputs)
        replay()
        return copy_tensors(features)


def describe_inputs(inputs: Tensor) -> tuple[tuple[int, ...], tuple[int, ...], torch.dtype, torch.dtype | None]:
    """What a graph is for: shape, strides and dtype of images; the precision of autocast, None where it is off."""
    device = inputs.device.type
    precision = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None
    return tuple(inputs.shape), inputs.stride(), inputs.dtype, precision


def copy_tensors(value: Any) -> Any:
    """A copy of tensors in tuples, lists and dicts.

    Raises:
        UserError: there is something else among them.
    """
    match value:
        case Tensor():
            return value.clone()
        case tuple() | list():
            return type(value)(map(copy_tensors, value))
        case dict():
            return {key: copy_tensors(item) for key, item in value.items()}
    raise UserError(f'speed.cuda_graphs is for features that are tensors, and here is a {type(value).__name__}')


class CudaGraphsHook(Hook):
    """Replay backbone and neck as CUDA graphs while a model is tested; afterwards it is as it was."""

    priority = 'LOWEST'  # what is captured is what other hooks have made of the model
    model: Any = None  # it may be a copy for the test

    def before_test_epoch(self, runner: Runner) -> None:
        self.model = unwrap(runner.model)
        self.model.extract_feat = GraphedFeatures(self.model.extract_feat)

    def after_test_epoch(self, runner: Runner, metrics: dict | None = None) -> None:
        del self.model.extract_feat
        self.model = None


def require_graphs(compiles: bool) -> None:
    """Raise ``UserError`` where nothing can be captured: without a GPU, or where ``torch.compile`` does it."""
    if not torch.cuda.is_available():
        raise UserError('speed.cuda_graphs is for GPUs, and PyTorch finds none: leave it out')
    if compiles:
        raise UserError(
            "speed.cuda_graphs and speed.compile: set one of them; speed.compile.mode='reduce-overhead' does both"
        )
