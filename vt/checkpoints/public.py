"""Published weights by address: ``timm://``, ``hf://``, ``torchvision://``, and how their images are prepared.

Files are fetched by the libraries' own functions, into their own caches, and only where an address asks for it.
"""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from vt.errors import FileError, UserError
from vt.untrusted_text import printable

EXTRAS = dict(timm='timm', hf='hub')  # of setup.py


@dataclass(frozen=True)
class Preparation:
    """How a published classifier's images, or a video's frames, are prepared.

    Attributes:
        resize: pixels of the shorter side.
        crop: pixels of a side of the square in the centre.
        interpolation: ``'bilinear'`` or ``'bicubic'``.
        mean, std: of each channel, RGB, for pixels from 0 to 255.
        classes: names, where the library brings them.
    """

    resize: int
    crop: int
    interpolation: str
    mean: tuple[float, ...]
    std: tuple[float, ...]
    classes: tuple[str, ...] = ()

    def __str__(self) -> str:
        mean, std = (', '.join(f'{value:.6g}' for value in values) for values in (self.mean, self.std))
        size = f'shorter side {self.resize} ({self.interpolation}), centre {self.crop}x{self.crop}'
        return f'{size}, mean {mean}, deviation {std}'


def read_timm(name: str) -> dict[str, torch.Tensor]:
    """The tensors of a model that timm has weights of, ``'swin_tiny_patch4_window7_224.ms_in1k'``, fetched by timm.

    Raises:
        UserError: timm is not installed, or has no weights of this name.
        FileError: they can't be fetched.
    """
    with _fetching(f'timm://{name}'), torch.random.fork_rng(devices=[]):  # it draws weights before it loads them
        import timm

        return timm.create_model(name, pretrained=True).state_dict()


def locate_hub(name: str, file: str = 'model.safetensors') -> Path:
    """A file of a repository of Hugging Face's hub, ``'owner/name'``, fetched by huggingface_hub; errors as above."""
    with _fetching(f'hf://{name}'):
        from huggingface_hub import hf_hub_download

        return Path(hf_hub_download(name, file))


def find_preparation(address: str) -> Preparation | None:
    """What the library says about the images of a published file; None where it says nothing, or of another file.

    Args:
        address: ``timm://NAME``, ``hf://OWNER/NAME`` of timm's format, or ``torchvision://ResNet50_Weights.NAME``.

    Raises:
        UserError: as :func:`read_timm`; or the images are cropped in another way than in the centre.
    """
    scheme, separator, name = address.partition('://')
    if scheme == 'torchvision' and '_Weights.' in name:
        weights = torchvision_weights(name)
        to = weights.transforms()
        mean, std = ([255 * value for value in values] for values in (to.mean, to.std))
        classes = tuple(weights.meta['categories'])
        return Preparation(to.resize_size[0], to.crop_size[0], to.interpolation.value, (*mean,), (*std,), classes)
    if not separator or scheme not in EXTRAS:
        return None
    said: Any = {}
    with _fetching(address):
        if scheme == 'hf':
            said = json.loads(locate_hub(name, 'config.json').read_text()).get('pretrained_cfg') or {}
        else:
            import timm

            said = getattr(timm.get_pretrained_cfg(name), 'to_dict', dict)()
    missing = [key for key in ('input_size', 'crop_pct', 'interpolation', 'mean', 'std') if not said.get(key)]
    if missing:
        raise UserError(f'{address} does not say {missing[0]} of its images: give the path of its file')
    if (crop := said.get('crop_mode') or 'center') != 'center':
        raise UserError(f'{address} takes images by crop_mode={printable(repr(crop), 40)}: only the centre is known')
    side = said['input_size'][-1]
    mean, std = (tuple(255 * value for value in said[key]) for key in ('mean', 'std'))
    return Preparation(math.floor(side / said['crop_pct']), side, said['interpolation'], mean, std)


def torchvision_weights(name: str) -> Any:
    """torchvision's entry of weights, ``'ResNet50_Weights.IMAGENET1K_V2'``; a UserError if there is none."""
    import torchvision

    try:
        return torchvision.models.get_weight(name)
    except (ValueError, KeyError, AttributeError) as error:
        raise UserError(f'torchvision has no weights {printable(name, 80)}: correct the name') from error


@contextmanager
def _fetching(address: str) -> Iterator[None]:
    """What goes wrong inside the block, in one line."""
    extra = EXTRAS[address.partition('://')[0]]
    try:
        yield
    except ImportError as error:
        raise UserError(f"{address} needs a package: pip install 'visual-transformers[{extra}]'") from error
    except UserError:
        raise
    except (OSError, ValueError, RuntimeError) as error:  # no connection, no such name, of hub and timm
        reason = printable(' '.join(str(error).split()), 160)
        advice = 'correct the name, connect to the internet once, or give the path of a file of it'
        raise FileError(f'{address} was not fetched ({reason}): {advice}') from error
