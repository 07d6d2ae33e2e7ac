"""Find published weights by address, or by name in a model zoo.

Files are downloaded by the libraries' functions to their caches, and only for an address of this form.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import torch
from mmengine.runner import checkpoint as mmengine_checkpoint

from vt.errors import FileError, UserError
from vt.untrusted_text import printable

ZOOS = {
    'torchvision': mmengine_checkpoint.get_torchvision_models,
    'open-mmlab': mmengine_checkpoint.get_external_models,
    'openmmlab': mmengine_checkpoint.get_external_models,
}


def locate(name: str) -> Path:
    """Return the file of a path, an address or a name in a model zoo, downloaded if needed; or raise a UserError."""
    scheme, separator, model = name.partition('://')
    if not separator:
        return Path(name).expanduser()
    if scheme in ('http', 'https'):
        return _fetch(name)
    if scheme == 'torchvision' and '_Weights.' in model:
        return _fetch(torchvision_weights(model).url)
    if scheme not in ZOOS:
        raise UserError(f'{name} cannot be loaded, {scheme}:// is not supported: download it and give its path')
    names = ZOOS[scheme]()
    model = mmengine_checkpoint.get_deprecated_model_names().get(model, model)
    if model not in names:
        raise UserError(f'there is no {model} among the {len(names)} models of {scheme}://')
    return locate(names[model])  # a user's list may name files


def _fetch(address: str) -> Path:
    path = Path(torch.hub.get_dir(), 'checkpoints', Path(urlparse(address).path).name)
    with fetching(address):
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            torch.hub.download_url_to_file(address, str(path), progress=os.isatty(0))
    return path


def read_timm(name: str) -> dict[str, torch.Tensor]:
    """Return the state dict of a pretrained model of timm, such as ``'swin_tiny_patch4_window7_224.ms_in1k'``.

    Without timm or weights of this name there is a UserError, a FileError if they cannot be downloaded.
    """
    with fetching(f'timm://{name}'), torch.random.fork_rng(devices=[]):  # timm initialises weights before loading
        import timm

        if repository := getattr(timm.get_pretrained_cfg(name), 'hf_hub_id', None):
            require_hub(repository)
        return timm.create_model(name, pretrained=True).state_dict()


def require_hub(repository: str) -> None:
    """Raise ``ConnectionError`` if a repository has to be fetched from a hub that does not answer.

    The libraries that fetch it try again for up to a minute.
    """
    from huggingface_hub import get_hf_file_metadata, hf_hub_url, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    if Path(repository).is_dir():
        return
    try:
        snapshot_download(repository, local_files_only=True)
    except LocalEntryNotFoundError:
        try:
            get_hf_file_metadata(hf_hub_url(repository, 'config.json'))
        except HfHubHTTPError:
            pass  # an answer, which the library interprets
        except Exception as error:  # of the library for HTTP
            raise ConnectionError(f'the hub cannot be reached: {error}') from error


def similar_in_timm(name: str) -> str:
    """Return the names of timm that resemble one that it does not have, as advice; empty for those that it has."""
    import timm

    names = [*timm.list_models(), *timm.list_pretrained()]
    near = [] if name in names else get_close_matches(name, names)
    return f'did you mean {" or ".join(near)}?' if near else ''


def torchvision_weights(name: str) -> Any:
    """Return torchvision's entry for weights such as ``'ResNet50_Weights.IMAGENET1K_V2'``; FileError without one."""
    import torchvision

    with fetching(f'torchvision://{name}'):
        return torchvision.models.get_weight(name)


@contextmanager
def fetching(address: str) -> Iterator[None]:
    """Convert errors of the block to one-line errors."""
    try:
        yield
    except ImportError as error:
        package = 'timm' if address.startswith('timm') else 'huggingface_hub'
        raise UserError(f'{address} requires a package: pip install {package}') from error
    except (OSError, ValueError, RuntimeError, KeyError) as error:  # of a library: no connection, unknown name
        reason = printable(' '.join(str(error).split()), 160)
        near = similar_in_timm(address.removeprefix('timm://')) if address.startswith('timm://') else ''
        advice = 'correct the name, connect to the internet once, give the path of a local file'
        advice = near or f'{advice}, or train from random weights (weights=none)'
        raise FileError(f'{address} was not downloaded ({reason}): {advice}') from error
