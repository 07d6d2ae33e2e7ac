"""Recognise the format of a file of weights by its names, and convert its tensors to the names and sizes of a model."""

import re
from collections import OrderedDict
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from vt.checkpoints.grids import FileGrids, Size
from vt.errors import UserError
from vt.untrusted_text import printable

from . import convolutional, multiscale, pyramids, single_scale, windowed
from .table import Format, State

Change = tuple[Size, Size]  # size in a file and in the model
PUBLIC = 3  # input channels of public weights
OWN = Format("the model's own names", '', ())
FORMATS = single_scale.FORMATS + windowed.FORMATS + pyramids.FORMATS + multiscale.FORMATS + convolutional.FORMATS
# Prefixes of wrappers and containers.
WRAPPERS = ('module', 'model', 'backbone', 'encoder', 'encoder_q', '_orig_mod', 'net')
# Tensors that are one in our models and separate in files, in the order in which they are joined.
APART = (
    (r'qkv(?=\.)', ('query', 'key', 'value')),
    (r'qkv(?=\.)', ('query', 'key_value')),
    (r'key_value(?=\.)', ('key', 'value')),
    (r'in_proj(?=_)', ('query_key', 'value')),
)
TOGETHER = re.compile(r'\.(query|key|value)[._](weight|bias)$')  # separate in our models, one tensor in files


def to_own_names(model: nn.Module, state: State, prefix: str | None = None) -> tuple[str, State, list[str]]:
    """Rename the tensors of a file for a model: a backbone, or a whole model with a ``backbone``.

    All formats whose mark occurs in the file are tried with all prefixes of wrappers, or with the given one. The pair
    that gives the most tensors of the model is used. Two tensors that get one name and differ are a UserError.

    Returns:
        Name of the format, renamed tensors, and names in the file without the prefix.
    """
    own, backbone = model.state_dict(), getattr(model, 'backbone', model)
    # The names of a library's model are its own, as those of vt.TimmBackbone, or of a family.
    formats = [Format("the library's", '', backbone.own_names)] if hasattr(backbone, 'own_names') else FORMATS
    others = tuple(f'{child}.' for child, _ in model.named_children()) if hasattr(model, 'backbone') else None
    table, wrapper, names = _recognise(state, own, formats, others, prefix)
    renamed = _enter(state, names)
    if table is not OWN:
        _adapt(renamed, table, own, '' if others is None else 'backbone.')
    for name in own:
        if name not in renamed:
            _join(renamed, name)
    for name in own.keys() & renamed.keys():
        if own[name].shape != renamed[name].shape and _sides(own[name]) == _sides(renamed[name]):
            renamed[name] = renamed[name].reshape(own[name].shape)  # a linear layer and a 1x1 convolution
    for name in {whole for name in own if (whole := _whole(name)) and whole not in own and whole in renamed}:
        del renamed[name]  # it has been split
    versions = getattr(state, '_metadata', {}) if table is OWN else {}
    renamed._metadata = OrderedDict((_place(key.removeprefix(wrapper), others), versions[key]) for key in versions)
    return table.name, renamed, [name for name in state if name not in names]


def _recognise(
    state: State, own: State, formats: Iterable[Format], others: tuple[str, ...] | None, prefix: str | None
) -> tuple[Format, str, dict[str, str]]:
    """Return the format, the prefix and the new names that give the most of a model's ``own`` tensors."""
    best, most = (OWN, prefix or '', {name: _place(name, others) for name in state}), -1
    for wrapper in [prefix] if prefix is not None else _prefixes(state):
        below = {name: name.removeprefix(wrapper) for name in state if name.startswith(wrapper)}
        if wrapper.endswith('backbone.') and others:  # heads are outside the backbone
            outer = wrapper.removesuffix('backbone.')
            below |= {name: name.removeprefix(outer) for name in state if not name.startswith(wrapper)}
        text = '\n'.join(below.values())
        for table in (OWN, *(table for table in formats if re.search(table.mark, text, re.MULTILINE))):
            names = {name: _place(renamed, others) for name, renamed in _rename(below, table, own).items()}
            found = len(own.keys() & names.values())
            if found > most:
                best, most = (table, wrapper, names), found
    return best


def resize_positions(model: nn.Module, state: State, grids: FileGrids, exempt: tuple[str, ...]) -> dict[str, Change]:
    """Resize positions in a state dict to the model's grids, in place; return old and new grid by name."""
    resized = {}
    for part_name, part in model.named_modules():
        for own_name, own in part.state_dict().items() if hasattr(part, 'resized') else ():
            key = f'{part_name}.{own_name}'.removeprefix('.')
            if key not in state or key.startswith(exempt) or state[key].shape[-1:] != own.shape[-1:]:
                continue
            try:
                state[key], size, to = part.resized(state[key], own_name, grids)
            except UserError as error:
                raise UserError(f'{key}: {error}') from None
            if size != to:
                resized[key] = (size, to)
    return resized


