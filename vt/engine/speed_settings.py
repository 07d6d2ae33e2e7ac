"""What a run sets for its speed by itself: the config key ``speed``, which turns each off, and the settings."""

import os
import shutil
from dataclasses import dataclass

import joblib
import torch
from mmengine.model import BaseDataPreprocessor
from torch import nn

from vt.errors import UserError

from .allocator import keep_freed_memory


@dataclass(frozen=True)
class SpeedSettings:
    """Settings for speed; a config names only those that differ: ``speed = dict(channels_last=False)``.

    Attributes:
        channels_last: keep weights and images in channels_last, see :func:`to_channels_last`.
        keep_memory: let glibc keep freed memory on a CPU, see :func:`vt.engine.allocator.keep_freed_memory`.
        threads: threads of PyTorch's operators on the CPU; ``'auto'`` see :func:`use_threads`.
        cudnn_benchmark: let cuDNN try its convolutions while training, whose images have one size. mmengine's
            ``env_cfg.cudnn_benchmark=True`` does it while testing too.
        compile: ``torch.compile`` the steps of training and of testing; mmengine's key ``compile`` takes its options.
    """

    channels_last: bool = True
    keep_memory: bool = True
    threads: int | str = 'auto'
    cudnn_benchmark: bool = True
    compile: bool = False

    def set_process(self) -> str:
        """Set allocator and threads of this process, and describe them."""
        if torch.cuda.is_available():
            memory = 'freed memory not kept (GPU)'
        else:
            memory = f'freed memory {"kept" if self.keep_memory and keep_freed_memory() else "not kept"}'
        if self.threads != 'auto':
            torch.set_num_threads(self.threads)
        threads = use_threads() if self.threads == 'auto' else self.threads
        return f'{memory}; {threads} {"thread" if threads == 1 else "threads"}'


def require_compiler() -> None:
    """``torch.compile`` writes C++ for a CPU: say so where nothing can compile it.

    Raises:
        UserError: there is no compiler.
    """
    compiler = os.environ.get('CXX', 'g++')
    if not torch.cuda.is_available() and shutil.which(compiler) is None:
        raise UserError(
            f'compile needs a C++ compiler on a CPU, and there is no {compiler}: install it, name another one in the '
            'environment variable CXX, or leave --compile out'
        )


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
