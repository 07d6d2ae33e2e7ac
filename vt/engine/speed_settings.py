"""What a run sets for its speed by itself, and the config key ``speed``, which turns each off."""

import ctypes
import os
import platform
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakSet

import joblib
import torch
from mmengine.model import BaseDataPreprocessor
from mmengine.structures import BaseDataElement
from torch import nn

from vt.checkpoints.weights import unwrap
from vt.errors import UserError

# Parameters of glibc's mallopt, from malloc.h.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_MMAP_MAX = -1, -3, -4
SMALL = 2**16  # bytes
HOOKED: WeakSet[nn.Module] = WeakSet()  # parts that have their hook for channels_last
OTHER_ALLOCATORS = ('jemalloc', 'tcmalloc', 'mimalloc')


@dataclass(frozen=True)
class SpeedSettings:
    """Settings for speed; a config names only those that differ: ``speed = dict(channels_last=False)``.

    Attributes:
        channels_last: keep weights and images in channels_last, see :func:`to_channels_last`.
        keep_memory: let glibc keep freed memory on a CPU, see :func:`keep_freed_memory`.
        threads: threads of PyTorch's operators on the CPU; ``'auto'`` see :func:`use_threads`.
        token_products: library of linear layers and token-side matrices on a CPU, ``'blas'``, ``'onednn'`` or
            ``'auto'``, see :func:`vt.ops.token_products.choose_token_library`. With mmengine's
            ``randomness.deterministic`` the BLAS.
        fold_norms: test a copy of the model whose batch normalisations are part of its convolutions, see
            :class:`vt.engine.folding.FoldNormsHook`. Scores change by rounding alone. The model itself is tested with
            ``randomness.deterministic`` and in half precision.
        cudnn_benchmark: let cuDNN try its convolutions while training, whose images have one size. mmengine's
            ``env_cfg.cudnn_benchmark=True`` does it while testing too.
        matmul_precision: of float32 matrix products on a GPU, as :func:`torch.set_float32_matmul_precision` takes it:
            ``'high'`` is TF32, in which cuDNN convolves anyway. With ``randomness.deterministic`` ``'highest'``.
        cudnn_attention: let PyTorch take cuDNN's attention on a GPU. Off: in training it gives gradients that are not
            finite for some lengths (pytorch/pytorch#196678), as for CSWin-T on an H100 with PyTorch 2.11 in bfloat16.
        non_blocking: copy batches to a GPU without waiting for it, see :func:`copy_without_waiting`.
        compile_tokens: compile the relations of visual tokens alone, see
            :func:`vt.models.token_side.compile_token_side`; what it gains on a GPU is not measured yet.
        compile_pixels: where pixels meet a few tokens, take loops of the compiler, see :mod:`vt.ops.compiled`; on a
            CPU, with a C++ compiler.
        compile: compile backbone and neck, in training and in tests, see :func:`compile_parts`; a dict has options of
            ``torch.compile``. mmengine's own key ``compile`` compiles the training step as a whole.
        cuda_graphs: in tests on a GPU, replay backbone and neck as CUDA graphs, see
            :class:`vt.engine.cuda_graphs.GraphedFeatures`; for test images of one size. What it gains is not measured
            yet.
    """

    channels_last: bool = True
    keep_memory: bool = True
    threads: int | str = 'auto'
    token_products: str = 'auto'
    fold_norms: bool = True
    cudnn_benchmark: bool = True
    matmul_precision: str = 'high'
    cudnn_attention: bool = False
    non_blocking: bool = True
    compile_tokens: bool = False
    compile_pixels: bool = False
    compile: bool | dict = False
    cuda_graphs: bool = False

    def set_process(self) -> str:
        """Set allocator and threads of this process, and describe them."""
        keeps = self.keep_memory and not torch.cuda.is_available() and keep_freed_memory()
        if self.threads != 'auto':
            torch.set_num_threads(self.threads)
        threads = use_threads() if self.threads == 'auto' else self.threads
        return f'freed memory {"kept" if keeps else "not kept"}; {threads} {"thread" if threads == 1 else "threads"}'


def require_compiler() -> None:
    """``torch.compile`` writes C++ for a CPU: a ``UserError`` where nothing can compile it."""
    compiler = os.environ.get('CXX', 'g++')
    if torch.cuda.is_available():
        return
    if ' ' in torch.__file__:
        raise UserError(
            f"compile: PyTorch's call of the compiler breaks at the space in its own path, "
            f'{Path(torch.__file__).parent}: install it elsewhere, or leave --compile out'
        )
    if shutil.which(compiler) is None:
        raise UserError(
            f'compile needs a C++ compiler on a CPU, and there is no {compiler}: install it, name another one in the '
            'environment variable CXX, or leave --compile out'
        )


def compile_parts(model: nn.Module, options: dict[str, Any] | None = None) -> None:
    """Compile a model's backbone and neck in place, each at its next call; names and weights stay as they are.

    The rest of a step, such as the loss, the optimizer and what is written to the log, breaks graphs and stays eager.
    A neck without parameters, such as an average over pixels, does too. A copy of the model is not compiled.

    Args:
        model: may be wrapped.
        options: of :func:`torch.compile`.

    Raises:
        UserError: the model has no backbone.
    """
    model = unwrap(model)
    if not isinstance(getattr(model, 'backbone', None), nn.Module):
        raise UserError(f'speed.compile is for a backbone and a neck, {type(model).__name__} has none: leave it out')
    for part in (model.backbone, getattr(model, 'neck', None)):
        if part is not None and any(True for _ in part.parameters()):
            part.compile(**options or {})


