"""Convert tensors of checkpoints of earlier versions of VT to their present names and values."""

import json
import re
from typing import Any

from torch import Tensor, nn

from vt.errors import UserError

# Patterns and replacements, applied in order to every name.
OLD_NAMES = (
    (r'(\.feed_forward\.part)\.enter', r'\1.fc1'),
    (r'(\.feed_forward\.part)\.leave', r'\1.fc2'),
    (r'(^|\.)(stages\.\d+)\.conditional\.', r'\1\2.peg.'),
)
# Matrices that were stored divided by the argument ``step`` of a backbone or neck with Visual Transformer modules.
DIVIDED = re.compile(
    r'(backbone|neck)\..*?\b(tokenizers?|relation|projectors?)\.(\d+\.)?'
    r'((value|query|key|to_filters|feed_forward\d?|update)\.)?weight'
)
STEP = re.compile(r'\bstep=[\d.e-]+,?\s*')  # in the text of a config


def to_new_names(state: dict[str, Any], prefix: str = '') -> None:
    """Rename the entries of a state dict whose name starts with ``prefix``, in place."""
    for name in [name for name in state if name.startswith(prefix)]:
        renamed = name
        for pattern, replacement in OLD_NAMES:
            renamed = re.sub(pattern, replacement, renamed)
        if renamed != name:
            state[renamed] = state.pop(name)


def load_old_names(module: nn.Module) -> None:
    """Make ``module.load_state_dict`` accept the old names, too."""
    module.register_load_state_dict_pre_hook(_rename)


def _rename(module: nn.Module, state: dict[str, Any], prefix: str, *args: Any) -> None:
    to_new_names(state, prefix)


def undivide(checkpoint: dict, name: str) -> None:
    """Multiply the matrices that an earlier version stored divided by ``step``, in place.

    The divisor is in the settings of the run. It is stored for each part in ``meta['divided_by']``.

    Args:
        checkpoint: a checkpoint with the text of its config.
        name: name of the file, for messages.

    Raises:
        UserError: the checkpoint has such matrices, but its settings do not contain the divisor.
    """
    meta = checkpoint.get('meta')
    if not isinstance(meta, dict) or not isinstance(meta.get('cfg'), str) or not STEP.search(meta['cfg']):
        return
    states = [state for key in ('state_dict', 'ema_state_dict') if isinstance(state := checkpoint.get(key), dict)]
    divided = [(state, key, found) for state in states for key in state if (found := DIVIDED.search(str(key)))]
    if not divided:  # another project with an argument ``step``
        return
    settings = _settings(meta)
    steps = {part: settings.pop(f'model.{part}.step', 1.0) for part in ('backbone', 'neck')}
    if set(steps.values()) == {1.0} or any(key.startswith('model.') and key.endswith('.step') for key in settings):
        raise UserError(
            f'{name} was written by an earlier version, which stored matrices divided by the setting step, but does '
            'not contain this setting: give the file that the training wrote, or train again'
        )
    for state, key, found in divided:
        if isinstance(state[key], Tensor):
            state[key] = state[key] * steps[found[1]]
    meta.update(cfg=STEP.sub('', meta['cfg']), settings=json.dumps(settings), divided_by=steps)


def _settings(meta: dict) -> dict[str, Any]:
    """Return the settings of a run in a checkpoint by their dotted keys; empty if it has none."""
    try:
        settings = json.loads(meta.get('settings', '{}'))
    except (TypeError, ValueError, RecursionError):
        return {}
    return settings if isinstance(settings, dict) else {}
