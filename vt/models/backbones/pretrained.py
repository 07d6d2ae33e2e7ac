"""Weights from elsewhere: a ResNet's for convolutional stages, a vision transformer's for the backbone of parts."""

from collections.abc import Iterable

import torch
from mmengine.logging import print_log
from torch import Tensor, nn

from vt.checkpoints.reading import load_checkpoint
from vt.checkpoints.weights import state_of, to_new_names
from vt.errors import UserError

from ..positions import AbsolutePosition, DecomposedRelativePosition, RelativePositionBias, SeparatePosition
from .checkpoint_format import to_own_names

# What is resized where the grid or the window is another one.
POSITIONS = (AbsolutePosition, DecomposedRelativePosition, RelativePositionBias, SeparatePosition)


def load_resnet_stages(
    backbone: nn.Module, checkpoint: str, prefix: str | None = None, map_location: str = 'cpu'
) -> set[str]:
    """Load what a checkpoint holds for ``backbone``: all of its stem and stages, and its VT modules if they are there.

    torchvision's files hold plain names; MMPretrain's hold them below ``backbone.``. A ResNet's own last stage and
    classifier are passed over. One line of the log says what was loaded, what is new and what was left out.

    Args:
        backbone: a VT-ResNet.
        checkpoint: path or address of the file.
        prefix: prefix of the backbone's names; found by itself if None.
        map_location: device to load to.

    Returns:
        The names in the backbone of what was loaded.

    Raises:
        UserError: the file lacks a tensor of the convolutional stages or holds one of another shape.
    """
    held = state_of(load_checkpoint(checkpoint, map_location), checkpoint)
    prefix = complete_prefix(held, prefix)
    state = {name.removeprefix(prefix): tensor for name, tensor in held.items() if name.startswith(prefix)}
    own = backbone.state_dict()
    new = tuple(f'{name}.' for name in backbone.vt_stages.values())
    missing = [name for name in own if name not in state and not name.startswith(new)]
    missing = [name for name in missing if not name.endswith('num_batches_tracked')]  # absent from old files
    if missing:
        raise UserError(
            f'{checkpoint} holds no {missing[0]} and {len(missing) - 1} more tensors of the ResNet-{backbone.depth} '
            'stages: give a ResNet of the same depth, and a prefix where its names have another one than "backbone."'
        )
    return _load(backbone, {name: state[name] for name in own if name in state}, held, checkpoint, prefix)


def load_public_weights(
    backbone: nn.Module, checkpoint: str, family: str | None, prefix: str | None = None, map_location: str = 'cpu'
) -> set[str]:
    """Load a checkpoint of ours, or a public one of a system of the survey; positions take the size of the grid.

    Args:
        backbone: a :class:`vt.models.TokenBackbone`.
        checkpoint: path or address of the file.
        family: the system's table in :mod:`vt.models.backbones.checkpoint_format`; None where there is none.
        prefix: prefix of the backbone's names; found by itself if None.
        map_location: device to load to.

    Returns:
        The names in the backbone of what was loaded. One line of the log says it, and what is new and left out.

    Raises:
        UserError: the file holds less than half of this backbone's tensors, or one of another shape.
    """
    held = state_of(load_checkpoint(checkpoint, map_location), checkpoint)
    prefix = complete_prefix(held, prefix)
    own = backbone.state_dict()
    to_new_names(held)
    state = {name.removeprefix(prefix): tensor for name, tensor in held.items() if name.startswith(prefix)}
    if family and len(own.keys() & state.keys()) < len(own) / 2:
        held = state = to_own_names(state, family, [len(stage.blocks) for stage in backbone.stages])
        prefix = ''
    for name in own.keys() - state.keys():  # one projection of ours, where theirs has the query's apart
        parts = [state.get(name.replace('.qkv.', f'.{part}.')) for part in ('query', 'key_value')]
        if all(part is not None for part in parts):
            state[name] = torch.cat(parts)
    for name, part in backbone.named_modules():
        for own_name, _ in part.named_parameters() if isinstance(part, POSITIONS) else ():
            if f'{name}.{own_name}' in state:
                state[f'{name}.{own_name}'] = part.resized(state[f'{name}.{own_name}'], own_name)
    matching = {name: state[name] for name in own if name in state}
    if len(matching) < len(own) / 2:
        raise UserError(
            f"{checkpoint} holds {len(matching)} of this backbone's {len(own)} tensors: give a file of the same "
            'system, from a library whose names are known for it, and its prefix'
        )
    for name, tensor in matching.items():
        if [side for side in own[name].shape if side != 1] == [side for side in tensor.shape if side != 1]:
            matching[name] = tensor.reshape(own[name].shape)  # a matrix where we have a 1x1 convolution, for example
    return _load(backbone, matching, held, checkpoint, prefix)


def _load(
    backbone: nn.Module, matching: dict[str, Tensor], held: dict[str, Tensor], checkpoint: str, prefix: str
) -> set[str]:
    """Load what matches of what a checkpoint held, and say in the log what was and what was not."""
    own = backbone.state_dict()
    for name, tensor in matching.items():
        if tensor.shape != own[name].shape:
            raise UserError(f'{checkpoint}: {name} is {tuple(tensor.shape)}, the model needs {tuple(own[name].shape)}')
    backbone.load_state_dict(matching, strict=False)
    new, left_out = own.keys() - matching, held.keys() - {f'{prefix}{name}' for name in matching}
    print_log(
        f'{checkpoint}: {len(matching)} tensors loaded; new in the model: {_count(new)}; '
        f'left out of the file: {_count(left_out, prefix)}',
        logger='current',
    )
    return set(matching)


def complete_prefix(state: dict[str, Tensor], prefix: str | None) -> str:
    """The prefix of the backbone's names, with its dot; found by itself if None."""
    if prefix is None:
        prefix = 'backbone' if any(name.startswith('backbone.') for name in state) else ''
    return f'{prefix}.' if prefix and not prefix.endswith('.') else prefix


def _count(names: Iterable[str], prefix: str = '') -> str:
    """How many tensors there are, and below which names."""
    names = sorted(names)
    depth = prefix.count('.') + 1
    prefixes = dict.fromkeys(
        '.'.join([*name.split('.')[: depth if name.startswith(prefix) else 1], '*']) for name in names
    )
    return f'{len(names)} ({", ".join(prefixes)})' if names else 'none'
