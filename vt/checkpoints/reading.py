"""Read checkpoints from files and addresses without running code from them."""

import contextlib
import hashlib
import json
import os
import re
import warnings
from collections import OrderedDict
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import torch
from mmengine.runner import checkpoint as mmengine_checkpoint
from safetensors import safe_open
from torch import serialization

from vt.errors import DamagedError, FileError, MissingFileError, UserError
from vt.untrusted_text import check_dataset_meta, printable

from .archives import check_archive, check_pickles
from .files import REST, interpreting
from .grids import read_image_size
from .pickles import FLAG as FLAG
from .plain import PLACEHOLDERS, Conversion, restore_histories
from .public import locate_hub, read_timm, torchvision_weights

ARCHIVE, PICKLE = b'PK\x03\x04', b'\x80'  # first bytes of files of torch.save, now and before PyTorch 1.6
SUFFIX = '.safetensors'
NAMED_DIGITS = re.compile(r'-([0-9a-f]{8})\.safetensors$')  # names that tools/publish.py writes
# Keys of state dicts. By default the first with tensors is used, which is what the trainer that wrote it scores: timm's
# averages (T2T-ViT, LV-ViT, PS-ViT, CSWin, ViTAE, ELSA), weights of mmengine and timm, those of the authors of Swin and
# DeiT (DeiT, CeiT, LocalViT, DeepViT and ResT score no averages), of SlowFast, and the second ones of mmengine.
STATES = ('state_dict_ema', 'state_dict', 'model', 'model_ema', 'model_state', 'ema_state_dict', 'ema')
# What mmengine's hook writes into ``runtime_info`` about files: it would remove them. Also all keys ``best_ckpt...``.
NAMES_OF_FILES = ('last_ckpt', 'outdated_ckpts', 'keep_ckpt_ids')
is_trusted: ContextVar[bool] = ContextVar('is_trusted', default=False)  # whether checkpoints may run code
ZOOS = {
    **dict.fromkeys(('torchvision', 'modelzoo'), mmengine_checkpoint.get_torchvision_models),
    **dict.fromkeys(('open-mmlab', 'openmmlab'), mmengine_checkpoint.get_external_models),
    'mmcls': mmengine_checkpoint.get_mmcls_models,
}


def load_checkpoint(name: str | Path, map_location: Any = None, texts: bool = False) -> dict:
    """Read a checkpoint of ``torch.save`` or of safetensors, weights-only unless :data:`is_trusted` is set.

    The result contains only tensors, numbers, strings, containers and mmengine's histories, see
    :func:`vt.checkpoints.plain.make_plain`. Names of files that a run should remove are dropped. The image size in its
    config is stored in ``meta['image_size']``.

    Args:
        name: a path; a URL ``https://...``, whose file is kept in PyTorch's cache; published weights
            ``timm://NAME``, ``hf://OWNER/NAME`` or ``torchvision://ResNet50_Weights.IMAGENET1K_V2``; or a name in one
            of mmengine's model zoos, ``torchvision://resnet50``, ``open-mmlab://...`` or ``mmcls://...``.
        map_location: see ``torch.load``.
        texts: keep the text of configs, which mmengine's ``resume`` and inferencers would run as Python.

    Raises:
        FileError: the file does not exist, or cannot be opened or downloaded.
        UserError: the name does not exist, or weights are NaN, infinite or complex; DamagedError or RefusedError if the
            file is damaged or asks for more than weights need.
    """
    if not str(name):
        raise UserError('the name of a checkpoint is empty: give a path, or remove the setting')
    if str(name).startswith('timm://'):
        loaded = dict(state_dict=read_timm(str(name).removeprefix('timm://')))
        _require_finite(loaded, name)
        return loaded
    path = _locate(str(name))
    if os.path.isfile(path / REST):
        raise UserError(
            f'{path} is a checkpoint in shards: make one file of it, python tools/publish.py {path} OUT.safetensors'
        )
    if not os.path.isfile(path):  # Path.is_file raises an error for a name that is too long
        raise MissingFileError(
            f'there is no checkpoint {printable(path)}: correct load_from, or the path on the command line'
        )
    with interpreting(path):
        loaded = _read_safetensors(path, map_location) if path.suffix == SUFFIX else _read(path, map_location)
        restore_histories(loaded)
        if not is_trusted.get():
            check_dataset_meta((loaded.get('meta') or {}).get('dataset_meta') or {}, 'dataset_meta.', f' of {path}')
        _require_finite(loaded, path)
        _keep_data(loaded, texts)
    if str(name).startswith('mmcls://'):  # a whole classifier, of which the backbone is used
        state = loaded.get('state_dict', loaded)
        return dict(state_dict={key[9:]: state[key] for key in state if key.startswith('backbone.')})
    return loaded


