"""CUDA graphs: the kernels of backbone and neck for images of one shape are captured once and replayed in one call.

At small batch sizes, launching kernels from Python takes longer than the computation on the GPU. A graph launches all
of them at once, on the same memory each time.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from mmengine.device import get_device
from mmengine.hooks import Hook
from mmengine.runner import Runner
from torch import Tensor, nn

from vt.checkpoints.weights import unwrap
from vt.engine.hooks.dry_run import dry_run_batches, unchanged_buffers
from vt.errors import UserError
from vt.ops.precision import constant_weights
from vt.private_names import has_hooks

from .speed_settings import parts_of

MOST_SHAPES = 4  # input shapes in a test; the last batch may have its own
WARM_UP = 3  # calls before the capture, in which libraries choose their kernels

Replay = Callable[[], None]


def capture(call: Callable[[], Any], pool: Any = None) -> tuple[Replay, Any]:
    """Capture the kernels that a call launches on the current GPU, with gradients unless they are disabled.

    Args:
        call: function that reads tensors at fixed addresses and launches the same kernels for any values.
        pool: memory that graphs share which are never replayed at the same time, from
            :func:`torch.cuda.graph_pool_handle`; None for memory of its own.

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
    with torch.cuda.graph(graph, pool, capture_error_mode='thread_local'):
        results = call()
    return graph.replay, results


class GraphedFeatures:
    """``extract_feat`` of a model (backbone and neck), captured once for each input shape and then replayed.

    Python code inside it, such as forward hooks, runs only during the capture. Weights must not change, and under
    autocast all calls must lie in one outer autocast context, which keeps the weights that were cast.

    Args:
        extract: the model's method, from images ``(N, C, H, W)`` to tensors in tuples, lists and dicts.
        capture: function like :func:`capture`.
    """

    def __init__(self, extract: Callable[..., Any], capture: Callable = capture) -> None:
        self.extract = extract
        self.capture = capture
        self.captured: dict[tuple, tuple[Tensor, Replay, Any]] = {}
        self.pool = torch.cuda.graph_pool_handle() if torch.cuda.is_available() else None

    def __call__(self, inputs: Tensor) -> Any:
        """Return the features of images, which the next call overwrites, for any shape: clone what is kept longer."""
        shape = tuple(inputs.shape)
        if shape not in self.captured:
            if len(self.captured) == MOST_SHAPES:
                shapes = ', '.join('x'.join(map(str, each)) for each in [*self.captured, shape])
                raise UserError(
                    f'speed.cuda_graphs requires images of one size, but the test has {shapes}: resize to one size in '
                    'the pipeline of test_dataloader (keep_ratio=False), or remove speed.cuda_graphs'
                )
            images = inputs.clone()
            self.captured[shape] = images, *self.capture(lambda: self.extract(images), self.pool)
        images, replay, features = self.captured[shape]
        images.copy_(inputs)
        replay()
        return features


class CudaGraphsHook(Hook):
    """Replay backbone and neck as CUDA graphs during a test; the model is restored afterwards, and by :meth:`close`."""

    priority = 'LOWEST'  # capture the model, and cast the weights, as other hooks have changed them

    def __init__(self) -> None:
        self.opened = ExitStack()

    def before_test_epoch(self, runner: Runner) -> None:
        model = unwrap(runner.model)  # may be a copy for the test
        # Graphs read the weights that autocast has cast, and it frees them at the end of its outermost context.
        self.opened.enter_context(torch.autocast(get_device(), enabled=False))
        self.opened.enter_context(constant_weights())
        for weight in [each for each in model.parameters() if each.is_floating_point() and not each.requires_grad]:
            weight.requires_grad_()  # autocast would cast it at each replay
            self.opened.callback(weight.requires_grad_, False)
        model.extract_feat = GraphedFeatures(model.extract_feat)
        self.opened.callback(delattr, model, 'extract_feat')

    def after_test_epoch(self, runner: Runner, metrics: dict | None = None) -> None:
        self.close()

    def close(self) -> None:
        """End a test, also one that has failed."""
        self.opened.close()


