"""Names that tensors of this project's checkpoints had in earlier versions, and have now."""

import re
from typing import Any

from torch import nn

# A pattern and what replaces it, tried in order on every name.
OLD_NAMES = (
    (r'(\.feed_forward\.part)\.enter', r'\1.fc1'),
    (r'(\.feed_forward\.part)\.leave', r'\1.fc2'),
    (r'(^|\.)(stages\.\d+)\.conditional\.', r'\1\2.peg.'),
)


def to_new_names(state: dict[str, Any], prefix: str = '') -> None:
    """Rename the entries of a state dict, in place, whose name begins with ``prefix``."""
    for name in [name for name in state if name.startswith(prefix)]:
        renamed = name
        for pattern, replacement in OLD_NAMES:
            renamed = re.sub(pattern, replacement, renamed)
        if renamed != name:
            state[renamed] = state.pop(name)


def load_old_names(module: nn.Module) -> None:
    """Have ``module.load_state_dict`` take the old names, too."""
    module.register_load_state_dict_pre_hook(_rename)


def _rename(module: nn.Module, state: dict[str, Any], prefix: str, *args: Any) -> None:
    to_new_names(state, prefix)