def to_channels_last(model: nn.Module) -> None:
    """Keep a model's weights, and the images that its data preprocessor gives it, in channels_last.

    Convolutions then read and write ``(N, H, W, C)`` in memory, and no layer in between changes that, up to the scores
    of a segmentation head: these leave in PyTorch's default layout, before they are enlarged for the loss. Only 4-D
    tensors have such a layout. A second call changes nothing. The first one comes before a model is wrapped for DDP,
    whose buckets take the weights' strides.
    """
    for tensor in (*model.parameters(), *model.buffers()):
        tensor.data = _tensor_to_channels_last(tensor.data)
    for part in model.modules():
        if isinstance(part, BaseDataPreprocessor):
            _hook_once(part, _images_to_channels_last)
        scores = getattr(part, 'conv_seg', None)  # of a segmentation head
        if isinstance(scores, nn.Module):
            _hook_once(scores, _scores_to_contiguous)


def copy_without_waiting(model: nn.Module) -> None:
    """Let a model's data preprocessor start to copy a batch to a GPU, and go on.

    The loader must have put the images in pinned memory, ``pin_memory=True``. It is mmengine's own option
    ``non_blocking``, which most preprocessors don't hand on. On a CPU it changes nothing.
    """
    for part in model.modules():
        if isinstance(part, BaseDataPreprocessor):
            part.cast_data = partial(_cast_data, part)


def _cast_data(preprocessor: BaseDataPreprocessor, data: Any) -> Any:
    """As the preprocessor's class does it, which calls this for what a container holds."""
    if isinstance(data, (torch.Tensor, BaseDataElement)):
        # The other way, to a CPU, a copy that nobody waits for holds anything.
        return data.to(preprocessor.device, non_blocking=preprocessor.device.type == 'cuda')
    return type(preprocessor).cast_data(preprocessor, data)


def _hook_once(part: nn.Module, hook: Callable) -> None:
    if part not in HOOKED:
        HOOKED.add(part)
        part.register_forward_hook(hook)


def _tensor_to_channels_last(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.dim() != 4:
        return tensor
    # contiguous() leaves a 1x1 convolution's weights as they are, whose strides then differ from their gradients', and
    # DDP copies what it could share.
    result = torch.empty_like(tensor, memory_format=torch.channels_last)
    return tensor if tensor.stride() == result.stride() else result.copy_(tensor)


def _images_to_channels_last(preprocessor: nn.Module, args: tuple, output: dict) -> None:
    images = output.get('inputs') if isinstance(output, dict) else None
    if isinstance(images, torch.Tensor):
        output['inputs'] = _tensor_to_channels_last(images)


def _scores_to_contiguous(layer: nn.Module, args: tuple, scores: torch.Tensor) -> torch.Tensor:
    """A softmax over classes wants each map in one piece; enlarged scores would be 16 times as much to copy."""
    return scores.contiguous()


def use_threads() -> int:
    """Let PyTorch use the cores that this process may use, where the user has not set ``OMP_NUM_THREADS``; how many.

    Cores are physical ones, no more than the process is bound to and than its container's quota gives, shared by the
    processes that torchrun started on this machine.
    """
    if 'OMP_NUM_THREADS' not in os.environ:
        processes = int(os.environ.get('LOCAL_WORLD_SIZE', 1))
        torch.set_num_threads(max(1, joblib.cpu_count(only_physical_cores=True) // processes))
    return torch.get_num_threads()


def keep_freed_memory() -> bool:
    """Let glibc keep freed memory for the next step.

    By default it gives large blocks back to the system as soon as they are freed. A step then asks for the same memory
    again, and the system fills every page of it with zeros: up to half of the time of a step on a CPU.

    Returns:
        Whether it is so now. False without glibc, and where the user's environment chose an allocator or its settings,
        which stand: ``GLIBC_TUNABLES``, ``MALLOC_*``, or another allocator in ``LD_PRELOAD``.
    """
    chosen = any(name == 'GLIBC_TUNABLES' or name.startswith('MALLOC_') for name in os.environ)
    replaced = any(name in os.environ.get('LD_PRELOAD', '') for name in OTHER_ALLOCATORS)
    if chosen or replaced or platform.libc_ver()[0] != 'glibc':
        return False
    libc = ctypes.CDLL(None)
    # Large blocks on the heap as all others, and the heap never shrinks.
    return bool(libc.mallopt(M_MMAP_MAX, 0) and libc.mallopt(M_TRIM_THRESHOLD, -1))


def give_back_freed_memory() -> None:
    """Let glibc give freed memory back to the system at once, so that a process's memory is what it uses."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, 'mallopt'):
        libc.mallopt(M_MMAP_THRESHOLD, SMALL)
        libc.mallopt(M_TRIM_THRESHOLD, SMALL)
