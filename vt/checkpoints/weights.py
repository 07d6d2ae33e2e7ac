"""Load weights into a model completely, or refuse them with the name of a tensor; mmengine only warns.

A file is read, the names of its format are converted to the model's, positions of another grid are resized and
convolutions of the image are adapted to other channels. Then all tensors are loaded; :class:`Rules` says which may be
missing or ignored. All loading uses this module: ``init_cfg=dict(type='Pretrained', ...)``, ``load_from``,
``--resume``, tests, predictions, exports and teachers.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakSet

from mmengine.hooks import Hook
from mmengine.logging import print_log
from mmengine.model import BaseModule, BaseTTAModel, is_model_wrapper
from mmengine.runner import Runner
from torch import nn

from vt.errors import UserError
from vt.registry import HOOKS
from vt.untrusted_text import printable

from .channels import adapt_stem
from .formats.recognise import OWN, State, to_own_names
from .grids import FileGrids, Size, size_text
from .reading import Checkpoint, read
from .rules import POSITIONS, Rules, split_computed

Change = tuple[Size, Size]  # size in a file and in the model
LOADED: WeakSet[nn.Module] = WeakSet()  # parts that have loaded their ``init_cfg`` by this module
# Advice for a file that does not fit.
WHOLE = 'give the config that it was trained with'
PART = (
    'give a file of the same model, or set may_differ or prefix beside checkpoint in init_cfg, or may_differ in '
    'default_hooks.weights_match of the config'
)


def load_weights(
    model: nn.Module,
    checkpoint: Checkpoint | str | Path | dict,
    whole: bool = True,
    *,
    prefix: str | None = None,
    weights: str | None = None,
    grid: Size | None = None,
    may_differ: str | Sequence[str] = (),
    resizes: bool = True,
    adapts: bool = False,
    owner: str = 'the model',
    is_told: bool = False,
) -> set[str]:
    """Load weights into a model, or refuse them and leave the model as it was.

    With ``whole`` every tensor of the model must be in the file, and no others. Otherwise a training begins from the
    file: all tensors of a backbone must be in it, except VT modules and normalisations of outputs that it lacks as a
    whole. It may have a classifier and later stages in addition. In a whole model, heads are loaded if their shapes
    fit, and each other part completely or, if the file lacks it, not at all. One line of the log says what was loaded;
    for ``whole`` only if something was changed, or with ``is_told``.

    The prefix ``module.`` of a data-parallel model is removed. Positions of another grid are resized.

    Args:
        model: the model, a backbone or another part; may be wrapped.
        checkpoint: a checkpoint that was read, its path or address, or its content.
        whole: the file is of the same model.
        prefix: prefix of the part's names in the file; None to find it.
        weights: key of the state dict in the file, such as ``'state_dict_ema'``; by default the first one.
        grid: grid of the file's positions, (height, width) or (frames, height, width); by default that of the config in
            the file, or a square if the model's is square.
        may_differ: prefixes of names that may be missing, ignored or have another shape, unless ``whole``.
        resizes: resize positions of another grid; otherwise they are refused, or unless ``whole`` not loaded.
        adapts: with ``whole``, too, adapt convolutions of the image to another number of channels than three.
        owner: whose weights they must be with ``whole``, for messages.
        is_told: log with ``whole``, too, what was loaded.

    Returns:
        Names of the loaded tensors of the model.

    Raises:
        UserError: a tensor is missing, unexpected or has another shape; the grid of positions is unknown; or the file
            cannot be read, is damaged, or asks for more than weights need.
    """
    if isinstance(checkpoint, dict):
        checkpoint = Checkpoint('the checkpoint', checkpoint)
    if not isinstance(checkpoint, Checkpoint):
        checkpoint = read(checkpoint)
    model, name = unwrap(model), checkpoint.name
    prefix = f'{prefix.removesuffix(".")}.' if prefix else prefix
    may_differ = (may_differ,) if isinstance(may_differ, str) else tuple(may_differ)
    own, rules, exempt = model.state_dict(), Rules(model, whole, may_differ), tuple(filter(None, may_differ))
    own_size: Any = next((part.image_size for part in model.modules() if hasattr(part, 'image_size')), None)
    grids = FileGrids(grid, checkpoint.image_size(), own_size, is_same_model=whole)
    held = checkpoint.state(weights)
    complaint, remedy = (f"{name} is not {owner}'s", WHOLE) if whole else (f'{name} does not fit', PART)
    with _refusing(model, complaint, remedy):
        source, state, outside = to_own_names(model, held, prefix)
        resized = _resize_positions(model, state, grids, exempt) if resizes else {}
        adapted = adapt_stem(model, state, exempt) if adapts or not whole else ''
        differing = {key for key in own.keys() & state.keys() if own[key].shape != state[key].shape}
        free = {key for key in differing if key.startswith(rules.free)}
        kept = {key for key in differing - free if not (resizes or whole) and POSITIONS.search(key)}
        for key in free | kept:
            del state[key]
        for key in sorted(differing - free - kept):
            resized[key] = tuple(state[key].shape), tuple(own[key].shape)  # the part resizes it itself, or refuses it
        missing, unexpected = _enter(model, state)
        unexpected, computed = split_computed(model, state, unexpected)
        counters = {key for key in own if key.endswith('num_batches_tracked')}  # missing ones start at 0
        loaded = own.keys() - missing - (counters - state.keys())
        left = [*free, *unexpected, *(outside if whole else ())]
        rules.require(loaded, {*missing} - kept, left)
    left = [f'{prefix or ""}{key}' for key in (*free, *unexpected, *computed)] + outside
    notes = [*filter(None, [adapted]), f'format: {source}', *_which(checkpoint, weights)]
    if is_told or not whole or resized or len(notes) > 1 or source != OWN.name:
        first = {change: key for key, change in reversed(resized.items())}
        changes = [f'{key} from {size_text(size)} to {size_text(to)}' for (size, to), key in first.items()]
        lines = [
            f'{name}: {len(loaded)} tensors loaded',
            f'resized: {len(resized)} ({", ".join(changes)})' if changes else 'resized: none',
            f'new in the model: {_count(missing)}',
            f'left out of the file: {_count(left)}',
        ]
        print_log('; '.join([*lines, *notes]), logger='current')
    return loaded


def _count(names: Iterable[str]) -> str:
    """Return the number of tensors and their prefixes."""
    names = sorted(names)
    parts = [name.split('.') for name in names]
    prefixes = dict.fromkeys('.'.join([*part[: 1 + (part[0] == 'backbone')], '*']) for part in parts)
    return f'{len(names)} ({printable(", ".join(prefixes), 200)})' if names else 'none'


def _resize_positions(model: nn.Module, state: State, grids: FileGrids, exempt: tuple[str, ...]) -> dict[str, Change]:
    """Resize positions in a state dict to the model's grids, in place; return old and new grid by name."""
    resized = {}
    for part_name, part in model.named_modules():
        for own_name, own in part.state_dict().items() if hasattr(part, 'resized') else ():
            key = f'{part_name}.{own_name}'.removeprefix('.')
            if key not in state or key.startswith(exempt) or state[key].shape[-1:] != own.shape[-1:]:
                continue
            try:
                state[key], size, to = part.resized(state[key], own_name, grids)
            except UserError as error:
                raise UserError(f'{key}: {error}') from None
            if size != to:
                resized[key] = (size, to)
    return resized


