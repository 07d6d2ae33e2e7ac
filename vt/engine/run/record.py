"""Records of runs and measurements as data: settings, versions and results, enough to repeat and compare them."""

import hashlib
import json
import platform
import re
import shlex
import sys
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from mmengine.config import Config
from mmengine.model import is_model_wrapper
from mmengine.runner import IterBasedTrainLoop, Runner
from torch import nn
from torch.distributed.fsdp import FSDPModule

from vt.engine.counting import count_complexity, one_input
from vt.errors import UserError
from vt.files import ROOT, write_json
from vt.hints import typed_start

# Distributions whose versions affect results; onedl-* are forks of OpenMMLab's packages with the same import names.
PACKAGES = ('torch', 'torchvision', 'numpy', 'mmengine', 'mmcv', 'mmpretrain', 'mmsegmentation')


def record_training(runner: Runner, config: str, options: dict[str, Any], digest: str) -> dict[str, Any]:
    """Return the record of a finished training.

    Args:
        runner: the runner after the training.
        config: config as the user gave it.
        options: options as the user gave them.
        digest: that of the config of the run, see :func:`digest_config`.

    Returns:
        A dict with the origin (see :func:`describe_origin`), ``config``, ``seed``, ``date`` (UTC) and

        - ``options``: the options without the seed.
        - ``digest``: None if a checkpoint kept other settings.
        - ``kept_settings``: settings that a resumed checkpoint kept in place of the config's.
        - ``length``: such as ``'10 epochs'``; ``iterations``; ``batch_size`` of each process.
        - ``seconds`` of all iterations and ``data_seconds`` of waiting for data, including the time before an
          interruption; None without a timer hook.
        - ``weights``: digest of the final weights, equal for bit-identical runs; None if they are sharded.

        With validation also

        - ``metrics`` of the last (not the best) validation, and ``tables``: results that are not single numbers.
        - ``image_shape`` (channels, height, width) of the first validation image, ``parameters``, and ``flops``
          (multiply-adds) at that size; None if the model is sharded or takes no whole image.
    """
    path = Path(config)
    kept = runner.message_hub.runtime_info.get('kept_settings', {})
    sharded = isinstance(runner.model, FSDPModule)
    in_iterations = isinstance(runner.train_loop, IterBasedTrainLoop)
    record = dict(
        describe_origin(next(runner.model.parameters()).device),
        config=str(path.relative_to(ROOT) if path.is_relative_to(ROOT / 'configs') else path),
        options={key: kept.get(key, value) for key, value in options.items() if key != 'randomness.seed'},
        kept_settings=kept,
        digest=None if kept else digest,
        seed=runner.seed,
        length=f'{runner.max_iters:,} iterations' if in_iterations else f'{runner.max_epochs} epochs',
        seconds=_total(runner, 'train/time'),
        data_seconds=_total(runner, 'train/data_time'),
        iterations=runner.iter,
        batch_size=runner.train_dataloader.batch_size,
        weights=None if sharded else digest_weights(runner.model),
        date=datetime.now(UTC).date().isoformat(),
    )
    return record if runner.val_loop is None else record | _record_validation(runner)


def digest_weights(model: nn.Module) -> str:
    """Return a digest of all parameters and buffers of a model; equal only if all bits are equal."""
    digest = hashlib.blake2b(digest_size=16)
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


def _total(runner: Runner, name: str) -> float | None:
    if name not in runner.message_hub.log_scalars:
        return None
    values, counts = runner.message_hub.get_scalar(name).data
    return float((values * counts).sum())


def describe_origin(device: torch.device | str = 'cpu') -> dict[str, Any]:
    """Return the origin of a measurement: ``command`` of this process, name of the ``device``, library ``versions``.

    The command has the program's path from the working directory, where it is in it, or ``-m vt`` and its name there.
    """
    start = typed_start()
    start = f'python -m {start}' if start.startswith('vt ') else start
    versions = dict(python=platform.python_version())
    for name in [name for package in PACKAGES for name in (package, f'onedl-{package}')]:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    command = f'{start} {shlex.join(sys.argv[1:])}'.rstrip()
    return dict(command=command, device=describe_device(torch.device(device)), versions=versions)


def describe_device(device: torch.device) -> str:
    """Return the name of a device: a GPU's name, or the processor's with its family, model and number of threads.

    Family and model identify the generation where a virtual machine shortens the name.
    """
    if device.type == 'cuda':
        return torch.cuda.get_device_name(device)
    text = Path('/proc/cpuinfo').read_text() if Path('/proc/cpuinfo').exists() else ''
    facts = dict(re.findall(r'^(model name|cpu family|model)\s*: (.+)$', text, re.MULTILINE))
    name = facts.get('model name') or platform.processor() or 'CPU'
    if {'cpu family', 'model'} <= facts.keys():
        name += f' (family {facts["cpu family"]}, model {facts["model"]})'
    threads = torch.get_num_threads()
    return f'{name}, {threads} thread{"s" if threads > 1 else ""}'


def _record_validation(runner: Runner) -> dict[str, Any]:
    scalars = runner.message_hub.log_scalars
    metrics = {name[4:]: float(log.current()) for name, log in scalars.items() if name.startswith('val/')}
    metrics = {name: value for name, value in metrics.items() if name not in ('time', 'data_time')}
    tables = {name[4:]: value for name, value in runner.message_hub.runtime_info.items() if name.startswith('val/')}
    model: Any = runner.model.module if is_model_wrapper(runner.model) else runner.model
    parameter, image = next(model.parameters()), one_input(runner.val_dataloader.dataset)
    size = dict(image_shape=list(image.shape), parameters=sum(part.numel() for part in model.parameters()))
    flops = None
    try:
        if not isinstance(model, FSDPModule):  # it would wait for the other processes
            flops = count_complexity(model, torch.zeros(1, *image.shape).to(parameter), mode='tensor').flops
    except (RuntimeError, AssertionError, UserError) as error:  # the model takes windows, or padded images
        runner.logger.warning(f'FLOPs are not counted for an image of shape {tuple(image.shape)}: {error}')
    return dict(metrics=metrics, tables=tables, flops=flops, **size)


def digest_config(cfg: Config) -> str:
    """Return a digest of the settings of a training, the same in every process and on every machine.

    The seed, ``work_dir``, ``launcher`` and ``pin_memory`` are left out, since they do not change what is trained.
    """
    settings = cfg.to_dict() | dict(work_dir=None, launcher=None)
    settings['randomness'] = (settings.get('randomness') or {}) | dict(seed=None)
    for name, loader in settings.items():
        if name.endswith('_dataloader') and isinstance(loader, dict):
            settings[name] = loader | dict(pin_memory=None)
    text = json.dumps(as_data(settings), sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def as_data(value: Any) -> Any:
    """Convert a value of a config to JSON data: classes and functions to their names, other objects to their repr."""
    return json.loads(json.dumps(value, default=_as_data))


def _as_data(value: Any) -> Any:
    if isinstance(value, (set, frozenset)):
        return sorted(json.dumps(as_data(item), sort_keys=True) for item in value)
    if hasattr(value, 'tolist'):  # the repr of an array is shortened
        return value.tolist()
    name = getattr(value, '__qualname__', None)
    return f'{value.__module__}.{name}' if name else re.sub(r' at 0x[0-9a-f]+', '', repr(value))


def write_measured(out: str | Path | None, device: torch.device | str = 'cpu', **measured: Any) -> None:
    """Write measurements to a JSON file, if given, with the command, the device and versions."""
    if out:
        write_json(describe_origin(device) | measured, out)
        print(f'written to {out}')
