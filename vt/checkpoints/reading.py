"""Read checkpoints without running code from them, and find the newest one that training can resume from."""

import hashlib
import json
import os
import re
from collections import OrderedDict
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

from vt.errors import DamagedError, MissingFileError, UserError
from vt.files import parse_errors
from vt.untrusted_text import check_dataset_meta, printable

from .grids import Size, read_image_size
from .inert import Conversion, restore_histories
from .pickles import RefusedError, read_pickle
from .weight_sources import locate, read_timm

TRUST = '--trust-checkpoint'
SUFFIX = '.safetensors'
NAMED_DIGITS = re.compile(r'-([0-9a-f]{8})\.safetensors$')  # names that vt publish writes
# Keys of state dicts. By default the first with tensors is used, which is what the trainer that wrote it scores: timm's
# averages (T2T-ViT, LV-ViT, PS-ViT, CSWin, ViTAE, ELSA), weights of mmengine and timm, those of the authors of Swin and
# DeiT (DeiT, CeiT, LocalViT, DeepViT and ResT score no averages), of SlowFast, and the second ones of mmengine.
STATES = ('state_dict_ema', 'state_dict', 'model', 'model_ema', 'model_state', 'ema_state_dict', 'ema')
COUNTERS = ('steps', 'n_averaged')  # tensors among averages of mmengine and torchvision
# What mmengine's hook writes into ``runtime_info`` about files: it would remove them. Also all keys ``best_ckpt...``.
NAMES_OF_FILES = ('last_ckpt', 'outdated_ckpts', 'keep_ckpt_ids')
TEXT = 'text_of_config'  # key of ``meta``
OWN = re.compile(r'(best_.+_|interrupted_|)(epoch|iter)_(0|[1-9]\d*)\.pth')  # names that runs give
is_trusted: ContextVar[bool] = ContextVar('is_trusted', default=False)  # whether checkpoints may run code


@dataclass
class Checkpoint:
    """The content of a checkpoint file, and the metadata in it.

    Attributes:
        name: path or address of the file, for messages.
        content: its content, as :func:`load_checkpoint` returns it.
    """

    name: str
    content: dict

    @property
    def meta(self) -> dict[str, Any]:
        """Metadata that mmengine writes with the weights: ``epoch``, ``iter``, ``dataset_meta``."""
        return self.content.get('meta') or {}

    @property
    def position(self) -> tuple[int, int] | None:
        """Epoch and iteration at which training can resume; None if there are only weights."""
        meta = self.content.get('meta')
        epoch, iteration = (meta.get('epoch', 0), meta.get('iter')) if isinstance(meta, dict) else (None, None)
        return (epoch, iteration) if isinstance(epoch, int) and isinstance(iteration, int) else None

    @property
    def dataset_meta(self) -> dict[str, Any]:
        """Metadata of the training data in the file, such as ``classes``."""
        return self.meta.get('dataset_meta') or {}

    @property
    def config(self) -> str | None:
        """Text of the config of its training, which is not run."""
        return self.meta.get(TEXT)

    def image_size(self) -> Size | None:
        """Return the size of the images of its training, if the config gives one."""
        return read_image_size(self.config) if isinstance(self.config, str) else None

    def state_keys(self) -> list[str]:
        """Return the keys of the state dicts with tensors, the one that is used by default first."""
        keys = [key for key in STATES if _has_tensors(self.content.get(key))]
        averages_first = 'n_averaged' in (self.content.get('model_ema') or ())  # torchvision's trainer tests them
        return sorted(keys, key=lambda key: averages_first and key != 'model_ema')

    def state(self, weights: str | None = None) -> dict[str, Tensor]:
        """Return a state dict, without the prefix ``module.`` of a data-parallel model.

        ``weights`` is its key, which must exist and have tensors; by default the first of :meth:`state_keys`, or the
        whole file without one.
        """
        keys = self.state_keys()
        if weights is not None and not _has_tensors(self.content.get(weights)):
            raise UserError(f'{self.name} has no weights={weights!r}: set one of {", ".join(keys)}')
        key = weights or next(iter(keys), None)
        state = self.content[key] if key else self.content
        named = [(str(name), value) for name, value in state.items() if isinstance(value, Tensor)]
        skipped = COUNTERS if key and 'ema' in key else ()
        tensors: Any = OrderedDict((name.removeprefix('module.'), item) for name, item in named if name not in skipped)
        if not tensors:
            raise UserError(f'{self.name} has no named tensors: give a checkpoint or a state dict')
        tensors._metadata = getattr(state, '_metadata', OrderedDict())  # versions of modules
        return tensors


