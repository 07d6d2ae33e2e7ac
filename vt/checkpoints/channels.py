"""Weights of images of three channels in a model of another number of them."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from vt.errors import UserError
from vt.untrusted_text import printable

PUBLIC = 3  # channels of the images that public weights were trained with
Channels = Sequence[int | None]


def adapt_channels(weight: Tensor, number: int, channels: Channels | None = None) -> Tensor:
    """The weight of a convolution for another number of input channels.

    A channel takes the weights of one of the file's, or of their mean, and all are scaled by the old number of channels
    over the new one. So an image of equal channels gives the same map where the file's channels are taken equally
    often.

    Args:
        weight: ``(out, old, ...)``.
        number: of the new input channels.
        channels: for each new channel the file's, from 0, or None for the mean of all. By default one channel takes the
            mean, which is then the sum, and more of them 0, 1, 2, 0, 1, ..., as in timm's ``adapt_input_conv``.

    Returns:
        ``(out, number, ...)``, of the same type.
    """
    old = weight.shape[1]
    channels = channels or ([None] if number == 1 else [index % old for index in range(number)])
    exact = weight.to(torch.promote_types(weight.dtype, torch.float32))
    taken = [exact.mean(dim=1) if index is None else exact[:, index] for index in channels]
    return (torch.stack(taken, dim=1) * (old / number)).to(weight.dtype)


def adapt_stem(
    model: nn.Module, state: dict[str, Tensor], channels: Channels | None, name: str, exempt: tuple[str, ...] = ()
) -> list[str]:
    """Adapt, in place, the convolutions that take the image where the file's took another number of channels.

    These are told by their shapes: they differ in the input channels alone, and the file's took three, or what
    ``channels`` is for.

    Args:
        model: a backbone, or a model with one.
        state: the file's tensors under the model's names.
        channels: as in :func:`adapt_channels`.
        name: of the file, for errors.
        exempt: prefixes of names that are not changed.

    Returns:
        What the log says: nothing, or one text.

    Raises:
        UserError: ``channels`` are none, or are not for this model, or have no effect.
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
            old = theirs[1]  # the first convolution takes the image
        fits = own[1] != old if channels is None else own[1] == len(channels)
        if theirs[1] != old or not fits:
            continue
        adapted.append(key)
    if channels is not None and not adapted:
        raise UserError(f'{name}: channels has {len(channels)} entries, but no convolution of the image takes as many')
    if channels is not None and max((index or 0 for index in channels), default=0) >= old:
        raise UserError(f'{name}: channels={[*channels]}, but the file has {old}: 0 to {old - 1}, or None')
    if not adapted:
        return []
    new = model.get_parameter(adapted[0]).shape[1]
    for key in adapted:
        state[key] = adapt_channels(state[key], new, channels)
    how = f'as channels={[*channels]} says' if channels is not None else 'summed' if new == 1 else 'repeated and scaled'
    more = f' and {len(adapted) - 1} more' if len(adapted) > 1 else ''
    return [f'channels: {printable(adapted[0], 120)}{more} from {old} to {new}, {how}']


def check_channels(channels: Channels | None) -> None:
    """Raise a UserError where they are no list of numbers of channels and None."""
    if channels is None:
        return
    good = isinstance(channels, (list, tuple)) and len(channels) > 0
    if not good or not all(index is None or (type(index) is int and index >= 0) for index in channels):
        words = "for each channel of the model one of the file's, 0, 1 or 2, or None for their mean"
        raise UserError(f'channels={channels!r} must be a list: {words}')
