"""Load weights into a model, and refuse them if tensors are missing, unexpected or differ; mmengine only warns.

All loading uses this module: ``init_cfg=dict(type='Pretrained', ...)``, ``load_from``, ``--resume``, tests,
predictions, exports and teachers.
"""

import logging
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from mmengine.hooks import Hook
from mmengine.logging import print_log
from mmengine.model import BaseModule, BaseTTAModel, is_model_wrapper
from mmengine.runner import Runner
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from vt.errors import UserError
from vt.registry import HOOKS
from vt.untrusted_text import printable

from .channels import Channels, adapt_stem
from .formats.recognise import OWN, to_own_names
from .grids import FileGrids, Size, size_text
from .part_rules import POSITIONS, REGISTERS, PartRules, require_parts, split_computed
from .reading import STATES, load_checkpoint

AVERAGES = ('state_dict_ema', 'model_ema', 'ema_state_dict', 'ema')
COUNTERS = ('steps', 'n_averaged')  # tensors among averages of mmengine and torchvision


def load_weights(
    model: nn.Module,
    checkpoint: str | Path | dict,
    owner: str = 'the model',
    remedy: str = 'give the config that it was trained with',
    name: str = 'the checkpoint',
    weights: str | None = None,
    grid: Size | None = None,
    resizes: bool = True,
    adapts: bool = False,
) -> str:
    """Load all tensors of a model, without missing or unexpected keys.

    The prefix ``module.`` of a data-parallel model is removed. BN's counters of batches may be missing, as in old
    files.

    Args:
        model: the model; may be wrapped.
        checkpoint: path or address of a checkpoint of mmengine or of a state dict, or its content.
        owner: whose weights they must be, for messages.
        remedy: what to do if they do not fit, for messages.
        name: name of the file, for messages, if its content is given.
        weights, grid: see :func:`load_part`.
        resizes: resize positions of another grid.
        adapts: adapt convolutions of the image to another number of channels than three.

    Returns:
        A line for the log: what was loaded and resized.

    Raises:
        UserError: names or shapes differ, or the file cannot be read, is damaged, or asks for more than weights need.
    """
    if not isinstance(checkpoint, dict):
        name = str(checkpoint)
        checkpoint = load_checkpoint(name, map_location='cpu')
    model = unwrap(model)
    own = model.state_dict()
    source, state, outside = to_own_names(model, state_of(checkpoint, name, weights))
    grids = FileGrids(grid, *_image_sizes(model, checkpoint), is_same_model=True)
    resized = _resize_positions(model, state, grids, name) if resizes else {}
    adapted = adapt_stem(model, state, None, name) if adapts else []
    with _unchanged_if_refused(model):
        missing, unexpected = _enter(model, state, f"{name} is not {owner}'s", remedy)
        missing = [key for key in missing if not key.endswith('num_batches_tracked')]
        unexpected, left = split_computed(model, state, unexpected)
        unexpected += outside
        for difference, names in (('lacks', missing), ('also has', unexpected)):
            if names:
                reason = f'of {len(own)} tensors it {difference} {printable(min(names), 120)} and {len(names) - 1} more'
                raise UserError(f"{name} is not {owner}'s: {reason}; {remedy}")
    notes = [*adapted, f'format: {source}', *which_weights(checkpoint, weights)]
    line = describe(name, len(own) - len(missing), resized, (), left, notes)
    if resized or weights or len(notes) > 1 or source != OWN.name:
        print_log(line, logger='current')
    return line


