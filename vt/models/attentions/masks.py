"""What is added to an attention's logits: biases, and what keeps tokens apart.

Letters as in :mod:`vt.models.attentions.multi_head`; W_n windows of one image.
"""

from torch import Tensor


def sum_masks(*masks: Tensor | None) -> Tensor | None:
    """The sum of those that there are."""
    given = [mask for mask in masks if mask is not None]
    return sum(given[1:], given[0]) if given else None


def add_mask(logits: Tensor, mask: Tensor | None) -> Tensor:
    """Logits ``(W, h, T, S)`` plus a mask, ``(1, h, T, S)`` or, for each window of an image, ``(W_n, h, T, S)``."""
    if mask is None:
        return logits
    return (logits.unflatten(0, (-1, mask.shape[0])) + mask).flatten(0, 1)


def repeat_mask(mask: Tensor | None, windows: int) -> Tensor | None:
    """A mask of an image's windows for those of all images."""
    if mask is None or mask.shape[0] == 1:
        return mask
    return mask.repeat(windows // mask.shape[0], 1, 1, 1)


def learns_on_cpu(mask: Tensor | None) -> bool:
    """Whether PyTorch would materialise the weights anyway, and look for rows that see nothing."""
    return mask is not None and mask.requires_grad and mask.device.type == 'cpu'
