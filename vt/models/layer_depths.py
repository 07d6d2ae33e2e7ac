"""Depths of parameters, for learning rates that decay by layers."""

import re
from collections.abc import Callable
from typing import Any

from torch import nn


def layer_depths(backbone: Any) -> dict[str, int]:
    """Layer index of each parameter of a backbone, from 0 without gaps.

    They are those of its ``get_layer_depth``. Without it the items of its lists, also of an encoder's, are one layer
    each, and so is what lies between lists; without lists each child is a layer.
    """
    names = [name for name, _ in backbone.named_parameters()]
    try:
        found = {name: backbone.get_layer_depth(f'backbone.{name}', 'backbone.')[0] for name in names}
    except (AttributeError, NotImplementedError):  # the backbone, or its depth, does not implement the method
        layers = _layers(backbone)
        found = {name: max([i for i, own in enumerate(layers) if name.startswith(own)], default=0) for name in names}
    order = {depth: index for index, depth in enumerate(sorted(set(found.values())))}
    return {name: order[depth] for name, depth in found.items()}


def depths_in_model(backbone: nn.Module) -> Callable[[str], tuple[int, int]]:
    """Return ``get_layer_depth`` of a model: what follows the last list of the backbone belongs to the head's layer."""
    depths = {f'backbone.{name}': depth for name, depth in layer_depths(backbone).items()}
    in_lists = [depth for name, depth in depths.items() if re.search(r'\.\d+\.', name)]
    head = max(in_lists or depths.values()) + 1
    return lambda name: (min(depths.get(name, head), head), head + 1)


def _layers(owner: nn.Module, prefix: str = '') -> list[tuple[str, ...]]:
    """Name prefixes of a backbone's layers in order; those of an only child instead of its own."""
    children = [
        (f'{prefix}{name}.', child) for name, child in owner.named_children() if any(True for _ in child.parameters())
    ]
    if len(children) == 1:
        return _layers(children[0][1], children[0][0])
    has_lists = any(_is_list(child) or _holds_list(child) for _, child in children)
    layers: list[tuple[str, ...]] = []
    joins = False  # the next child to the layer before
    for name, child in children:
        if _is_list(child):
            layers += [(f'{name}{index}.',) for index, _ in child.named_children()]
        elif _holds_list(child):
            layers += _layers(child, name)
        else:
            layers[len(layers) - joins :] = [(*(layers[-1] if joins else ()), name)]
        joins = has_lists and not (_is_list(child) or _holds_list(child))
    return layers or [(prefix,)]


def _is_list(module: nn.Module) -> bool:
    return isinstance(module, (nn.ModuleList, nn.Sequential))


def _holds_list(module: nn.Module) -> bool:
    """Return whether a module holds its layers in a list, such as ``encoder.layer`` of transformers' models."""
    return any(isinstance(child, nn.ModuleList) and len(child) > 1 for child in module.children())
