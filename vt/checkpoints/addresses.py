"""Where a checkpoint is: a path, an address, or a name in a model zoo."""

import os
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import torch
from mmengine.runner import checkpoint as mmengine_checkpoint

from vt.errors import FileError, UserError

from .reading import read_checkpoint

ZOOS = {
    **dict.fromkeys(('torchvision', 'modelzoo'), mmengine_checkpoint.get_torchvision_models),
    **dict.fromkeys(('open-mmlab', 'openmmlab'), mmengine_checkpoint.get_external_models),
    'mmcls': mmengine_checkpoint.get_mmcls_models,
}


def load_checkpoint(name: str | Path, map_location: Any = None) -> dict:
    """Read a checkpoint, with the errors of :func:`vt.checkpoints.reading.read_checkpoint`.

    Args:
        name: a path; an address, ``https://...``, whose file stays in PyTorch's cache; or a name in one of the model
            zoos of mmengine, ``torchvision://resnet50``, ``open-mmlab://...`` or ``mmcls://...``.
        map_location: as ``torch.load`` takes it.
    """
    checkpoint = read_checkpoint(_locate(str(name)), map_location)
    if str(name).startswith('mmcls://'):  # of a whole classifier; who names it wants its backbone
        state = checkpoint.get('state_dict', checkpoint)
        return dict(state_dict={key[9:]: state[key] for key in state if key.startswith('backbone.')})
    return checkpoint


def _locate(name: str) -> Path:
    """The file that a name stands for, fetched if need be."""
    scheme, separator, model = name.partition('://')
    if not separator:
        return Path(name).expanduser()
    if scheme in ('http', 'https'):
        return _fetch(name)
    if scheme not in ZOOS:
        raise UserError(f'{name} is not loaded: from there no file is read weights-only; fetch it, and give its path')
    names = ZOOS[scheme]()
    model = mmengine_checkpoint.get_deprecated_model_names().get(model, model)
    if model not in names:
        raise UserError(f'there is no {model} among the {len(names)} models of {scheme}://')
    return _locate(names[model])  # a user's own list may name files


def _fetch(address: str) -> Path:
    path = Path(torch.hub.get_dir(), 'checkpoints', Path(urlparse(address).path).name)
    try:
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            torch.hub.download_url_to_file(address, str(path), progress=os.isatty(0))
    except (OSError, ValueError) as error:
        raise FileError(f'{address} could not be fetched ({error}): fetch it yourself and give its path') from error
    return path