def _keep_data(loaded: dict, texts: bool) -> None:
    """Store the image size of a checkpoint's config, and drop names of files and texts that libraries would run."""
    meta, hub = loaded.get('meta') or {}, loaded.get('message_hub') or {}
    meta.pop('image_size', None)
    if isinstance(text := meta.get('cfg'), str) and (size := read_image_size(text)):
        meta['image_size'] = size
    unread = () if texts or is_trusted.get() else ('config', 'cfg')
    for holder in (meta, hub.get('runtime_info') or {}, hub.get('resumed_keys') or {}):
        for key in [*holder]:
            if key in unread or key in NAMES_OF_FILES or str(key).startswith('best_ckpt'):
                holder.pop(key)


def _require_finite(loaded: dict, path: str | Path) -> None:
    """Raise ``UserError`` if weights are NaN, infinite or complex."""
    states = [loaded[key] for key in STATES if isinstance(loaded.get(key), dict)] or [loaded]
    for key, tensor in [item for state in states for item in state.items()]:
        reason = _why_unusable(tensor, str(key)) if isinstance(tensor, torch.Tensor) and not tensor.is_meta else None
        if reason:
            advice = 'give an earlier checkpoint, or train again'
            raise UserError(f'{path} has weights that cannot be used: {printable(key, 120)} is {reason}; {advice}')


def _why_unusable(tensor: torch.Tensor, name: str) -> str | None:
    if tensor.is_complex():
        return 'complex'
    if not tensor.is_floating_point():
        return None
    values = tensor if tensor.element_size() > 2 else tensor.float()  # some functions do not support float8
    if bool(values.isfinite().all()):
        return None
    return 'NaN' if bool(values.isnan().any()) else None if 'mask' in name else 'infinite'  # masks may be infinite


def _locate(name: str) -> Path:
    """Return the file of a name, downloaded if needed."""
    scheme, separator, model = name.partition('://')
    if not separator:
        return Path(name).expanduser()
    if scheme in ('http', 'https'):
        return _fetch(name)
    if scheme == 'hf':
        return locate_hub(model)
    if scheme == 'torchvision' and '_Weights.' in model:
        return _fetch(torchvision_weights(model).url)
    if scheme not in ZOOS:
        raise UserError(f'{name} is not loaded, because {scheme}:// is not supported: download it and give its path')
    names = ZOOS[scheme]()
    model = mmengine_checkpoint.get_deprecated_model_names().get(model, model)
    if model not in names:
        raise UserError(f'there is no {model} among the {len(names)} models of {scheme}://')
    return _locate(names[model])  # a user's list may name files


def _fetch(address: str) -> Path:
    path = Path(torch.hub.get_dir(), 'checkpoints', Path(urlparse(address).path).name)
    try:
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            torch.hub.download_url_to_file(address, str(path), progress=os.isatty(0))
    except (OSError, ValueError) as error:
        raise FileError(f'{address} could not be downloaded ({error}): download it and give its path') from error
    return path


def content_digits(content: bytes) -> str:
    """Return the first eight digits of the SHA-256 of a file, which end the name of a published file."""
    return hashlib.sha256(content).hexdigest()[:8]


def _read_safetensors(path: Path, map_location: Any) -> dict:
    """Read a safetensors file: ``state_dict``, and ``meta`` with config and classes of a published file."""
    named = NAMED_DIGITS.search(path.name)
    if named and named[1] != (digits := content_digits(path.read_bytes())):
        raise DamagedError(f'its content has the digits {digits}, not those in its name: it was changed')
    device = map_location if isinstance(map_location, (str, torch.device)) else 'cpu'
    with safe_open(path, 'pt') as file:
        state = OrderedDict((name, file.get_tensor(name).to(device)) for name in sorted(file.keys()))
        metadata = file.metadata() or {}
    classes = json.loads(metadata['classes']) if 'vt' in metadata and 'classes' in metadata else None
    meta = dict(cfg=metadata['config']) if 'vt' in metadata and 'config' in metadata else {}
    return dict(state_dict=state, meta=meta if classes is None else meta | dict(dataset_meta=dict(classes=classes)))


def _read(path: Path, map_location: Any) -> dict:
    with path.open('rb') as file:
        begin = file.read(len(ARCHIVE))
    if begin == ARCHIVE:
        check_archive(path, is_trusted.get())
    elif not begin.startswith(PICKLE) and not is_trusted.get():
        raise DamagedError('its first bytes are not those of a checkpoint' if begin else 'it is empty')
    elif not is_trusted.get():
        check_pickles(path)
    if is_trusted.get():
        loaded = torch.load(path, map_location=map_location, weights_only=False)
    else:
        with _names_alone(), warnings.catch_warnings():
            warnings.simplefilter('ignore')  # about pickle protocols and archive formats
            loaded = Conversion()(torch.load(path, map_location=map_location, weights_only=True))
    if not isinstance(loaded, dict):
        raise DamagedError(f'it contains a {type(loaded).__name__}, but must contain a dict of weights')
    return loaded


@contextlib.contextmanager
def _names_alone() -> Iterator[None]:
    """Allow only our names in weights-only reading; libraries may have added others to PyTorch's list."""
    before = serialization.get_safe_globals()
    serialization.clear_safe_globals()
    try:
        with serialization.safe_globals(PLACEHOLDERS):
            yield
    finally:
        serialization.add_safe_globals(before)
