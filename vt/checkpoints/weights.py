"""Weights into a model: all that belongs together, or a refusal that names what differs; mmengine only warns.

All load here: ``init_cfg=dict(type='Pretrained', ...)``, ``load_from``, ``--resume``, tests, predictions, exports and
teachers.
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
from .old_names import to_new_names
from .part_rules import COMPUTED, POSITIONS, PartRules, require_parts
from .reading import load_checkpoint

# Where a file keeps the tensors, the first that it has by default: averages of timm and of DeiT's authors; then
# mmengine, whose first set is the average, and timm; the authors of DeiT and Swin; those of SlowFast.
STATES = ('state_dict_ema', 'model_ema', 'state_dict', 'model', 'model_state')
SECOND_STATES = ('ema_state_dict', 'ema')  # where it may keep another: mmengine


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
    """Load every tensor of a model; there may be no missing or unexpected keys.

    ``module.`` of a data-parallel model is taken off. Counters of batches may be missing, as they are in old files.
    Positions of another grid are resized, if ``resizes``, and convolutions of the image adapted to another number of
    channels than three, if ``adapts``.

    Args:
        model: built, with any weights; a wrapper of one will do.
        checkpoint: path or address of a checkpoint of mmengine or of a plain state dict; or what was read from one.
        owner, remedy, name: whose weights they are, what to do, and the file's name, for errors.
        weights, grid: as in :func:`load_part`.

    Returns:
        The line for the log: what was loaded and resized.

    Raises:
        UserError: names or shapes differ; or the file can't be read, is damaged, or asks for more than weights.
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
    computed = tuple(PartRules(model, own, ()).empty)  # such as fixed positions
    with _unchanged_if_refused(model):
        missing, unexpected = _enter(model, state, f"{name} is not {owner}'s", remedy)
        missing = [key for key in missing if not key.endswith('num_batches_tracked')]
        unexpected = [key for key in unexpected if not (COMPUTED.search(key) or key.startswith(computed))] + outside
        for difference, names in (('lacks', missing), ('also holds', unexpected)):
            if names:
                reason = f'of {len(own)} tensors it {difference} {printable(min(names), 120)} and {len(names) - 1} more'
                raise UserError(f"{name} is not {owner}'s: {reason}; {remedy}")
    notes = [*adapted, f'format: {source}', *which_weights(checkpoint, weights)]
    line = describe(name, len(own) - len(missing), resized, (), (), notes)
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
    """Load a backbone, or begin a new task with a model's weights; one line of the log says what was done.

    A backbone is loaded whole. New by design are VT modules, and normalisations of outputs, of which the file has
    nothing; left out are a file's classifier and its later stages, where the model has none. Of a whole model, heads
    are loaded where their shapes fit, and any other part as a whole or, where the file has none, not at all. Positions
    of another grid are resized, and convolutions of the image are adapted to another number of channels than three.

    Args:
        model: a backbone or another part, or a whole model, built.
        checkpoint: path or address of the file; or what was read from it.
        prefix: prefix of the part's names in the file; None to find it.
        map_location: device to load to.
        weights: which set of tensors in the file, such as ``'state_dict_ema'``; None for the first.
        grid: of the file's positions, height and width or frames, height and width; None to read it from the file's
            config, or to take a square one where the model's is square.
        may_differ: beginnings of names that may be missing, be left out or have another shape.
        name: of the file, for messages, where its content is given.
        channels: for each channel of the model's images the file's that it takes, as in
            :func:`vt.checkpoints.channels.adapt_channels`.

    Returns:
        The names of what was loaded.

    Raises:
        UserError: a tensor is missing, left over or of another shape; the grid of the positions is not known.
    """
    if not isinstance(checkpoint, dict):
        name = str(checkpoint)
        checkpoint = load_checkpoint(name, map_location)
    model = unwrap(model)
    held, own = state_of(checkpoint, name, weights), model.state_dict()
    to_new_names(held)
    if prefix is not None:
        prefix = _with_dot(prefix)
    if not any(key.startswith(prefix or '') for key in held):
        raise UserError(
            f'{name} holds nothing below prefix={prefix!r}: its first tensor is {printable(min(held), 120)}'
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
            resized[key] = (tuple(state[key].shape), tuple(own[key].shape))  # by the part itself, or refused
    remedy = 'give a file of the same model, the prefix of its names, or name what differs in may_differ'
    with _unchanged_if_refused(model):
        missing, unexpected = _enter(model, state, f'{name} does not fit', remedy)
        counters = {key for key in own if key.endswith('num_batches_tracked')}  # PyTorch begins what a file lacks
        loaded, left = own.keys() - missing - (counters - state.keys()), [*left, *unexpected]
        require_parts(rules, loaded, sorted(missing), sorted(left), name, remedy)
    left = [f'{prefix or ""}{key}' for key in left] + outside
    notes = [*adapted, f'format: {source}', *which_weights(checkpoint, weights)]
    print_log(describe(name, len(loaded), resized, missing, left, notes), logger='current')
    return loaded


def load_init_cfg(part: nn.Module, init_cfg: dict) -> set[str]:
    """:func:`load_part` with the options of ``init_cfg=dict(type='Pretrained', ...)``.

    Raises:
        UserError: as there; an option that it does not take, or no checkpoint.
    """
    options = {key: value for key, value in init_cfg.items() if key != 'type'}
    known = ('checkpoint', 'prefix', 'map_location', 'weights', 'grid', 'may_differ', 'channels')
    if wrong := sorted(options.keys() - {*known}):
        raise UserError(f"init_cfg of type 'Pretrained' has no option {wrong[0]!r}: it takes {', '.join(known)}")
    if 'checkpoint' not in options:
        raise UserError("init_cfg of type 'Pretrained' names no checkpoint: give its path or address")
    return load_part(part, **options)


def check_own_loading(model: nn.Module) -> None:
    """Check the parts that read their ``init_cfg`` themselves, and only warn: what of the file is in them now.

    A child of which the file has nothing is new, with a warning (PIDNet's third branch); else it is loaded whole.

    Raises:
        UserError: a part of a child, or nothing, came of the file.
    """
    for part in unwrap(model).modules():
        if not _loads_itself(part):
            continue
        init_cfg: Any = part.init_cfg
        name, own = str(init_cfg['checkpoint']), part.state_dict()
        held = state_of(load_checkpoint(name, 'cpu'), name, init_cfg.get('weights'))
        _, state, _ = to_own_names(part, held, init_cfg.get('prefix') and _with_dot(init_cfg['prefix']))
        both = sorted(own.keys() & state.keys())  # in one order in all processes, which gather what is sharded
        loaded = {key for key in both if _is_entered(key, own[key], state[key])}
        empty = [child for child, _ in part.named_children() if not any(key.startswith(f'{child}.') for key in loaded)]
        new = [key for key in own if key.split('.')[0] in empty]
        what = type(part).__name__
        rules = PartRules(part, own, init_cfg.get('may_differ', ()))
        missing, left = sorted(own.keys() - loaded - {*new}), sorted(state.keys() - own.keys())
        require_parts(rules, loaded, missing, left, name, f'{what} loads it itself: give a file under its names')
        warn = logging.WARNING if any(not rules.may_be_missing(key, loaded) for key in new) else logging.INFO
        line = describe(name, len(loaded), {}, own.keys() - loaded, left, [f'loaded by {what} itself'])
        print_log(line, logger='current', level=warn)


def _loads_itself(part: nn.Module) -> bool:
    """Whether a library's part names a file in ``init_cfg``, and has an ``init_weights`` of its own."""
    init_cfg, own = getattr(part, 'init_cfg', None), getattr(type(part), 'init_weights', None)
    names_file = isinstance(init_cfg, dict) and init_cfg.get('type') == 'Pretrained'
    return names_file and own is not BaseModule.init_weights and not type(part).__module__.startswith('vt.')


def _is_entered(key: str, own: Tensor, given: Tensor) -> bool:
    if own.shape != given.shape:
        return bool(POSITIONS.search(key))  # resized
    own = own.full_tensor() if isinstance(own, DTensor) else own
    return torch.equal(own, given.to(own))


@contextmanager
def _unchanged_if_refused(model: nn.Module) -> Iterator[None]:
    """Inside the block an error leaves the model's tensors as they were."""
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    try:
        yield
    except UserError:
        for name, tensor in model.state_dict().items():
            tensor.copy_(before[name])
        raise


def _enter(model: nn.Module, state: dict[str, Tensor], complaint: str, remedy: str) -> tuple[list[str], list[str]]:
    """Load a state dict; the names that it lacks and those that it has too many."""
    own = model.state_dict()
    try:
        missing, unexpected = model.load_state_dict(state, strict=False)
    except RuntimeError as error:
        shapes = [(key, tuple(state[key].shape), tuple(own[key].shape)) for key in own if key in state]
        differing = [f'{key} is {theirs}, the model needs {ours}' for key, theirs, ours in shapes if theirs != ours]
        is_shape = differing and type(error) is RuntimeError  # else a part's own resizing failed
        reason = f'{differing[0]}, and {len(differing) - 1} more differ' if is_shape else printable(error, 300)
        raise UserError(f'{complaint}: {reason}; {remedy}') from error
    return missing, unexpected


def _resize_positions(
    model: nn.Module, state: dict[str, Tensor], grids: FileGrids, name: str, exempt: tuple[str, ...] = ()
) -> dict[str, tuple[Size, Size]]:
    """Resize positions in a state dict, in place, for the model's grids; from which and to which, by their names."""
    resized, exempt = {}, tuple(filter(None, exempt))
    for part_name, part in model.named_modules():
        for own_name, own in part.named_parameters() if hasattr(part, 'resized') else ():
            key = f'{part_name}.{own_name}'.removeprefix('.')
            if key not in state or key.startswith(exempt) or state[key].shape[-1:] != own.shape[-1:]:
                continue
            try:
                state[key], size, to = part.resized(state[key], own_name, grids)
            except UserError as error:
                raise UserError(f'{name}: {key}: {error}') from None
            if size != to:
                resized[key] = (size, to)
    return resized


def _image_sizes(model: nn.Module, checkpoint: dict) -> tuple[Size | None, Size | None]:
    """The size of images by the file's config, and by the model's."""
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
    """The line of the log about a file: what was loaded, resized, new in the model and left out of the file."""
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
    """How many tensors there are, and below which names."""
    names = sorted(names)
    parts = [name.split('.') for name in names]
    prefixes = dict.fromkeys('.'.join([*part[: 1 + (part[0] == 'backbone')], '*']) for part in parts)
    return f'{len(names)} ({printable(", ".join(prefixes), 200)})' if names else 'none'


def which_weights(checkpoint: dict, weights: str | None) -> list[str]:
    """Which set of tensors of a file is used, where it holds several or the caller chose one."""
    first = weights or next((key for key in STATES if isinstance(checkpoint.get(key), dict)), None)
    others = [key for key in (*STATES, *SECOND_STATES) if key != first and isinstance(checkpoint.get(key), dict)]
    if first is None or not (others or weights):
        return []
    average = ', averages' if first == 'state_dict' and 'ema_state_dict' in others else ''
    return [f'weights: {first}{average}' + (f' (weights={others[0]!r} takes the others)' if others else '')]


def state_of(checkpoint: dict, name: str = 'the checkpoint', weights: str | None = None) -> dict[str, Tensor]:
    """The tensors by name, without ``module.`` of a data-parallel model; a UserError, naming the file, if none is.

    ``weights`` is the key of the set of tensors; None for the first of :data:`STATES` that the file has.
    """
    if weights is not None and not isinstance(checkpoint.get(weights), dict):
        kept = [str(key) for key, value in checkpoint.items() if isinstance(value, dict)]
        raise UserError(f'{name} holds no weights={weights!r}, but {printable(", ".join(kept), 200)}')
    first = (weights,) if weights else STATES
    state = next((checkpoint[key] for key in first if isinstance(checkpoint.get(key), dict)), checkpoint)
    items = state.items() if isinstance(state, dict) else ()
    tensors = [(str(key).removeprefix('module.'), value) for key, value in items if isinstance(value, Tensor)]
    if weights == 'ema_state_dict':
        tensors = [(key, value) for key, value in tensors if key != 'steps']  # mmengine's counter
    if not tensors:
        raise UserError(f'{name} holds no weights by name: give a checkpoint, or a state dict')
    named = OrderedDict(tensors)
    named._metadata = getattr(state, '_metadata', OrderedDict())  # versions of modules
    return named


def unwrap(model: nn.Module) -> nn.Module:
    """The model itself, below wrappers for distribution or test-time augmentation."""
    while is_model_wrapper(model) or isinstance(model, BaseTTAModel):
        model = model.get_submodule('module')
    return model


@HOOKS.register_module()
class WeightsMatchHook(Hook):
    """Load a checkpoint into the model of a run, or stop where it is not the model's; the log says what was done.

    To go on with training, and to test, there may be no missing or unexpected keys; to begin another task, what
    :func:`load_part` asks for.

    Args:
        whole: ask for every tensor whatever the checkpoint is for.
        weights, grid, may_differ, channels: as in :func:`load_part`, for ``load_from``.
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
            advice = 'begin from its weights by load_from, not --resume'
            raise UserError(f'{name} holds no state of a training run: {advice}')
        if resumes:  # mmengine loads it again, averages and the optimizer's state too: nothing may be resized
            load_weights(runner.model, checkpoint, name=name, resizes=False)
            return
        if self.whole:
            line = load_weights(runner.model, checkpoint, name=name, weights=self.weights, grid=self.grid)
            runner.logger.info(line)
        else:
            apart = hasattr(unwrap(runner.model), 'backbone')  # else what is a head is not known
            may_differ = self.may_differ or (() if apart else ('',))
            load_part(runner.model, checkpoint, None, 'cpu', self.weights, self.grid, may_differ, name, self.channels)
        checkpoint['state_dict'] = unwrap(runner.model).state_dict()  # mmengine and other hooks load it again
        checkpoint.pop('ema_state_dict', None)  # averages begin with what is loaded
