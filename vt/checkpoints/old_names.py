"""Names and forms that tensors of this project's checkpoints had in earlier versions, and have now."""

import json
import re
from typing import Any

from torch import Tensor, nn

from vt.errors import UserError

# A pattern and what replaces it, tried in order on every name.
OLD_NAMES = (
    (r'(\.feed_forward\.part)\.enter', r'\1.fc1'),
    (r'(\.feed_forward\.part)\.leave', r'\1.fc2'),
    (r'(^|\.)(stages\.\d+)\.conditional\.', r'\1\2.peg.'),
)
# What was kept divided by the argument ``step`` of a backbone or neck of Visual Transformer modules.
DIVIDED = re.compile(
    r'(backbone|neck)\..*?\b(tokenizers?|relation|projectors?)\.(\d+\.)?'
    r'((value|query|key|to_filters|feed_forward\d?|update)\.)?weight'
)
STEP = re.compile(r'\bstep=[\d.e-]+,?\s*')  # in the text of a config


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


def undivide(checkpoint: dict, name: str) -> None:
    """Multiply the matrices of a checkpoint, in place, that an earlier version kept divided by ``step``.

    By what they are divided is in the settings of its run. ``meta['divided_by']`` then holds it for each part.

    Args:
        checkpoint: with its texts.
        name: of its file, for errors.

    Raises:
        UserError: it has such matrices, and no settings that say by what they are divided.
    """
    meta = checkpoint.get('meta')
    if not isinstance(meta, dict) or not isinstance(meta.get('cfg'), str) or not STEP.search(meta['cfg']):
        return
    states = [state for key in ('state_dict', 'ema_state_dict') if isinstance(state := checkpoint.get(key), dict)]
    divided = [(state, key, found) for state in states for key in state if (found := DIVIDED.search(str(key)))]
    if not divided:  # of another project, whose config has a ``step`` of its own
        return
    settings = _settings(meta)
    steps = {part: settings.pop(f'model.{part}.step', 1.0) for part in ('backbone', 'neck')}
    if set(steps.values()) == {1.0} or any(key.startswith('model.') and key.endswith('.step') for key in settings):
        raise UserError(
            f'{name} is of an earlier version, which kept matrices divided by the setting step, and does not say by '
            'which number they are divided: give the file that its training wrote, or train again'
        )
    for state, key, found in divided:
        if isinstance(state[key], Tensor):
            state[key] = state[key] * steps[found[1]]
    meta.update(cfg=STEP.sub('', meta['cfg']), settings=json.dumps(settings), divided_by=steps)


def _settings(meta: dict) -> dict[str, Any]:
    """The settings of a run by their dotted keys, as its checkpoints hold them; none of one that has none."""
    try:
        settings = json.loads(meta.get('settings', '{}'))
    except (TypeError, ValueError, RecursionError):
        return {}
    return settings if isinstance(settings, dict) else {}
