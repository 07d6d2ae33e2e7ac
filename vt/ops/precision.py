"""The precision that autocast asks for."""

import torch
from torch import Tensor


def autocast_dtype(tensor: Tensor) -> torch.dtype | None:
    """The precision that autocast asks for on a tensor's device; None where it is off, or the device has none."""
    device = tensor.device.type
    if not (torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)):
        return None
    return torch.get_autocast_dtype(device)
