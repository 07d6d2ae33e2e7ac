"""Adapt weights for images of three channels to a model with another number of input channels."""

import torch
from torch import Tensor, nn

from vt.untrusted_text import printable

PUBLIC = 3  # input channels of public weights


def adapt_channels(weight: Tensor, number: int) -> Tensor:
    """Adapt the weight of a convolution to another number of input channels, as timm's ``adapt_input_conv`` does.

    A single channel gets the sum of the old ones. Several get those of the old channels 0, 1, 2, 0, 1, ..., multiplied
    by old / new number of channels. An image whose channels are equal gives the same output if all old channels are
    used equally often.

    Args:
        weight: weight ``(out, old, ...)``.
        number: number of new input channels.

    Returns:
        Weight ``(out, number, ...)`` of the same dtype.
    """
    old = weight.shape[1]
    exact = weight.to(torch.promote_types(weight.dtype, torch.float32))
    taken = exact.mean(dim=1, keepdim=True) if number == 1 else exact[:, torch.arange(number) % old]
    return (taken * (old / number)).to(weight.dtype)


def adapt_stem(model: nn.Module, state: dict[str, Tensor], exempt: tuple[str, ...]) -> str:
    """Adapt, in place, the convolutions whose input is the image to the number of channels of the model.

    They are recognised by shape: file and model differ only in the number of input channels, and the file has three.

    Args:
        model: a backbone, or a model with one.
        state: tensors of the file under the model's names.
        exempt: prefixes of names that are not changed.

    Returns:
        A note for the log; empty if nothing was adapted.
    """
    adapted, new = [], 0
    for name, part in model.named_modules():
        key = f'{name}.weight'.removeprefix('.')
        if not isinstance(part, (nn.Conv2d, nn.Conv3d)) or part.groups != 1 or key not in state:
            continue
        own, theirs = part.weight.shape, state[key].shape
        if key.startswith(exempt) or own[:1] + own[2:] != theirs[:1] + theirs[2:]:
            continue
        if theirs[1] == PUBLIC != own[1]:
            new = own[1]
            state[key] = adapt_channels(state[key], new)
            adapted.append(key)
    how = 'summed' if new == 1 else 'repeated and scaled'
    more = f' and {len(adapted) - 1} more' if len(adapted) > 1 else ''
    return f'channels: {printable(adapted[0], 120)}{more} from {PUBLIC} to {new}, {how}' if adapted else ''