def _has_tensors(state: Any) -> bool:
    return isinstance(state, dict) and any(isinstance(value, Tensor) for value in state.values())


def read(name: str | Path) -> Checkpoint:
    """Read a checkpoint by :func:`load_checkpoint`, to the CPU."""
    return Checkpoint(str(name), load_checkpoint(name, 'cpu'))


def load_checkpoint(name: str | Path, map_location: Any = None) -> dict:
    """Read a checkpoint of ``torch.save`` or of safetensors, weights-only unless :data:`is_trusted` is set.

    The result contains only tensors, numbers, strings, containers and mmengine's histories, see
    :func:`vt.checkpoints.inert.make_plain`. Names of files that a run should remove are dropped, and texts of configs,
    which mmengine's ``resume`` and inferencers would run as Python; that of ``meta`` is kept as :data:`TEXT`.

    Args:
        name: a path; a URL ``https://...``, whose file is kept in PyTorch's cache; published weights
            ``timm://NAME`` or ``torchvision://ResNet50_Weights.IMAGENET1K_V2``; or a name in one of mmengine's model
            zoos, ``torchvision://resnet50`` or ``open-mmlab://...``.
        map_location: device of the weights; anything else is the CPU.

    Raises:
        FileError: the file does not exist, or cannot be opened or downloaded.
        UserError: the name does not exist, or weights are complex, NaN or infinite, or it contains more than
            weights need; DamagedError if the file is damaged.
    """
    if str(name).startswith('timm://'):
        return dict(state_dict=read_timm(str(name).removeprefix('timm://')))
    return load_file(locate(str(name)), map_location)


def load_file(path: Path, map_location: Any = None) -> dict:
    """As :func:`load_checkpoint`, of a path."""
    if not os.path.isfile(path):
        raise MissingFileError(f'there is no checkpoint {printable(path)}: train the model first, or correct the path')
    with parse_errors(path):
        loaded = _read_safetensors(path, map_location) if path.suffix == SUFFIX else _read(path, map_location)
        _keep_data(loaded)
        _require_finite(loaded, path)
        check_dataset_meta(Checkpoint('', loaded).dataset_meta, 'dataset_meta.', f' of {path}')
    return loaded


def _read_safetensors(path: Path, map_location: Any) -> dict:
    """Read a safetensors file: ``state_dict``, and ``meta`` with config and classes of a published file."""
    named = NAMED_DIGITS.search(path.name)
    if named and named[1] != (digits := content_digits(path.read_bytes())):
        raise DamagedError(f'the checksum of its content is {digits}, not the one in its name: it was changed')
    with safe_open(path, 'pt') as file:
        state = OrderedDict((name, file.get_tensor(name).to(_device(map_location))) for name in sorted(file.keys()))
        metadata = file.metadata() or {}
    meta: dict[str, Any] = {}
    if 'vt' in metadata and 'config' in metadata:
        meta['cfg'] = metadata['config']
    if 'vt' in metadata:
        meta['dataset_meta'] = {key: json.loads(metadata[key]) for key in ('classes', 'palette') if key in metadata}
    return dict(state_dict=state, meta=meta)


