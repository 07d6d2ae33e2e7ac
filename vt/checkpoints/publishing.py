"""Publish a checkpoint: only its weights, as safetensors, with a description in the header."""

import json
import math
import re
from pathlib import Path
from typing import Any

import mmengine
import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

import vt
from vt.errors import UserError
from vt.untrusted_text import check_name, printable

from .files import read_json, write_atomically
from .reading import SUFFIX, content_digits, load_checkpoint
from .sharded import read_sharded
from .weights import state_of

OF_THE_RUN = re.compile(r'^(work_dir|load_from|resume) = .*\n', re.MULTILINE)  # settings unrelated to the model
MAX_METRICS = 1 << 20  # bytes


def publish(checkpoint: Path, out: Path, config: str | None = None, metrics: Path | None = None) -> Path:
    """Write the weights of a checkpoint to a safetensors file, which cannot contain code.

    Averaged weights (EMA) are used if the checkpoint has them. The header contains the versions of VT and of libraries,
    the text of the config, the classes of the data set, epoch and iteration, and metrics.

    Args:
        checkpoint: checkpoint of mmengine, or in shards.
        out: path to write; the first eight digits of the content's SHA-256 are added to its name.
        config: text of the config; by default the one in the checkpoint.
        metrics: JSON file that ``tools/test.py --out FILE --out-item metrics`` wrote for this checkpoint.

    Returns:
        Path of the file.

    Raises:
        UserError: a file cannot be read or written, or has other content.
    """
    if out.suffix != SUFFIX:
        raise UserError(f'{out}: the name of a published checkpoint must end with {SUFFIX}')
    loaded = read_sharded(checkpoint, part='state_dict', texts=True)
    content = as_safetensors(state_of(loaded, str(checkpoint)), _describe(loaded, config, metrics))
    path = out.with_name(f'{out.stem}-{content_digits(content)}{SUFFIX}')
    write_atomically(path, content)
    return path


def as_safetensors(state: dict[str, Tensor], texts: dict[str, str]) -> bytes:
    """Return the content of a safetensors file with tensors, and strings in the header; equal inputs give equal bytes.

    Tensors that share memory, which the format does not support, are copied.
    """
    tensors = {name: tensor.detach().contiguous().clone() for name, tensor in state.items()}
    return _sort_header(save(tensors, texts))


def _sort_header(content: bytes) -> bytes:
    """Sort the header of a file, so that equal content gives equal digits."""
    size = int.from_bytes(content[:8], 'little')
    header = json.dumps(json.loads(content[8 : 8 + size]), sort_keys=True, separators=(',', ':')).encode()
    header += b' ' * (-len(header) % 8)  # tensors start at a multiple of eight
    return len(header).to_bytes(8, 'little') + header + content[8 + size :]


def _describe(checkpoint: dict, config: str | None, metrics: Path | None) -> dict[str, str]:
    """Return the strings of the header; unknown ones are left out."""
    meta = checkpoint.get('meta') or {}
    dataset = meta.get('dataset_meta') or {}
    for name, kind in dict(epoch=int, iter=int, cfg=str).items():
        if not isinstance(meta.get(name), (kind, type(None))):
            wrong = printable(repr(meta[name]), 80)
            raise UserError(f'meta.{name} of the checkpoint is {wrong}, not of type {kind.__name__}')
    known = dict(classes=dataset.get('classes'), epoch=meta.get('epoch'), iter=meta.get('iter'))
    known['metrics'] = _read_metrics(metrics) if metrics else None
    texts = {name: json.dumps(value) for name, value in known.items() if value is not None}
    if config or meta.get('cfg'):
        texts['config'] = OF_THE_RUN.sub('', config or meta['cfg'])
    return texts | dict(format='pt', vt=vt.__version__, torch=torch.__version__, mmengine=mmengine.__version__)


def _read_metrics(path: Path) -> dict[str, Any]:
    advice = 'write it by tools/test.py --out FILE --out-item metrics'
    metrics = read_json(path, advice, most=MAX_METRICS)
    for name, value in metrics.items():
        check_name(name, f'a metric of {path}')
        if not _holds_numbers(value):
            raise UserError(f'{name} in {path} is {printable(repr(value), 80)}, not a number: {advice}')
    return metrics


def _holds_numbers(value: Any) -> bool:
    """Return whether a value is a number, None (not finite), or a nested list of these, such as a confusion matrix."""
    if isinstance(value, list):
        return all(map(_holds_numbers, value))
    return value is None or (type(value) in (int, float) and math.isfinite(value))


def read_metadata(path: Path) -> dict[str, str]:
    """Return the strings in the header of a published file, after comparing its content with the digits in its name."""
    if path.is_file() and path.suffix != SUFFIX:
        raise UserError(f'{path} is not a {SUFFIX} file: only these have a description')
    load_checkpoint(path, map_location='cpu')
    with safe_open(path, 'pt') as file:
        return file.metadata() or {}


def show(path: Path) -> None:
    """Print the metadata of a published checkpoint, the config last, without running any of it."""
    metadata = read_metadata(path)
    for name in sorted(metadata, key=lambda name: (name == 'config', name)):
        text = f'{name}:{chr(10) if chr(10) in metadata[name] else " "}{metadata[name]}'
        print('\n'.join(map(printable, text.split('\n'))))
