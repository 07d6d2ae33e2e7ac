"""Limit the memory of a model that is built from an untrusted config."""

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from vt.errors import UserError

# Functions that create a tensor of a given size, which is checked before memory is allocated.
MAKERS = (torch.arange, torch.empty, torch.eye, torch.full, torch.linspace, torch.ones, torch.rand, torch.randn)
MAKERS += (torch.randperm, torch.randint, torch.tril_indices, torch.triu_indices, torch.zeros)
EXTRA_BYTES, EXTRA_CALLS = 2**26, 20_000  # for position tables, masks and other tensors that are not in the file


class Budget(TorchFunctionMode):
    """Limit memory and calls of PyTorch inside the block to a few times those that a weight file needs.

    Args:
        size: size of the file in bytes.
        tensors: number of tensors in the file.

    Raises:
        UserError: the limit is exceeded.
    """

    def __init__(self, size: int, tensors: int) -> None:
        super().__init__()
        self.free, self.calls = 4 * size + EXTRA_BYTES, 200 * tensors + EXTRA_CALLS
        self.seen: dict[int, int] = {}

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        self.calls -= 1
        if func in MAKERS:
            self._spend(func(*args, **kwargs | dict(device='meta')), keep=False)
        for tensor in args:
            self._spend(tensor)  # it may not have been counted yet
        result = func(*args, **kwargs)
        self._spend(result)
        return result

    def _spend(self, tensor: Any, keep: bool = True) -> None:
        if not isinstance(tensor, torch.Tensor):
            return
        storage = tensor.untyped_storage()
        size = 0 if keep and storage.data_ptr() in self.seen else storage.nbytes()
        if size > self.free or self.calls < 0:
            raise UserError('the model asks for more memory than its weights need: its sizes are not those of its file')
        if keep and size:
            self.seen[storage.data_ptr()] = size
            self.free -= size