def _read(path: Path, map_location: Any) -> dict:
    """Read a file of ``torch.save``."""
    if is_trusted.get():
        loaded = Conversion()(torch.load(path, map_location=map_location, weights_only=False))
    else:
        try:
            loaded = Conversion()(read_pickle(path, _device(map_location)))
        except RefusedError as error:
            raise _refused(path, str(error)) from None
    if not isinstance(loaded, dict):
        raise DamagedError(f'it contains a {type(loaded).__name__}, but must contain a dict of weights')
    restore_histories(loaded)
    return loaded


def _device(map_location: Any) -> torch.device:
    """Return the requested device; the CPU for None and for functions."""
    return torch.device(map_location if isinstance(map_location, (str, torch.device)) else 'cpu')


def _refused(path: Path, name: str) -> UserError:
    """Return the error of a file that contains more than weights need."""
    reason = f'it contains {printable(name, 300)}, which weights do not need and which can run code'
    advice = f'add {TRUST} to the command, or in Python load it within vt.checkpoints.loading.weights_only(unless=True)'
    return UserError(f'{path} is not loaded: {reason}; if you trust its author, {advice}')


def _keep_data(loaded: dict) -> None:
    """Drop names of files and texts that libraries would remove and run."""
    meta, hub = loaded.get('meta') or {}, loaded.get('message_hub') or {}
    if 'cfg' in meta:
        meta[TEXT] = meta['cfg']
    for holder in (meta, hub.get('runtime_info') or {}, hub.get('resumed_keys') or {}):
        for key in [*holder]:
            if key in ('config', 'cfg', *NAMES_OF_FILES) or str(key).startswith('best_ckpt'):
                holder.pop(key)


def _require_finite(loaded: dict, name: str | Path) -> None:
    """Raise ``UserError`` if weights are complex, NaN or infinite; masks may be infinite."""
    for state in [loaded[key] for key in STATES if isinstance(loaded.get(key), dict)] or [loaded]:
        for key, tensor in state.items():
            if not isinstance(tensor, Tensor) or tensor.is_meta:
                continue
            values = tensor.float() if tensor.is_floating_point() else torch.zeros(1)  # no function supports float8
            if tensor.is_complex() or (values.isnan() if 'mask' in str(key) else ~values.isfinite()).any():
                kind = 'complex' if tensor.is_complex() else 'not finite'
                advice = 'use an earlier checkpoint, or train again'
                raise UserError(f'{name} has invalid weights: {printable(key, 120)} is {kind}; {advice}')


def content_digits(content: bytes) -> str:
    """Return the first eight digits of the SHA-256 of a file, which end the name of a published file."""
    return hashlib.sha256(content).hexdigest()[:8]


def own_checkpoints(folder: Path) -> list[tuple[int, str, str, Path]]:
    """Return the files of a folder that are named as checkpoints of a run, links too, by their steps.

    Each has a step, unit (``'epoch'``, ``'iter'``), prefix (``'best_SCORE_'``, ``'interrupted_'``, ``''``) and path.
    """
    matches = [(OWN.fullmatch(path.name), path) for path in folder.glob('*.pth')]
    return sorted((int(match[3]), match[2], match[1], path) for match, path in matches if match)


def find_newest_checkpoint(folder: str | Path) -> tuple[Checkpoint | None, list[tuple[Path, str]]]:
    """Read the newest complete checkpoint of a work directory that training can resume from.

    It is the one with the highest position among ``epoch_*.pth``, ``iter_*.pth`` and ``interrupted_iter_*.pth``. The
    best ones have no state of the optimizer.

    Returns:
        The checkpoint or None, and newer ones that are damaged, by path, each with the problem in one line.
    """
    complete, damaged = [], []
    for unit in ('epoch', 'iter'):
        for _, own_unit, prefix, path in reversed(own_checkpoints(Path(folder))):
            if own_unit != unit or prefix.startswith('best_'):
                continue
            try:
                held = Checkpoint(str(path), load_file(path))
                if held.position is None:
                    raise UserError(f'{path} contains only weights, no training state')
                complete.append(held)
                break
            except UserError as error:
                damaged.append((path, str(error)))
    return max(complete, key=lambda held: held.position, default=None), damaged
