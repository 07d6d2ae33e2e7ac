"""Load weights into a model completely, or refuse them with the name of a tensor; mmengine only warns.

A file is read, the names of its format are converted to the model's, positions of another grid are resized and
convolutions of the image are adapted to other channels. Then all tensors are loaded, and the names that are missing or
left out are compared with what may be. All loading uses this module: ``init_cfg=dict(type='Pretrained', ...)``,
``load_from``, ``--resume``, tests, predictions, exports and teachers.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakSet

import torch
from mmengine.model import BaseModule, BaseTTAModel, PretrainedInit, is_model_wrapper
from torch import Tensor, nn

from vt.errors import UserError
from vt.logs import logger
from vt.untrusted_text import printable

from .formats.recognise import OWN, State, adapt_stem, resize_positions, to_own_names
from .grids import FileGrids, Size, size_text
from .reading import Checkpoint, read

PRETRAINED = ('Pretrained', PretrainedInit)  # types of ``init_cfg`` that name a file
LOADED: WeakSet[nn.Module] = WeakSet()  # parts that have loaded their ``init_cfg`` by this module
# Advice for a file that does not fit.
WHOLE = 'give the config that it was trained with'
PART = (
    'give a file of the same model, or set may_differ or prefix beside checkpoint in init_cfg, or may_differ in '
    'default_hooks.weights_match of the config'
)
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
    verbose: bool = False,
) -> set[str]:
    """Load weights into a model, or refuse them and leave the model as it was.

    With ``whole`` every tensor of the model must be in the file, and no others. Otherwise a training begins from the
    file: all tensors of a backbone must be in it, except VT modules and normalisations of outputs that it lacks as a
    whole. It may have a classifier and later stages in addition. In a whole model, heads are loaded if their shapes
    fit, and each other part completely or, if the file lacks it, not at all. One line of the log says what was loaded;
    for ``whole`` only if something was changed, or with ``verbose``.

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
        owner: name of the model or part, for messages with ``whole``.
        verbose: with ``whole``, too, log what was loaded.

    Returns:
        Names of the loaded tensors of the model.

    Raises:
        UserError: a tensor is missing, unexpected or has another shape; the grid of positions is unknown; or the file
            cannot be read, is damaged, or contains more than weights need.
    """
    if isinstance(checkpoint, dict):
        checkpoint = Checkpoint('the checkpoint', checkpoint)
    if not isinstance(checkpoint, Checkpoint):
        checkpoint = read(checkpoint)
    model, name = unwrap(model), checkpoint.name
    prefix = f'{prefix.removesuffix(".")}.' if prefix else prefix
    may_differ = (may_differ,) if isinstance(may_differ, str) else tuple(may_differ)
    own, exempt = model.state_dict(), () if whole else tuple(filter(None, may_differ))
    heads = [f'{child}.' for child, _ in model.named_children() if 'head' in child and hasattr(model, 'backbone')]
    may_vary = () if whole else (*may_differ, *heads)
    own_size: Any = next((part.image_size for part in model.modules() if hasattr(part, 'image_size')), None)
    grids = FileGrids(grid, checkpoint.image_size(), own_size, is_same_model=whole)
    held = checkpoint.state(weights)
    complaint, remedy = (f'{name} does not fit {owner}', WHOLE) if whole else (f'{name} does not fit', PART)
    with _refusing(model, complaint, remedy):
        source, state, outside = to_own_names(model, held, prefix)
        resized = resize_positions(model, state, grids, exempt) if resizes else {}
        adapted = adapt_stem(model, state, exempt) if adapts or not whole else ''
        differing = {key for key in own.keys() & state.keys() if own[key].shape != state[key].shape}
        free = {key for key in differing if key.startswith(may_vary)}
        kept = {key for key in differing - free if not (resizes or whole) and POSITIONS.search(key)}
        for key in free | kept:
            del state[key]
        for key in sorted(differing - free - kept):
            resized[key] = tuple(state[key].shape), tuple(own[key].shape)  # the part resizes it itself, or refuses it
        missing, unexpected = _enter(model, state)
        computed = [key for key in unexpected if _is_computed(model, key, state[key])]
        unexpected = [key for key in unexpected if key not in computed]
        counters = {key for key in own if key.endswith('num_batches_tracked')}  # missing ones start at 0
        loaded = own.keys() - missing - (counters - state.keys())
        left = [*free, *unexpected, *(outside if whole else ())]
        _require(model, whole, may_vary, loaded, {*missing} - kept, left)
    left = [f'{prefix or ""}{key}' for key in (*free, *unexpected, *computed)] + outside
    notes = [*filter(None, [adapted]), f'format: {source}', *_which(checkpoint, weights)]
    if verbose or not whole or resized or len(notes) > 1 or source != OWN.name:
        first = {change: key for key, change in reversed(resized.items())}
        changes = [f'{key} from {size_text(size)} to {size_text(to)}' for (size, to), key in first.items()]
        lines = [
            f'{name}: {len(loaded)} tensors loaded',
            f'resized: {len(resized)} ({", ".join(changes)})' if changes else 'resized: none',
            f'new in the model: {_count(missing)}',
            f'left out of the file: {_count(left)}',
        ]
        logger.info('; '.join([*lines, *notes]))
    return loaded


def _is_computed(model: nn.Module, name: str, given: Tensor) -> bool:
    """Return whether an unknown tensor of a file is one that the model computes itself, with the same values."""
    own = dict(model.named_buffers()).get(name)
    if COMPUTED.search(name):
        return True
    if own is None or own.numel() != given.numel():
        return own is not None  # coordinates of other windows need not be equal
    return torch.allclose(own.flatten().double().cpu(), given.flatten().double().cpu(), rtol=0, atol=TOLERANCE)


def _require(
    model: nn.Module, whole: bool, free: tuple[str, ...], loaded: set[str], missing: set[str], left: list[str]
) -> None:
    """Raise a ``UserError`` if a file lacks tensors that it may not lack, or has others that were ``left`` out.

    A file of the same model may lack BN's counters of batches, as old files do. A file for the beginning of a training
    may lack computed buffers; and as a whole normalisations of outputs, parts that a module lists in ``new_by_design``,
    and in a model with a backbone each other part. It may have classifiers, later stages, and parts that the model
    lacks as a whole. Names that start with one of ``free`` may differ.
    """
    children, number = dict(model.named_children()), len(model.state_dict())
    base = 'backbone.' if 'backbone' in children else ''
    others = tuple(f'{child}.' for child in children if base and child != 'backbone')
    backbone = model.get_submodule('backbone') if base else model
    by_design = [
        f'{name}.{part}.'.removeprefix('.')
        for name, module in model.named_modules()
        for part in getattr(module, 'new_by_design', ())
    ]
    norms = [
        f'{base}{name}.'
        for name, child in backbone.named_children()
        if re.search(r'norm|^ln\d', name) and all(parameter.dim() == 1 for parameter in child.parameters())
    ]
    optional = [] if whole else [*by_design, *norms, *others]
    absent = (part for part in optional if not any(key.startswith(part) for key in loaded))
    allowed = (*free, *absent)
    buffers = [name for name, _ in model.named_buffers() if not name.endswith(STATISTICS)]
    computed = [name for name in buffers if name.endswith('num_batches_tracked')] if whole else buffers
    excess = left if whole else [key for key in left if not _is_foreign(key, backbone, base, others)]
    for difference, names in (('lacks', missing - {*computed}), ('also has', excess)):
        if names := sorted(key for key in names if not key.startswith(allowed)):
            more = f' and {len(names) - 1} more' if len(names) > 1 else ''
            raise UserError(f'of {number} tensors it {difference} {printable(names[0], 120)}{more}')
    if not loaded:
        raise UserError(f'it has none of the {number} tensors of the model')


def _is_foreign(key: str, backbone: nn.Module, base: str, others: tuple[str, ...]) -> bool:
    """Return whether a tensor is of a part that the model does not have, such as a classifier or a later stage."""
    if not key.startswith(base):
        return not key.startswith(others)
    key, own = key.removeprefix(base), backbone.state_dict()
    if stage := STAGE.match(key):
        last = max((int(found[1]) for name in own if (found := STAGE.match(name))), default=math.inf)
        if int(stage[1]) >= last + (not stage[2]):
            return True  # a later stage, or the downsampling before it
    parts = {name.split('.')[0] for name in own} | dict(backbone.named_children()).keys()
    return key.split('.')[0] not in parts and not (POSITIONS.search(key) or AT_INPUT.search(key))


def _count(names: Iterable[str]) -> str:
    """Return the number of tensors and their prefixes."""
    names = sorted(names)
    parts = [name.split('.') for name in names]
    prefixes = dict.fromkeys('.'.join([*part[: 1 + (part[0] == 'backbone')], '*']) for part in parts)
    return f'{len(names)} ({printable(", ".join(prefixes), 200)})' if names else 'none'


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
        differing = [f'{key} has shape {theirs}, not {ours}' for key, theirs, ours in shapes if theirs != ours]
        is_shape = differing and type(error) is RuntimeError  # other errors are of a part that resizes tensors
        more = f' and {len(differing) - 1} more' if len(differing) > 1 else ''
        reason = f'{differing[0]}{more}' if is_shape else printable(error, 300)
        raise UserError(f'{reason} (it has {len(shapes)} of the {len(own)} tensors of the model)') from error


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
    """
    for part in unwrap(model).modules():
        init_cfg, own = getattr(part, 'init_cfg', None), getattr(type(part), 'init_weights', None)
        names_file = isinstance(init_cfg, dict) and init_cfg.get('type') in PRETRAINED
        if names_file and own is not BaseModule.init_weights and part not in LOADED:
            if init_cfg.get('grid'):
                raise UserError(f'init_cfg of {type(part).__name__}: remove grid, this class resizes positions itself')
            load_init_cfg(part, init_cfg, resizes=False)


def unwrap(model: nn.Module) -> Any:
    """Return the model inside wrappers for distribution and test-time augmentation."""
    while is_model_wrapper(model) or isinstance(model, BaseTTAModel):
        model = model.get_submodule('module')
    return model