def load_part(
    model: nn.Module,
    checkpoint: str | Path | dict,
    prefix: str | None = None,
    map_location: str = 'cpu',
    weights: str | None = None,
    grid: Size | None = None,
    may_differ: str | Sequence[str] = (),
    name: str = 'the checkpoint',
    channels: Channels | None = None,
) -> set[str]:
    """Load a backbone, or a whole model for a new task; one line of the log says what was loaded.

    All tensors of a backbone must be in the file, except VT modules and normalisations of outputs that it lacks as a
    whole. The file may have a classifier and later stages in addition. In a whole model, heads are loaded if their
    shapes fit, and each other part completely or, if the file lacks it, not at all. Positions of another grid are
    resized, and convolutions of the image are adapted to another number of channels than three.

    Args:
        model: a backbone or another part, or a whole model.
        checkpoint: path or address of the file, or its content.
        prefix: prefix of the part's names in the file; None to find it.
        map_location: device to load to.
        weights: key of the state dict in the file, such as ``'state_dict_ema'``; by default the first one.
        grid: grid of the file's positions, (height, width) or (frames, height, width); by default that of the config in
            the file, or a square if the model's is square.
        may_differ: prefixes of names that may be missing, ignored or have another shape.
        name: name of the file, for messages, if its content is given.
        channels: for each input channel of the model the channel of the file, see
            :func:`vt.checkpoints.channels.adapt_channels`.

    Returns:
        Names of the loaded tensors.

    Raises:
        UserError: a tensor is missing, unexpected or has another shape, or the grid of positions is unknown.
    """
    if not isinstance(checkpoint, dict):
        name = str(checkpoint)
        checkpoint = load_checkpoint(name, map_location)
    model = unwrap(model)
    held, own = state_of(checkpoint, name, weights), model.state_dict()
    if prefix is not None:
        prefix = _with_dot(prefix)
    if not any(key.startswith(prefix or '') for key in held):
        raise UserError(
            f'{name} has no tensors with prefix={prefix!r}: correct prefix, its first tensor is '
            f'{printable(min(held), 120)}'
        )
    source, state, outside = to_own_names(model, held, prefix)
    rules = PartRules(model, own, may_differ)
    resized = _resize_positions(model, state, FileGrids(grid, *_image_sizes(model, checkpoint)), name, rules.exempt)
    adapted = adapt_stem(model, state, channels, name, rules.exempt)
    left = []
    for key in own.keys() & state.keys():
        if own[key].shape != state[key].shape and rules.is_free(key):
            left.append(key)
            del state[key]
        elif own[key].shape != state[key].shape:
            resized[key] = (tuple(state[key].shape), tuple(own[key].shape))  # the part resizes it itself, or refuses it
    keys = (
        'may_differ or prefix beside checkpoint in init_cfg, or may_differ in default_hooks.weights_match of the config'
    )
    remedy = f'give a file of the same model, or set {keys}'
    with _unchanged_if_refused(model):
        missing, unexpected = _enter(model, state, f'{name} does not fit', remedy)
        unexpected, computed = split_computed(model, state, unexpected)
        counters = {key for key in own if key.endswith('num_batches_tracked')}  # missing ones start at 0
        loaded, left = own.keys() - missing - (counters - state.keys()), [*left, *unexpected]
        require_parts(rules, loaded, sorted(missing), sorted(left), name, remedy)
    left = [f'{prefix or ""}{key}' for key in (*left, *computed)] + outside
    notes = [*adapted, f'format: {source}', *which_weights(checkpoint, weights)]
    print_log(describe(name, len(loaded), resized, missing, left, notes), logger='current')
    return loaded


def load_init_cfg(part: nn.Module, init_cfg: dict) -> set[str]:
    """Call :func:`load_part` with the options of ``init_cfg=dict(type='Pretrained', ...)``.

    Raises:
        UserError: see :func:`load_part`; or an option is unknown, or the checkpoint is missing.
    """
    options = {key: value for key, value in init_cfg.items() if key != 'type'}
    known = ('checkpoint', 'prefix', 'map_location', 'weights', 'grid', 'may_differ', 'channels')
    if wrong := sorted(options.keys() - {*known}):
        raise UserError(f"init_cfg of type 'Pretrained' has no option {wrong[0]!r}: it takes {', '.join(known)}")
    if 'checkpoint' not in options:
        raise UserError("init_cfg of type 'Pretrained' has no checkpoint: set its path or address")
    return load_part(part, **options)


