"""Publish a checkpoint: only its weights, as safetensors, with a description in the header."""

import json
import re
from pathlib import Path

import mmengine
import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

import vt
from vt.errors import UserError
from vt.files import parse_errors, write_atomically
from vt.untrusted_text import printable

from .reading import SUFFIX, Checkpoint, content_digits, load_checkpoint

OF_THE_RUN = re.compile(r'^(work_dir|load_from|resume) = .*\n', re.MULTILINE)  # settings unrelated to the model


def publish(checkpoint: Path, out: Path, config: str | None = None) -> Path:
    """Write the weights of a checkpoint to a safetensors file, which cannot contain code; return its path.

    Averaged weights (EMA) are used if the checkpoint has them. The header contains the versions of VT and of libraries,
    the text of the config, the classes of the data set, epoch and iteration.

    Args:
        checkpoint: checkpoint of mmengine.
        out: path to write; the first eight digits of the content's SHA-256 are added to its name.
        config: text of the config; by default the one in the checkpoint.

    Raises:
        UserError: a file cannot be read or written, or has other content.
    """
    held = Checkpoint(str(checkpoint), load_checkpoint(checkpoint, 'cpu'))
    with parse_errors(checkpoint):
        known = dict(classes=held.dataset_meta.get('classes'), epoch=held.meta.get('epoch'), iter=held.meta.get('iter'))
        texts = {name: json.dumps(value) for name, value in known.items() if value is not None}
        if text := config or held.config:
            texts['config'] = OF_THE_RUN.sub('', text)
    versions = dict(vt=vt.__version__, torch=torch.__version__, mmengine=mmengine.__version__)
    return write_published(out, held.state(), texts | versions)


def write_published(out: Path, state: dict[str, Tensor], texts: dict[str, str]) -> Path:
    """Write a safetensors file, or raise a UserError; the name gets the first eight digits of the content's SHA-256."""
    if out.suffix != SUFFIX:
        raise UserError(f'{out}: the name of a published checkpoint must end with {SUFFIX}')
    content = as_safetensors(state, texts)
    path = out.with_name(f'{out.stem}-{content_digits(content)}{SUFFIX}')
    write_atomically(path, content)
    return path


def as_safetensors(state: dict[str, Tensor], texts: dict[str, str]) -> bytes:
    """Return the content of a safetensors file with tensors, and strings in the header; equal inputs give equal bytes.

    Tensors that share memory, which the format does not support, are copied.
    """
    own = {name: tensor.detach().contiguous().clone() for name, tensor in state.items()}
    content = save(own, dict(format='pt') | texts)
    size = int.from_bytes(content[:8], 'little')
    header = json.dumps(json.loads(content[8 : 8 + size]), sort_keys=True, separators=(',', ':')).encode()
    header += b' ' * (-len(header) % 8)  # tensors start at a multiple of eight
    return len(header).to_bytes(8, 'little') + header + content[8 + size :]


def read_header(path: Path) -> dict[str, str]:
    """Return the texts in the header of a published checkpoint after comparing the digits in its name.

    Raises:
        UserError: the file is of another kind, or was changed.
    """
    if path.suffix != SUFFIX:
        raise UserError(f'{path} is not a {SUFFIX} file, and only these have a header to show')
    load_checkpoint(path)
    with safe_open(path, 'pt') as file:
        return file.metadata() or {}


def show(path: Path) -> None:
    """Print the header that :func:`read_header` returns, the config last."""
    texts = read_header(path)
    for name in sorted(texts, key=lambda name: (name == 'config', name)):
        text = f'{name}:{chr(10) if chr(10) in texts[name] else " "}{texts[name]}'
        print('\n'.join(map(printable, text.split('\n'))))
