"""Settings for speed: the config key ``speed`` and the functions that apply it."""

import atexit
import ctypes
import gc
import os
import platform
from dataclasses import dataclass
from typing import Any, Literal

import joblib
import torch
from torch import nn

from vt.checkpoints.weights import unwrap
from vt.engine.run.processes import number_in

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # parameters of glibc's mallopt, from malloc.h


def freeze_collector() -> None:
    """Let the garbage collector ignore all existing objects, such as those of the libraries.

    Searching these hundreds of thousands of objects took a fifth of the time until the first iteration.
    """
    gc.freeze()
    if torch.__version__ >= '2.15':
        atexit.register(gc.unfreeze)  # a second at the exit, without which Triton 3.9 reports leaks


@dataclass(frozen=True)
class SpeedSettings:
    """Settings for speed. A config sets only those that differ: ``speed = dict(channels_last=False)``.

    Attributes:
        channels_last: keep weights and images in channels_last, see :func:`vt.models.optimize_for`; with ``fsdp`` the
            images.
        keep_memory: let glibc keep freed memory on a CPU, see :func:`keep_freed_memory`.
        token_products: library of linear layers and token-side matrices on a CPU, ``'blas'``, ``'onednn'`` or
            ``'auto'``, see :func:`vt.ops.token_products.choose_token_library`. ``randomness.deterministic`` implies
            ``'blas'``.
        fold_norms: test a copy of the model with batch normalisation folded into convolutions, see
            :class:`vt.engine.run.folding.FoldNormsHook`. Scores change only by rounding, in half precision by
            that of its format. Not used with ``randomness.deterministic``.
        cudnn_benchmark: use cuDNN's benchmark mode in training, where images have one size. mmengine's
            ``env_cfg.cudnn_benchmark=True`` uses it in tests, too.
        matmul_precision: precision of float32 matrix products on a GPU, see
            :func:`torch.set_float32_matmul_precision`; ``'high'`` is TF32, cuDNN's default for convolutions.
            ``randomness.deterministic`` implies ``'highest'``.
        compile: compile backbone and neck in training and tests, see :func:`compile_parts`; a dict contains options of
            ``torch.compile``. mmengine's key ``compile`` compiles the whole training step instead.
        cuda_graphs: replay backbone and neck as CUDA graphs in tests on a GPU, see
            :class:`vt.engine.run.cuda_graphs.GraphedFeatures`; for images of one size.
        train_graphs: replay backbone and neck as CUDA graphs in training on a GPU, see
            :class:`vt.engine.run.cuda_graphs.TrainGraphs`; for the shape of the first batch. Not measured yet.
    """

    channels_last: bool = True
    keep_memory: bool = True
    token_products: str = 'auto'
    fold_norms: bool = True
    cudnn_benchmark: bool = True
    matmul_precision: Literal['highest', 'high', 'medium'] = 'high'
    compile: bool | dict = False
    cuda_graphs: bool = False
    train_graphs: bool = False

    def set_process(self, device: torch.device | None = None) -> str:
        """Set allocator, threads and collector for a device; return a description for the log.

        None is a GPU if there is one.
        """
        freeze_collector()
        on_gpu = torch.cuda.is_available() and (device is None or device.type != 'cpu')
        keeps = self.keep_memory and not on_gpu and keep_freed_memory()
        threads = use_threads(1 if on_gpu else None)
        return f'freed memory {"kept" if keeps else "not kept"}; {threads} {"thread" if threads == 1 else "threads"}'


def compile_parts(model: nn.Module, options: dict[str, Any] | None = None) -> None:
    """Compile a model's backbone and neck in place, each at its next call; names and weights do not change.

    The rest of a step stays eager, because the loss, the optimizer and logging break graphs, and so does a neck without
    parameters. A copy of the model is not compiled. ``options`` are those of :func:`torch.compile`.
    """
    for part in parts_of(unwrap(model)):
        if any(True for _ in part.parameters()):
            part.compile(**options or {})


def parts_of(model: Any) -> list[nn.Module]:
    """Return a model's backbone, and its neck if it has one."""
    return [part for part in (model.backbone, getattr(model, 'neck', None)) if part is not None]


def use_threads(most: int | None = None) -> int:
    """Set PyTorch's threads to the available cores, ``most`` at most, unless ``OMP_NUM_THREADS`` is set; return them.

    Only physical cores within the affinity of the process and the quota of its container count. They are divided
    between the processes that torchrun started on this machine.

    Runs on a GPU use one thread. After a parallel operator, such as the copy of a batch to pinned memory, the other
    threads spin for several milliseconds each, and take the cores from the loading of data, of other runs as well.
    """
    if 'OMP_NUM_THREADS' not in os.environ:
        processes = number_in('LOCAL_WORLD_SIZE', 1)
        threads = max(1, joblib.cpu_count(only_physical_cores=True) // processes)
        torch.set_num_threads(min(threads, most or threads))
    return torch.get_num_threads()


def keep_freed_memory() -> bool:
    """Make glibc keep freed memory for the next step; return whether it does.

    By default glibc returns large blocks to the system when they are freed. The next step allocates the same memory
    again, and the system fills it with zeros, which takes up to half of the time of a step on a CPU. Other libraries
    of C, and settings in the environment (``GLIBC_TUNABLES``, ``MALLOC_*``), stay as they are.
    """
    chosen = any(name == 'GLIBC_TUNABLES' or name.startswith('MALLOC_') for name in os.environ)
    if chosen or platform.libc_ver()[0] != 'glibc':
        return False
    libc = ctypes.CDLL(None)
    # Allocate large blocks on the heap, too, and never shrink the heap.
    return bool(libc.mallopt(M_MMAP_MAX, 0) and libc.mallopt(M_TRIM_THRESHOLD, -1))
