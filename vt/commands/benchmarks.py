"""Command of ``vt benchmark``: models side by side."""

import argparse
from dataclasses import asdict
from itertools import product

import torch
from mmengine.config import Config

from vt.analysis.speed import Setting, compare, tabulate
from vt.analysis.tables import print_table
from vt.apis.model_zoo import get_model, name_of, resolve_config
from vt.engine.config.parts import AUTO
from vt.engine.config.short_names import set_classes
from vt.engine.run.launch import require_device
from vt.engine.run.record import write_measured
from vt.engine.run.speed_settings import keep_freed_memory, use_threads
from vt.errors import UserError
from vt.paths import check_output
from vt.registry import dicts_in

IMAGENET_CLASSES = 1000


def benchmark(args: argparse.Namespace) -> None:
    """Measure all models interleaved, in every setting; print medians and ratios to the first model."""
    check_output(args.out, *args.configs)
    if len({name_of(config) for config in args.configs}) < len(args.configs):
        raise UserError('two models have the same name: give each model once, or copy a config to another name')
    settings = read_settings(args)
    use_threads()
    keep_freed_memory()
    torch.backends.cudnn.benchmark = True  # as in the configs
    models, results = {name_of(config): get_model(read_model(config)) for config in args.configs}, []
    for setting, kind in product(settings, args.kinds):
        found = compare(models, setting, kind, args.rounds, args.seconds)
        print_table(tabulate(found, setting), title=f'{kind.capitalize()}: {setting.describe()}')
        results += [asdict(setting) | measured for measured in found]
    write_measured(args.out, settings[0].device, results=results)


def read_model(config: str) -> Config:
    """Return the config of a model; one with as many classes as its data gets those of ImageNet-1k."""
    cfg = resolve_config(config)
    if AUTO in [part.get('num_classes') for part in dicts_in(cfg.model)]:
        set_classes(cfg, IMAGENET_CLASSES)
    return cfg


def read_settings(args: argparse.Namespace) -> list[Setting]:
    """Return every combination of the values of the arguments; a UserError names one that cannot be used here."""
    states = []
    for device in args.devices or ['cuda' if torch.cuda.is_available() else 'cpu']:
        is_gpu = require_device(device).type == 'cuda'
        if not is_gpu and 'tf32' in (args.dtypes or ()):
            raise UserError(f'--dtypes tf32: {device} does not support TensorFloat-32: use float32')
        states += [(device, dtype) for dtype in args.dtypes or ['tf32' if is_gpu else 'float32']]
    how = args.batch_sizes, [parse_size(size) for size in args.sizes]
    return [Setting(*state, *values) for state, *values in product(states, *how)]


def parse_size(text: str) -> tuple[int, ...]:
    """Parse ``'224'``, ``'800x1216'`` (height, width) or ``'16x224x224'`` (with frames), or raise a UserError."""
    numbers = text.split('x')
    if len(numbers) > 3 or not all(number.isdecimal() for number in numbers):
        raise UserError(
            f'--sizes {text} is not a size: write 224 or 800x1216 (height, width) for images, 16x224x224 for clips'
        )
    return tuple(map(int, numbers * 2 if len(numbers) == 1 else numbers))
