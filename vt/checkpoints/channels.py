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


def adapt_stem(
    model: nn.Module, state: dict[str, Tensor], channels: Channels | None, name: str, exempt: tuple[str, ...] = ()
) -> list[str]:
    """Adapt, in place, the convolutions whose input is the image to the number of channels of the model.

    They are recognised by shape: file and model differ only in the number of input channels, and the file has three, or
    with ``channels`` as many as its first convolution.

    Args:
        model: a backbone, or a model with one.
        state: tensors of the file under the model's names.
        channels: see :func:`adapt_channels`.
        name: name of the file, for messages.
        exempt: prefixes of names that are not changed.

    Returns:
        A list with a line for the log; empty if nothing was adapted.

    Raises:
        UserError: ``channels`` is invalid, does not fit the model or the file, or has no effect.
    """
    check_channels(channels)
    exempt, adapted, old = tuple(filter(None, exempt)), [], PUBLIC
    for part_name, part in model.named_modules():
        key = f'{part_name}.weight'.removeprefix('.')
        if not isinstance(part, (nn.Conv2d, nn.Conv3d)) or key not in state or key.startswith(exempt):
            continue
        own, theirs = part.weight.shape, state[key].shape
        if part.groups != 1 or len(own) != len(theirs) or own[:1] + own[2:] != theirs[:1] + theirs[2:]:
            continue
        if channels is not None and not adapted:
            old = theirs[1]  # the input of the first convolution is the image
        fits = own[1] != old if channels is None else own[1] == len(channels)
        if theirs[1] != old or not fits:
            continue
        adapted.append(key)
    if channels is not None and not adapted:
        raise UserError(f'{name}: channels has {len(channels)} entries, but no convolution of the image takes as many')
    if channels is not None and max((index or 0 for index in channels), default=0) >= old:
        raise UserError(f'{name}: channels={[*channels]}, but the file has {old}: use 0 to {old - 1}, or None')
    if not adapted:
        return []
    new = model.get_parameter(adapted[0]).shape[1]
    for key in adapted:
        state[key] = adapt_channels(state[key], new, channels)
    how = f'by channels={[*channels]}' if channels is not None else 'summed' if new == 1 else 'repeated and scaled'
    more = f' and {len(adapted) - 1} more' if len(adapted) > 1 else ''
    return [f'channels: {printable(adapted[0], 120)}{more} from {old} to {new}, {how}']


def check_channels(channels: Channels | None) -> None:
    """Raise ``UserError`` unless ``channels`` is None, or a list of indices of channels and None."""
    if channels is None:
        return
    good = isinstance(channels, (list, tuple)) and len(channels) > 0
    if not good or not all(index is None or (type(index) is int and index >= 0) for index in channels):
        words = 'for each channel of the model the index of one of the file (0, 1 or 2), or None for their mean'
        raise UserError(f'channels={channels!r} must be a list: {words}')