def check_own_loading(model: nn.Module) -> None:
    """Check the parts of libraries that load their ``init_cfg`` themselves.

    Each child must be loaded completely or not at all. A child without any tensor in the file, such as PIDNet's third
    branch, gives a warning.

    Raises:
        UserError: a child was loaded partly, or nothing was loaded.
    """
    for part in unwrap(model).modules():
        if not _loads_itself(part):
            continue
        init_cfg: Any = part.init_cfg
        name, own, what = str(init_cfg['checkpoint']), part.state_dict(), type(part).__name__
        for key in ('grid', 'channels'):
            if init_cfg.get(key) is not None:
                raise UserError(f'init_cfg of {what}: {key} has no effect, because it loads {name} itself: remove it')
        held = state_of(load_checkpoint(name, 'cpu'), name, init_cfg.get('weights'))
        _, state, _ = to_own_names(part, held, init_cfg.get('prefix') and _with_dot(init_cfg['prefix']))
        both = sorted(own.keys() & state.keys())  # in one order in all processes, which gather what is sharded
        loaded = {key for key in both if _is_entered(key, own[key], state[key])}
        empty = [child for child, _ in part.named_children() if not any(key.startswith(f'{child}.') for key in loaded)]
        new = [key for key in own if key.split('.')[0] in empty]
        rules = PartRules(part, own, init_cfg.get('may_differ', ()))
        missing, left = sorted(own.keys() - loaded - {*new}), sorted(state.keys() - own.keys())
        unknown, _ = split_computed(part, state, left)
        require_parts(rules, loaded, missing, unknown, name, f'{what} loads it itself: give a file with its names')
        warn = logging.WARNING if any(not rules.may_be_missing(key, loaded) for key in new) else logging.INFO
        line = describe(name, len(loaded), {}, own.keys() - loaded, left, [f'loaded by {what} itself'])
        print_log(line, logger='current', level=warn)


def _loads_itself(part: nn.Module) -> bool:
    """Return whether a part of a library has a file in ``init_cfg`` and its own ``init_weights``."""
    init_cfg, own = getattr(part, 'init_cfg', None), getattr(type(part), 'init_weights', None)
    names_file = isinstance(init_cfg, dict) and init_cfg.get('type') == 'Pretrained'
    return names_file and own is not BaseModule.init_weights and not type(part).__module__.startswith('vt.')


def _is_entered(key: str, own: Tensor, given: Tensor) -> bool:
    if own.shape != given.shape:
        return bool(POSITIONS.search(key))  # resized by the part
    own = own.full_tensor() if isinstance(own, DTensor) else own
    return torch.equal(own, given.to(own))


@contextmanager
def _unchanged_if_refused(model: nn.Module) -> Iterator[None]:
    """Restore the model's tensors if the block raises a ``UserError``."""
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    try:
        yield
    except UserError:
        for name, tensor in model.state_dict().items():
            tensor.copy_(before[name])
        raise


def _enter(model: nn.Module, state: dict[str, Tensor], complaint: str, remedy: str) -> tuple[list[str], list[str]]:
    """Load a state dict; return missing and unexpected names."""
    own = model.state_dict()
    try:
        missing, unexpected = model.load_state_dict(state, strict=False)
    except RuntimeError as error:
        shapes = [(key, tuple(state[key].shape), tuple(own[key].shape)) for key in own if key in state]
        differing = [f'{key} is {theirs}, the model needs {ours}' for key, theirs, ours in shapes if theirs != ours]
        is_shape = differing and type(error) is RuntimeError  # other errors are of a part that resizes tensors
        reason = f'{differing[0]}, and {len(differing) - 1} more differ' if is_shape else printable(error, 300)
        if 2 * len(shapes) < len(own):
            has = f'{len(shapes)} of {len(own)} tensors; it lacks {next(key for key in own if key not in state)}'
            reason = f'it is of another model, of which it has {has}, and {reason}'
        raise UserError(f'{complaint}: {reason}; {remedy}') from error
    return missing, unexpected