@contextmanager
def _refusing(model: nn.Module, complaint: str, remedy: str) -> Iterator[None]:
    """Restore the model's tensors if the block raises a ``UserError``, and complete its message."""
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    try:
        yield
    except UserError as error:
        for name, tensor in model.state_dict().items():
            tensor.copy_(before[name])
        raise UserError(f'{complaint}: {error}; {remedy}') from error.__cause__


def _enter(model: nn.Module, state: State) -> tuple[list[str], list[str]]:
    """Load a state dict; return missing and unexpected names. A UserError names the first of another shape."""
    own = model.state_dict()
    try:
        return model.load_state_dict(state, strict=False)
    except RuntimeError as error:
        shapes = [(key, tuple(state[key].shape), tuple(own[key].shape)) for key in own if key in state]
        differing = [f'{key} is {theirs}, the model needs {ours}' for key, theirs, ours in shapes if theirs != ours]
        is_shape = differing and type(error) is RuntimeError  # other errors are of a part that resizes tensors
        more = f' and {len(differing) - 1} more' if len(differing) > 1 else ''
        reason = f'{differing[0]}{more}' if is_shape else printable(error, 300)
        raise UserError(f'{reason} (it has {len(shapes)} of the {len(own)} tensors)') from error


def _which(checkpoint: Checkpoint, weights: str | None) -> list[str]:
    """Return a note about which state dict of a file is used, if it has several or ``weights`` is set."""
    keys = checkpoint.state_keys()
    first = weights or next(iter(keys), None)
    others = ', '.join(key for key in keys if key != first)
    return [f'weights: {first} (others: {others or "none"})'] if others or weights else []


