"""Rules about which tensors a file of weights may lack, and which it may have in addition."""

import math
import re
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from vt.errors import UserError
from vt.untrusted_text import printable

# Computed buffers, which only some versions of a library store.
COMPUTED = re.compile(
    r'(num_batches_tracked|relative_position_index|relative_coords_table|attn_mask|relative_id|point_coord)$'
)
POSITIONS = re.compile(r'(^|\.)(absolute_pos|pos_(embed|encoding|block)|position_embedding|rel(ative)?_pos)')
# Tokens and normalisations before the first block, which as positions are no classifier and must not be ignored.
AT_INPUT = re.compile(r'(^|\.)(reg(ister)?_tokens?|storage_tokens|norm_pre|ln_pre)(\.|$)')
STAGE = re.compile(r'stages\.(\d+)\.(downsample\.)?')
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
        children, self.own, self.whole = dict(model.named_children()), model.state_dict().keys(), whole
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
        self.optional = [] if whole else [*by_design, *norms, *self.others]
        computed = 'num_batches_tracked' if whole else ''
        buffers = (name for name, _ in model.named_buffers() if name.endswith(computed))
        self.computed = {name for name in buffers if not name.endswith(STATISTICS)}
        stages = (int(found[1]) for key in backbone.state_dict() if (found := STAGE.match(key)))
        self.last_stage = max(stages, default=math.inf)
        self.parts = {key.split('.')[0] for key in backbone.state_dict()} | dict(backbone.named_children()).keys()

    def require(self, loaded: set[str], missing: Iterable[str], left: Iterable[str]) -> None:
        """Compare the tensors of a file with the rules.

        Args:
            loaded: names of the loaded tensors of the model.
            missing: names in the model that the file does not have.
            left: names in the file that were not used.

        Raises:
            UserError: a tensor is missing or ignored that must not be, or nothing was loaded.
        """
        absent = (part for part in self.optional if not any(key.startswith(part) for key in loaded))
        allowed = (*self.free, *absent)
        lacking = sorted(key for key in missing if key not in self.computed and not key.startswith(allowed))
        excess = sorted(key for key in left if not (key.startswith(allowed) or self._is_foreign(key)))
        for difference, names in (('lacks', lacking), ('also has', excess)):
            if names:
                more = f' and {len(names) - 1} more' if len(names) > 1 else ''
                raise UserError(f'of {len(self.own)} tensors it {difference} {printable(names[0], 120)}{more}')
        if not loaded:
            raise UserError(f'it has none of the {len(self.own)} tensors')

    def _is_foreign(self, key: str) -> bool:
        """Return whether a tensor is of a part that the model does not have, such as a classifier or a later stage."""
        if self.whole:
            return False
        if not key.startswith(self.base):
            return not key.startswith(self.others)
        key = key.removeprefix(self.base)
        stage = STAGE.match(key)
        if stage and int(stage[1]) >= self.last_stage + (not stage[2]):
            return True  # a later stage, or the downsampling before it
        return key.split('.')[0] not in self.parts and not (POSITIONS.search(key) or AT_INPUT.search(key))


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