def _resize_positions(
    model: nn.Module, state: dict[str, Tensor], grids: FileGrids, name: str, exempt: tuple[str, ...] = ()
) -> dict[str, tuple[Size, Size]]:
    """Resize positions in a state dict to the model's grids, in place; return old and new grid by name."""
    resized, exempt = {}, tuple(filter(None, exempt))
    for part_name, part in model.named_modules():
        for own_name, own in part.state_dict().items() if hasattr(part, 'resized') else ():
            key = f'{part_name}.{own_name}'.removeprefix('.')
            if key not in state or key.startswith(exempt) or state[key].shape[-1:] != own.shape[-1:]:
                continue
            try:
                state[key], size, to = part.resized(state[key], own_name, grids)
            except UserError as error:
                register = next((other for other in state if REGISTERS.search(other)), None)
                reason = f'the model has no register tokens, but the file has {printable(register, 120)}'
                raise UserError(f'{name}: {key}: {reason if register else error}') from None
            if size != to:
                resized[key] = (size, to)
    return resized


def _image_sizes(model: nn.Module, checkpoint: dict) -> tuple[Size | None, Size | None]:
    """Return the image size in the file's config, and that of the model."""
    own: Any = next((part.image_size for part in model.modules() if hasattr(part, 'image_size')), None)
    return (checkpoint.get('meta') or {}).get('image_size'), own


def _with_dot(prefix: str) -> str:
    return f'{prefix}.' if prefix and not prefix.endswith('.') else prefix


def describe(
    name: str,
    loaded: int,
    resized: dict[str, tuple[Size, Size]],
    new: Iterable[str],
    left: Iterable[str],
    notes: Iterable[str] = (),
) -> str:
    """Return a log line about a file: tensors loaded, resized, new in the model, and in the file but not used."""
    sizes: dict[tuple[Size, Size], list[str]] = {}
    for key, change in resized.items():
        sizes.setdefault(change, []).append(key)
    changes = [
        f'{keys[0]}{f" and {len(keys) - 1} more" if len(keys) > 1 else ""} from {size_text(size)} to {size_text(to)}'
        for (size, to), keys in sizes.items()
    ]
    parts = [
        f'{name}: {loaded} tensors loaded',
        f'resized: {len(resized)} ({", ".join(changes)})' if resized else 'resized: none',
        f'new in the model: {_count(new)}',
        f'left out of the file: {_count(left)}',
    ]
    return '; '.join([*parts, *notes])


def _count(names: Iterable[str]) -> str:
    """Return the number of tensors and their prefixes."""
    names = sorted(names)
    parts = [name.split('.') for name in names]
    prefixes = dict.fromkeys('.'.join([*part[: 1 + (part[0] == 'backbone')], '*']) for part in parts)
    return f'{len(names)} ({printable(", ".join(prefixes), 200)})' if names else 'none'


def which_weights(checkpoint: dict, weights: str | None) -> list[str]:
    """Return a note about which state dict of a file is used, if it has several or ``weights`` is set."""
    keys = _state_keys(checkpoint)
    first = weights or next(iter(keys), None)
    others = [key for key in keys if key != first]
    if not (others or weights):
        return []
    average = ', averages' if first == 'state_dict' and 'ema_state_dict' in others else ''
    return [f'weights: {first}{average}' + (f' (for the others, set weights={others[0]!r})' if others else '')]


