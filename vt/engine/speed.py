"""What a process sets once so that a run is fast: the layout of maps, the allocator, the number of threads."""

import ctypes
import os
import platform

import joblib
import torch
from mmengine.model import BaseDataPreprocessor
from torch import nn

# Parameters of glibc's mallopt, from malloc.h.
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
OTHER_ALLOCATORS = ('jemalloc', 'tcmalloc', 'mimalloc')


def to_channels_last(model: nn.Module) -> None:
    """Keep a model's weights, and the images that its data preprocessor gives it, in channels_last.

    Convolutions then read and write ``(N, H, W, C)`` in memory, and no layer in between changes that, up to the scores
    of a segmentation head: these leave in PyTorch's default layout, before they are enlarged for the loss. Only 4-D
    tensors have such a layout; all others stay as they are. A second call changes nothing.

    Args:
        model: any model; it is changed in place. Before it is wrapped for DDP, whose buckets take the weights' strides.
    """
    model._apply(_tensor_to_channels_last)  # through _apply, so that what follows a model's device follows here too
    for part in model.modules():
        if isinstance(part, BaseDataPreprocessor) and _images_to_channels_last not in part._forward_hooks.values():
            part.register_forward_hook(_images_to_channels_last)
        scores = getattr(part, 'conv_seg', None)  # of a segmentation head
        if isinstance(scores, nn.Module) and _scores_to_contiguous not in scores._forward_hooks.values():
            scores.register_forward_hook(_scores_to_contiguous)


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


def use_threads() -> int:
    """Let PyTorch use the cores that this process may use, where the user has not set ``OMP_NUM_THREADS``.

    Cores are physical ones, no more than the process is bound to and than its container's quota gives, shared by the
    processes that torchrun started on this machine.

    Returns:
        The number of threads.
    """
    if 'OMP_NUM_THREADS' not in os.environ:
        processes = int(os.environ.get('LOCAL_WORLD_SIZE', 1))
        torch.set_num_threads(max(1, joblib.cpu_count(only_physical_cores=True) // processes))
    return torch.get_num_threads()
