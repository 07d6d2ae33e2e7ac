"""Rules about which tensors a file of weights may lack, and which it may have in addition."""

import re
from collections.abc import Iterable

import torch
from torch import Tensor, nn

# Computed buffers, which only some versions of a library store.
COMPUTED = re.compile(
    r'(num_batches_tracked|relative_position_index|relative_coords_table|attn_mask|relative_id|point_coord)$'
)
# Positions, tokens and normalisations before the first block, which are no classifier and must not be ignored.
AT_INPUT = re.compile(
    r'(^|\.)(absolute_pos|pos_(embed|encoding|block)|position_embedding|rel(ative)?_pos'
    r'|(reg(ister)?_tokens?|storage_tokens|norm_pre|ln_pre)(\.|$))'
)
TOLERANCE = 1e-5  # of fixed positions, whose formulas round differently
STATISTICS = ('running_mean', 'running_var')


class Rules:
    """Rules about which tensors of a model a file may lack, and which it may have in addition.

    A file of the same model may lack BN's counters of batches, as old files do. A file for the beginning of a training
    may lack computed buffers; and as a whole normalisations of outputs, parts that a module lists in ``new_by_design``,
    and in a model with a backbone each other part. It may have classifiers, later stages, and parts that the model
    lacks as a whole.

    Args:
        model: a backbone or another part, or a whole model.
        whole: the file is of the same model.
        may_differ: prefixes of names that may be missing, ignored or have another shape, unless ``whole``.

    Attributes:
        free: prefixes of names that may have another shape: heads, and ``may_differ``.
    """

    def __init__(self, model: nn.Module, whole: bool = False, may_differ: tuple[str, ...] = ()) -> None:
        children, self.whole = dict(model.named_children()), whole
        self.base = 'backbone.' if 'backbone' in children else ''
        self.others = tuple(f'{child}.' for child in children if self.base and child != 'backbone')
        self.free = () if whole else (*may_differ, *(part for part in self.others if 'head' in part))
        backbone = model.get_submodule('backbone') if self.base else model
        by_design = [
            f'{name}.{part}.'.removeprefix('.')
            for name, module in model.named_modules()
            for part in getattr(module, 'new_by_design', ())
        ]
        norms = [
            f'{self.base}{name}.'
            for name, child in backbone.named_children()
            if re.search(r'norm|^ln\d', name) and all(parameter.dim() == 1 for parameter in child.parameters())
        ]
        self.optional = [*by_design, *norms, *self.others]
        self.buffers = {name for name, _ in model.named_buffers() if not name.endswith(STATISTICS)}
        self.parts = {part_of(key) for key in backbone.state_dict()} | dict(backbone.named_children()).keys()

    def lacking(self, missing: Iterable[str], loaded: set[str]) -> list[str]:
        """Return the missing tensors that a file must have, given the names of those that were loaded."""
        if self.whole:
            return sorted(key for key in missing if not key.endswith('num_batches_tracked'))
        allowed = self._allowed(loaded)
        return sorted(key for key in missing if key not in self.buffers and not key.startswith(allowed))

    def excess(self, left: Iterable[str], loaded: set[str]) -> list[str]:
        """Return the tensors of a file that must not be ignored, given the names of those that were loaded."""
        allowed = () if self.whole else self._allowed(loaded)
        return sorted(key for key in left if self.whole or not (key.startswith(allowed) or self._is_foreign(key)))

    def _allowed(self, loaded: set[str]) -> tuple[str, ...]:
        return *self.free, *(part for part in self.optional if not any(key.startswith(part) for key in loaded))

    def _is_foreign(self, key: str) -> bool:
        """Return whether a tensor is of a part that the model does not have, such as a classifier or a later stage."""
        if not key.startswith(self.base):
            return not key.startswith(self.others)
        key = key.removeprefix(self.base)
        return part_of(key) not in self.parts and not AT_INPUT.search(key)


def part_of(key: str) -> str:
    """Return the part of a backbone that a tensor is of: a stage, the downsampling at its end, or another module."""
    found = re.match(r'stages\.\d+(\.downsample)?(?=\.)|[^.]+', key)
    return found[0] if found else ''


def split_computed(model: nn.Module, state: dict[str, Tensor], names: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return which names of a file the model does not know, and which it computes itself, with the same values."""
    buffers = dict(model.named_buffers())
    computed = [key for key in names if COMPUTED.search(key) or _is_equal(buffers.get(key), state[key])]
    return [key for key in names if key not in computed], computed


def _is_equal(own: Tensor | None, given: Tensor) -> bool:
    """Return whether a buffer, such as coordinates of a window, equals a file's; those of other windows need not."""
    if own is None or own.numel() != given.numel():
        return own is not None
    return torch.allclose(own.flatten().double().cpu(), given.flatten().double().cpu(), rtol=0, atol=TOLERANCE)
