"""Adapt weights for images of three channels to a model with another number of input channels."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from vt.errors import UserError
from vt.untrusted_text import printable

PUBLIC = 3  # input channels of public weights
Channels = Sequence[int | None]


def adapt_channels(weight: Tensor, number: int, channels: Channels | None = None) -> Tensor:
    """Adapt the weight of a convolution to another number of input channels.

    Each new channel gets the weights of one old channel or their mean, multiplied by old / new number of channels. An
    image whose channels are equal gives the same output if all old channels are used equally often.

    Args:
        weight: weight ``(out, old, ...)``.
        number: number of new input channels.
        channels: for each new channel the index of an old one, or None for the mean of all. By default a single channel
            gets the mean (after scaling, the sum), and several channels 0, 1, 2, 0, 1, ..., as in timm's
            ``adapt_input_conv``.

    Returns:
        Weight ``(out, number, ...)`` of the same dtype.
    """
    old = weight.shape[1]
    channels = channels or ([None] if number == 1 else [index % old for index in range(number)])
    exact = weight.to(torch.promote_types(weight.dtype, torch.float32))
    taken = [exact.mean(dim=1) if index is None else exact[:, index] for index in channels]
    return (torch.stack(taken, dim=1) * (old / number)).to(weight.dtype)


def adapt_stem(model: nn.Module, state: dict[str, Tensor], channels: Channels | None, exempt: tuple[str, ...]) -> str:
    """Adapt, in place, the convolutions whose input is the image to the number of channels of the model.

    They are recognised by shape: file and model differ only in the number of input channels, and the file has three, or
    with ``channels`` as many as its first convolution.

    Args:
        model: a backbone, or a model with one.
        state: tensors of the file under the model's names.
        channels: see :func:`adapt_channels`.
        exempt: prefixes of names that are not changed.

    Returns:
        A note for the log; empty if nothing was adapted.

    Raises:
        UserError: ``channels`` has no effect.
    """
    adapted, old, new = [], PUBLIC, 0
    for name, part in model.named_modules():
        key = f'{name}.weight'.removeprefix('.')
        if not isinstance(part, (nn.Conv2d, nn.Conv3d)) or part.groups != 1 or key not in state:
            continue
        own, theirs = part.weight.shape, state[key].shape
        if key.startswith(exempt) or own[:1] + own[2:] != theirs[:1] + theirs[2:]:
            continue
        if channels is not None and not adapted:
            old = theirs[1]  # the input of the first convolution is the image
        if theirs[1] == old and (own[1] != old if channels is None else own[1] == len(channels)):
            state[key] = adapt_channels(state[key], own[1], channels)
            adapted.append(key)
            new = own[1]
    if channels is not None and not adapted:
        raise UserError(f'channels has {len(channels)} entries, but no convolution of the image takes as many')
    how = f'by channels={[*channels]}' if channels is not None else 'summed' if new == 1 else 'repeated and scaled'
    more = f' and {len(adapted) - 1} more' if len(adapted) > 1 else ''
    return f'channels: {printable(adapted[0], 120)}{more} from {old} to {new}, {how}' if adapted else ''