class TrainGraphs:
    """``extract_feat`` of a model in training, whose forward and backward passes are CUDA graphs for one shape.

    Other shapes, evaluation, and calls without gradients or with more arguments run eagerly. Warm-up and capture leave
    statistics, gradients and random numbers as they were.

    Args:
        model: the model, in training, before it is wrapped.
        images: a batch ``(N, C, H, W)``, of which only shape and layout matter.
    """

    def __init__(self, model: Any, images: Tensor) -> None:
        self.model, self.shape, self.extract = model, images.shape, model.extract_feat
        device = images.device.type
        with (
            _unchanged(model, images),
            torch.autocast(device, enabled=torch.is_autocast_enabled(device), cache_enabled=False),  # weights change
        ):
            part, samples = _Features(model), (images.clone(),)
            self.graphed = torch.cuda.make_graphed_callables(part, samples, allow_unused_input=True)

    def __call__(self, inputs: Any, *args, **kwargs) -> Any:
        """Return the features of images, which the next call overwrites, as it does gradients of weights."""
        fits = getattr(inputs, 'shape', None) == self.shape and self.model.training and torch.is_grad_enabled()
        return self.graphed(inputs) if fits and not (args or kwargs) else self.extract(inputs, *args, **kwargs)


class _Features(nn.Module):
    """Backbone and neck as one module, whose call is the model's ``extract_feat``."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts_of(model))
        self.forward = model.extract_feat


class TrainGraphsHook(Hook):
    """Make :class:`TrainGraphs` for the shape of the first batch, then wrap the model for several processes."""

    priority = 'LOW'  # after cuDNN's search is turned on, before the dry run

    def before_train(self, runner: Runner) -> None:
        model: Any = runner.model.train()
        wrapper: Any = runner.optim_wrapper
        _, batch = next(dry_run_batches(runner.train_dataloader))
        data = model.data_preprocessor(batch, True)
        with wrapper.optim_context(model):
            require_same_step(model, data)
            model.extract_feat = TrainGraphs(model, data['inputs'])
        shape = tuple(data['inputs'].shape)
        runner.logger.info(f'Backbone and neck run as CUDA graphs for batches of {shape}; others run eagerly')
        runner.wrap()

    def after_train(self, runner: Runner) -> None:
        del unwrap(runner.model).extract_feat


def require_same_step(model: Any, data: dict) -> None:
    """Take a step without an update, and raise a UserError if graphs would take another one."""
    calls, extract = [], model.extract_feat
    modules = _modules_of(model)

    def extract_and_look(*args, **kwargs) -> Any:
        calls.append(any(map(has_hooks, modules)))
        return extract(*args, **kwargs)

    model.extract_feat = extract_and_look
    with _unchanged(model, data['inputs']):
        model.parse_losses(model(**data, mode='loss'))[0].backward()
    del model.extract_feat
    unused = [name for name, weight in model.named_parameters() if weight.requires_grad and weight.grad is None]
    model.zero_grad()
    if len(calls) != 1 or calls[0]:
        raise UserError('speed.train_graphs requires one call of extract_feat per step, without hooks: remove it')
    if unused:  # graphs would give it a gradient of zero
        raise UserError(f'speed.train_graphs requires a gradient for every weight, and {unused[0]} has none: freeze it')


def refuse_train_graphs(runner: Runner) -> None:
    """Raise a UserError if a training uses something that does not work with :class:`TrainGraphs`."""
    cfg, model = runner.cfg, unwrap(runner.model)
    if not (hasattr(model, 'backbone') and hasattr(model, 'extract_feat')):
        raise UserError('speed.train_graphs requires a model with backbone and extract_feat: remove the setting')
    modules = _modules_of(model)
    syncs = runner.distributed and (
        cfg.get('sync_bn') or any('SyncBatchNorm' in type(module).__name__ for module in modules)
    )
    recomputes = cfg.get('activation_checkpointing') or any(getattr(module, 'with_cp', False) for module in modules)
    obstacles = {
        'fsdp': runner.sharding,
        'compile': runner.speed.compile or cfg.get('compile'),
        'SyncBN': syncs,
        'with_cp or activation_checkpointing': recomputes,
        'drop path or dropout in backbone and neck': any(
            getattr(module, 'drop_prob', 0) or (isinstance(module, nn.Dropout) and module.p) for module in modules
        ),
        'hooks in backbone and neck': any(map(has_hooks, modules)),
        # A replay overwrites the gradients of the one before.
        'optim_wrapper.accumulative_counts': (cfg.get('optim_wrapper') or {}).get('accumulative_counts', 1) > 1,
    }
    for name, is_there in obstacles.items():
        if is_there:
            raise UserError(f'speed.train_graphs does not work with {name}: remove one of them')
    if get_device() != 'cuda':
        raise UserError('speed.train_graphs requires an NVIDIA GPU: remove the setting')


@contextmanager
def _unchanged(model: nn.Module, images: Tensor) -> Iterator[None]:
    """Restore a model's statistics, and the random numbers, after the block."""
    with unchanged_buffers(model), torch.random.fork_rng([images.device] if images.is_cuda else []):
        yield


def _modules_of(model: nn.Module) -> list[nn.Module]:
    return [module for part in parts_of(model) for module in part.modules()]
