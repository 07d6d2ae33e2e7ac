"""``--cfg-options`` with a misspelt key would set something that nobody reads: it is refused, with its neighbours."""

from typing import Any

from mmengine.config import Config
from mmengine.optim import OptimWrapper
from mmengine.registry import Registry, root
from mmengine.runner import EpochBasedTrainLoop, IterBasedTrainLoop, Runner
from torch.utils.data import DataLoader

from vt.engine.errors.neighbours import neighbours
from vt.engine.errors.signatures import accepted_arguments

from .config_check import LOADER_KEYS

# Keys of a config that tools and parts read beside the runner's.
OTHER_KEYS = (
    'compile',
    'custom_imports',
    'find_unused_parameters',
    'model_wrapper_cfg',
    'runner_type',
    'speed',
    'strategy',
    'sync_bn',
    'tta_model',
    'tta_pipeline',
)
# Dicts of a config that are no calls of a type.
PLAIN = {
    '': [*accepted_arguments(Runner)[0], *OTHER_KEYS],
    'env_cfg': ['cudnn_benchmark', 'mp_cfg', 'dist_cfg', 'resource_limit'],
    'auto_scale_lr': ['enable', 'base_batch_size'],
    'randomness': ['seed', 'diff_rank_seed', 'deterministic'],
}
# Keys that are taken beside the arguments of a type, and the type where none is named.
BESIDE = {
    'optim_wrapper': (['optimizer', 'constructor', 'paramwise_cfg'], OptimWrapper),
    'train_cfg': (['by_epoch'], None),
}


def check_options(cfg: Config, options: dict[str, Any]) -> None:
    """Refuse the key of an option that the config does not hold and no part of it would read.

    Where a part takes any setting, or its class is not known, every key passes.

    Args:
        cfg: before the options are entered.
        options: by their keys, such as ``model.backbone.depth``.

    Raises:
        ValueError: a key that nothing reads.
    """
    scope = cfg.get('default_scope')
    scope = scope if isinstance(scope, str) else None
    for option in options:
        part, path = cfg, ''
        for key in option.split('.'):
            if isinstance(part, (list, tuple)) and key.isdecimal() and int(key) < len(part):
                part, path = part[int(key)], f'{path}.{key}'
                continue
            if not isinstance(part, (dict, Config)) or key == '_delete_':
                break
            known = _readable(part, path, scope, options)
            if key not in part and known is not None and key not in known:
                hint = neighbours(key, sorted({*known, *part} - {'_scope_', 'type'}))
                raise ValueError(f"--cfg-options {option}: {path or 'the config'} has no setting '{key}'; {hint}")
            part, path = part.get(key), f'{path}.{key}' if path else key


def _readable(part: Any, path: str, scope: str | None, options: dict[str, Any]) -> list[str] | None:
    """The keys that something would read in a part of a config; None where that is not known."""
    if path in PLAIN:
        return PLAIN[path]
    if path.endswith('_dataloader'):
        return [*accepted_arguments(DataLoader)[0], *LOADER_KEYS]
    beside, usual = BESIDE.get(path, ([], None))
    kind = options.get(f'{path}.type', part.get('type', usual))
    if path == 'train_cfg' and kind is None:
        loops = [EpochBasedTrainLoop, IterBasedTrainLoop]
        return [*beside, 'type', *{name for loop in loops for name in accepted_arguments(loop)[0]}]
    built = _find_class(kind, scope) if isinstance(kind, str) else kind
    if built is None:
        return None
    names, takes_any = accepted_arguments(built)
    return None if takes_any else [*names, *beside, 'type', '_scope_']


def _find_class(name: str, scope: str | None) -> Any:
    """The class of a type, if the registries that know it agree."""
    found = []
    for registry in {id(value): value for value in vars(root).values() if isinstance(value, Registry)}.values():
        built = registry.children.get(scope, registry).get(name)
        if built is not None and built not in found:
            found.append(built)
    return found[0] if len(found) == 1 else None
