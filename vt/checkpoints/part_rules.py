"""Rules about which tensors a file of weights may lack, and which it may have in addition."""

import re
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from vt.errors import UserError
from vt.untrusted_text import printable

# Computed buffers, which only some versions of a library store.
COMPUTED = re.compile(
    r'(num_batches_tracked|relative_position_index|relative_coords_table|attn_mask|relative_id|point_coord)$'
)
# Positions, which must not be ignored.
POSITIONS = re.compile(r'(^|\.)(absolute_pos|pos_(embed|encoding|block)|position_embedding|rel(ative)?_pos)')
# Tokens and normalisations before the first block, which are no classifier and must not be ignored either.
AT_INPUT = re.compile(r'(^|\.)(reg(ister)?_tokens?|storage_tokens|norm_pre|ln_pre)(\.|$)')
REGISTERS = re.compile(r'(^|\.)(reg(ister)?_tokens?|storage_tokens)$')
TOLERANCE = 1e-5  # of fixed positions, whose formulas round differently
STATISTICS = ('running_mean', 'running_var')


class PartRules:
    """Rules about which tensors of a model may be missing in a file, and which tensors of a file may be ignored.

    Parts that a module lists in ``new_by_design`` may be missing.

    Args:
        model: a backbone or another part, or a whole model.
        own: state dict of the model.
        may_differ: prefixes of names that may be missing, ignored or have another shape.
    """

    def __init__(self, model: nn.Module, own: dict[str, Tensor], may_differ: str | Sequence[str]) -> None:
        children = dict(model.named_children())
        self.own, self.exempt = own, (may_differ,) if isinstance(may_differ, str) else tuple(may_differ)
        self.base = 'backbone.' if 'backbone' in children else ''
        self.others = [f'{child}.' for child in children if self.base and child != 'backbone']
        backbone = model.get_submodule('backbone') if self.base else model
        self.new: list[str] = [
            '.'.join(filter(None, (name, part))) + '.'
            for name, module in model.named_modules()
            for part in getattr(module, 'new_by_design', ())
        ]
        self.new += [  # output normalisation
            f'{self.base}{name}.'
            for name, child in backbone.named_children()
            if re.search(r'norm|^ln\d', name) and all(parameter.dim() == 1 for parameter in child.parameters())
        ]
        buffers = {name for name, _ in model.named_buffers()}
        self.computed = {key for key in buffers if not key.endswith(STATISTICS)}
        first = {key[len(self.base) :].split('.')[0] for key in own if key.startswith(self.base)}
        first |= dict(backbone.named_children()).keys()  # also parts without state
        self.first = {f'{self.base}{name}' for name in first}
        numbers = [int(found[1]) for key in own if (found := re.match(rf'{self.base}stages\.(\d+)\.', key))]
        self.last_stage = max(numbers, default=None)

    def is_free(self, key: str) -> bool:
        """Return whether a tensor may have another shape: it is in a head or in ``may_differ``."""
        return key.startswith(self.exempt) or any(key.startswith(part) for part in self.others if 'head' in part)

    def may_be_missing(self, key: str, loaded: Iterable[str]) -> bool:
        """Return whether the file may lack a tensor; ``loaded`` are the names that it has."""
        whole = [*self.new, *self.others]
        return (
            self.is_free(key)
            or key in self.computed
            or any(key.startswith(part) and not _any_below(part, loaded) for part in whole)
        )

    def may_be_left(self, key: str, loaded: Iterable[str]) -> bool:
        """Return whether a tensor of the file may be ignored; ``loaded`` are the names that the model has.

        Computed tensors are not asked about, see :func:`split_computed`.
        """
        if self.is_free(key):
            return True
        if any(key.startswith(part) and not _any_below(part, loaded) for part in [*self.new, *self.others]):
            return True
        if not key.startswith(self.base):
            return not key.startswith(tuple(self.others))
        stage = re.match(rf'{self.base}stages\.(\d+)\.(downsample\.)?', key)
        if stage and self.last_stage is not None and int(stage[1]) >= self.last_stage + (not stage[2]):
            return True  # a later stage, or the downsampling before it
        is_other = '.'.join(key.split('.')[: 1 + bool(self.base)]) not in self.first  # such as a classifier
        return is_other and not POSITIONS.search(key) and not AT_INPUT.search(key)


def split_computed(model: nn.Module, state: dict[str, Tensor], names: list[str]) -> tuple[list[str], list[str]]:
    """Return which names of a file the model does not know, and which it computes itself, with the same values."""
    buffers = dict(model.named_buffers())
    computed = [key for key in names if COMPUTED.search(key) or _is_equal(buffers.get(key), state[key])]
    return [key for key in names if key not in computed], computed


def _is_equal(own: Tensor | None, given: Tensor) -> bool:
    """Return whether a buffer, such as coordinates of a window, equals a file's; those of other windows need not."""
    if own is None or own.numel() != given.numel():
        return own is not None
    return torch.allclose(own.flatten().double().cpu(), given.flatten().double().cpu(), rtol=0, atol=TOLERANCE)


def require_parts(
    rules: PartRules, loaded: set[str], missing: Sequence[str], left: Sequence[str], name: str, remedy: str
) -> None:
    """Check the missing and the ignored tensors of a file by the rules.

    Raises:
        UserError: a tensor is missing or ignored that must not be, or nothing was loaded; ``remedy`` ends the message.
    """
    if not loaded:
        first = f"its first is {printable(min(left, default=None), 120)}, the model's {min(rules.own, default=None)}"
        raise UserError(f'{name} has none of the {len(rules.own)} tensors of the model: {first}; {remedy}')
    for difference, names in (
        ('lacks', [key for key in missing if not rules.may_be_missing(key, loaded)]),
        ('also has', [key for key in left if not rules.may_be_left(key, loaded)]),
    ):
        if names:
            some = printable(', '.join(names[:3]), 300)
            more = f' and {len(names) - 3} more' if len(names) > 3 else ''
            raise UserError(f'{name} does not fit: of {len(rules.own)} tensors it {difference} {some}{more}; {remedy}')


def _any_below(prefix: str, names: Iterable[str]) -> bool:
    return any(name.startswith(prefix) for name in names)