def _prefixes(state: State) -> list[str]:
    """Return the prefixes of wrappers in the names of a file, the shortest first."""
    found = {''}
    for name in state:
        parts = name.split('.')
        for end, part in enumerate(parts, 1):
            if part not in WRAPPERS:
                break
            found.add('.'.join(parts[:end]) + '.')
    return sorted(found, key=len)


def _place(name: str, others: tuple[str, ...] | None) -> str:
    """Return a name in the whole model: names that do not start with one of the other parts are in the backbone."""
    return name if others is None or name.startswith(others) else f'backbone.{name}'


def _rename(names: dict[str, str], table: Format, own: Iterable[str]) -> dict[str, str]:
    """Rename the names of a file by a table."""
    rules = [(re.compile(pattern), replacement) for pattern, replacement in table.rules]
    blocks = {}
    if table.numbered_through:
        stages = [re.search(r'stages\.(\d+)\.blocks\.(\d+)\.', name) for name in own]
        numbers = sorted({(int(found[1]), int(found[2])) for found in stages if found})
        blocks = {str(index): f'stages.{stage}.blocks.{block}.' for index, (stage, block) in enumerate(numbers)}
    renamed = {}
    for key, name in names.items():
        if blocks:
            name = re.sub(r'^blocks\.(\d+)\.', lambda found: blocks.get(found[1], found[0]), name)
        for pattern, replacement in rules:
            name = pattern.sub(replacement, name)
        renamed[key] = name
    return renamed


def _enter(state: State, names: dict[str, str]) -> OrderedDict:
    """Return the tensors under their new names."""
    renamed: OrderedDict[str, Tensor] = OrderedDict()
    for name, new in names.items():
        if new in renamed and not torch.equal(renamed[new], state[name]):
            both = f'{printable(name, 120)} and another tensor are both {printable(new, 120)}'
            raise UserError(f'{both} of the model, but differ')
        renamed[new] = state[name]
    return renamed


def _adapt(state: State, table: Format, own: State, base: str) -> None:
    """Convert tensors whose order or number differs from the model's, in place."""
    for name in list(state) if table.neighbours else ():
        is_joined = re.match(table.neighbours, name.removeprefix(base))
        if is_joined and not state[name].shape[-1:].numel() % 4:  # others are refused when all are loaded
            neighbours = state[name].unflatten(-1, (4, -1))[..., [0, 2, 1, 3], :]  # as patch merging orders them
            state[name] = neighbours.transpose(-2, -1).flatten(-2)
    for name in [name for name in state if name.endswith('class_tokens')]:  # the class and distillation token of DeiT
        distilled = name.replace('class_tokens', 'distillation_token')
        if distilled in state and name in own and own[name].shape[1] == 2:
            state[name] = torch.cat([state[name], state.pop(distilled)], dim=1)
    if table.change:
        heads = {name: state.pop(name) for name in list(state) if not name.startswith(base)}
        inside = {name.removeprefix(base): state.pop(name) for name in list(state)}
        table.change(inside, {name.removeprefix(base): tensor for name, tensor in own.items()})
        state.update({f'{base}{name}': tensor for name, tensor in inside.items()} | heads)


def _join(state: State, name: str) -> None:
    """Make a tensor of the model by joining several tensors of the file, or by taking a third of one."""
    for pattern, kinds in APART:
        parts = [re.sub(pattern, kind, name) for kind in kinds]
        if parts[0] != name and all(part in state for part in parts):
            state[name] = torch.cat([state.pop(part) for part in parts])
            return
    third, whole = TOGETHER.search(name), _whole(name)
    if third and whole in state and not state[whole].shape[0] % 3:
        state[name] = state[whole].chunk(3)[('query', 'key', 'value').index(third[1])]


def _whole(name: str) -> str:
    """Return the name of the joint tensor of queries, keys and values, given the name of one; else an empty string."""
    renamed = TOGETHER.sub(r'.qkv.\2', name)
    return renamed if renamed != name else ''


def _sides(tensor: Tensor) -> list[int]:
    return [side for side in tensor.shape if side != 1]


def adapt_channels(weight: Tensor, number: int) -> Tensor:
    """Adapt the weight ``(out, old, ...)`` of a convolution to another number of input channels.

    As in timm's ``adapt_input_conv``, a single channel gets the sum of the old ones. Several get those of the old
    channels 0, 1, 2, 0, 1, ..., multiplied by old / new number of channels. An image whose channels are equal gives the
    same output if all old channels are used equally often.
    """
    old = weight.shape[1]
    exact = weight.to(torch.promote_types(weight.dtype, torch.float32))
    taken = exact.mean(dim=1, keepdim=True) if number == 1 else exact[:, torch.arange(number) % old]
    return (taken * (old / number)).to(weight.dtype)


def adapt_stem(model: nn.Module, state: dict[str, Tensor], exempt: tuple[str, ...]) -> str:
    """Adapt, in place, the convolutions whose input is the image to the number of channels of the model.

    They are recognised by shape: file and model differ only in the number of input channels, and the file has three.
    Names that begin as ``exempt`` says are not changed. Return a note for the log, empty if nothing was adapted.
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