def state_of(checkpoint: dict, name: str = 'the checkpoint', weights: str | None = None) -> dict[str, Tensor]:
    """Return the state dict of a checkpoint, without the prefix ``module.`` of a data-parallel model.

    Args:
        checkpoint: content of the file.
        name: name of the file, for messages.
        weights: key of the state dict; by default the first of :data:`STATES` with tensors.

    Raises:
        UserError: there is no such key, or it has no tensors.
    """
    if weights is not None and not _has_tensors(checkpoint.get(weights)):
        kept = [str(key) for key, value in checkpoint.items() if _has_tensors(value)]
        raise UserError(f'{name} has no weights={weights!r}: set one of {printable(", ".join(kept), 200)}')
    key = weights or next(iter(_state_keys(checkpoint)), None)
    state = checkpoint[key] if key else checkpoint
    skipped = COUNTERS if key in AVERAGES else ()
    named = [(str(name), value) for name, value in state.items() if isinstance(value, Tensor) and name not in skipped]
    tensors = [(name.removeprefix('module.'), value) for name, value in named]
    if not tensors:
        raise UserError(f'{name} has no weights by name: give a checkpoint or a state dict')
    named = OrderedDict(tensors)
    named._metadata = getattr(state, '_metadata', OrderedDict())  # versions of modules
    return named


def _state_keys(checkpoint: dict) -> list[str]:
    """Return the keys of the state dicts with tensors, the one that is used by default first."""
    keys = [key for key in STATES if _has_tensors(checkpoint.get(key))]
    is_torchvisions = 'model_ema' in keys and 'n_averaged' in checkpoint['model_ema']  # its trainer tests the averages
    return sorted(keys, key=lambda key: is_torchvisions and key != 'model_ema')


def _has_tensors(state: Any) -> bool:
    return isinstance(state, dict) and any(isinstance(value, Tensor) for value in state.values())


def unwrap(model: nn.Module) -> nn.Module:
    """Return the model inside wrappers for distribution and test-time augmentation."""
    while is_model_wrapper(model) or isinstance(model, BaseTTAModel):
        model = model.get_submodule('module')
    return model


@HOOKS.register_module()
class WeightsMatchHook(Hook):
    """Load a checkpoint into the model of a run; the log says what was loaded.

    To resume or test, all tensors must fit (:func:`load_weights`). With ``load_from`` in a training, the rules of
    :func:`load_part` apply.

    Args:
        whole: require all tensors with ``load_from``, too.
        weights, grid, may_differ, channels: options of :func:`load_part` for ``load_from``.

    Raises:
        UserError: the checkpoint does not fit, or has no state to resume from.
    """

    priority = 'VERY_HIGH'

    def __init__(
        self,
        whole: bool = False,
        weights: str | None = None,
        grid: Size | None = None,
        may_differ: str | Sequence[str] = (),
        channels: Channels | None = None,
    ) -> None:
        self.whole = whole
        self.weights, self.grid, self.may_differ, self.channels = weights, grid, may_differ, channels

    def before_train(self, runner: Runner) -> None:
        if not (runner.cfg.get('load_from') or runner.cfg.get('resume')):
            check_own_loading(runner.model)

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        name, resumes = str(runner.cfg.get('load_from') or 'the checkpoint'), runner.cfg.get('resume')
        if resumes and not {'meta', 'message_hub', 'optimizer'} <= checkpoint.keys():
            advice = 'start from its weights with load_from instead of --resume'
            raise UserError(f'{name} has no state of a training run: {advice}')
        if resumes:  # mmengine loads it again with averages and optimizer state, so nothing may be resized
            load_weights(runner.model, checkpoint, name=name, resizes=False)
            return
        if self.whole:
            line = load_weights(runner.model, checkpoint, name=name, weights=self.weights, grid=self.grid)
            runner.logger.info(line)
        else:
            apart = hasattr(unwrap(runner.model), 'backbone')  # otherwise the heads are unknown
            may_differ = self.may_differ or (() if apart else ('',))
            load_part(runner.model, checkpoint, None, 'cpu', self.weights, self.grid, may_differ, name, self.channels)
        checkpoint['state_dict'] = unwrap(runner.model).state_dict()  # mmengine and other hooks load it again
        checkpoint.pop('ema_state_dict', None)  # averages start from the loaded weights