def load_init_cfg(part: nn.Module, init_cfg: dict, resizes: bool = True) -> set[str]:
    """Load the beginning of a training by :func:`load_weights`, from ``init_cfg=dict(type='Pretrained', ...)``."""
    options = {key: value for key, value in init_cfg.items() if key != 'type'}
    LOADED.add(part)
    return load_weights(part, whole=False, resizes=resizes, **options)


def load_own_parts(model: nn.Module) -> None:
    """Load, by :func:`load_weights`, the parts of libraries that have loaded their ``init_cfg`` themselves.

    They only warn of tensors that are missing. Positions of another grid stay as the part has resized them.

    Raises:
        UserError: a file does not fit.
    """
    for part in unwrap(model).modules():
        init_cfg, own = getattr(part, 'init_cfg', None), getattr(type(part), 'init_weights', None)
        names_file = isinstance(init_cfg, dict) and init_cfg.get('type') == 'Pretrained'
        if names_file and own is not BaseModule.init_weights and part not in LOADED:
            if init_cfg.get('grid'):
                raise UserError(f'init_cfg of {type(part).__name__}: it resizes positions itself, remove grid')
            load_init_cfg(part, init_cfg, resizes=False)


def unwrap(model: nn.Module) -> nn.Module:
    """Return the model inside wrappers for distribution and test-time augmentation."""
    while is_model_wrapper(model) or isinstance(model, BaseTTAModel):
        model = model.get_submodule('module')
    return model


@HOOKS.register_module()
class WeightsMatchHook(Hook):
    """Load a checkpoint into the model of a run by :func:`load_weights`; the log says what was loaded.

    To resume or test, all tensors must fit. With ``load_from`` a training begins from the file.

    Args:
        whole: require all tensors with ``load_from``, too.
        weights, grid, may_differ: options of :func:`load_weights` for ``load_from``.

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
    ) -> None:
        self.whole = whole
        self.options: dict[str, Any] = dict(weights=weights, grid=grid, may_differ=may_differ)

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        held = Checkpoint(str(runner.cfg.get('load_from') or 'the checkpoint'), checkpoint)
        if runner.cfg.get('resume'):
            if not {'meta', 'message_hub', 'optimizer'} <= checkpoint.keys():
                advice = 'start from its weights with load_from instead of --resume'
                raise UserError(f'{held.name} has no state of a training run: {advice}')
            # mmengine loads it again with averages and optimizer state, so nothing may be resized
            load_weights(runner.model, held, resizes=False)
            return
        if not hasattr(unwrap(runner.model), 'backbone') and not self.options['may_differ']:
            self.options['may_differ'] = ''  # the heads are unknown
        load_weights(runner.model, held, self.whole, is_told=True, **self.options)
        checkpoint['state_dict'] = unwrap(runner.model).state_dict()  # mmengine and other hooks load it again
        checkpoint.pop('ema_state_dict', None)  # averages start from the loaded weights
