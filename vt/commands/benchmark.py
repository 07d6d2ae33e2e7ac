"""Models side by side, as ``tools/benchmark.py`` asks."""

import argparse
import os
from dataclasses import asdict
from itertools import groupby, product

import torch

from vt.analysis.run_record import describe_origin
from vt.analysis.speed.comparison import NOTES, Comparison, describe_ceilings, describe_operators, tabulate
from vt.analysis.speed.measurement import PARTS, BenchmarkRecord, Measurement, Setting
from vt.analysis.speed.scaling import draw_scaling
from vt.analysis.speed.subject import Subject
from vt.analysis.speed.workload import has_part
from vt.analysis.tables import print_table
from vt.engine.speed_settings import keep_freed_memory, require_compiler, use_threads
from vt.errors import UserError

from .outputs import check_output, write_json

# What changes the time of a CPU.
ENVIRONMENT = (
    'OMP_NUM_THREADS',
    'GLIBC_TUNABLES',
    'LD_PRELOAD',
    'THP_MEM_ALLOC_ENABLE',
    'ONEDNN_MAX_CPU_ISA',
    'ONEDNN_DEFAULT_FPMATH_MODE',
)


def benchmark(args: argparse.Namespace) -> None:
    """Measure all models in turn, in every setting; print medians and the ratios to the first model."""
    for out in (args.out, args.plot):
        check_output(out, *args.configs)
    settings = read_settings(args)
    if any(setting.compile != 'off' for setting in settings):
        require_compiler()
    process = dict(threads=use_threads(), keeps_freed_memory=not args.default_allocator and keep_freed_memory())
    torch.backends.cudnn.benchmark = True  # as in the configs
    subjects = [
        subject for source in args.configs for subject in Subject(source, args.num_classes).with_tokens(args.tokens)
    ]
    comparison = Comparison(subjects, args.kinds, args.rounds, args.seconds, not args.no_memory, args.profile)
    parts = args.only or parts_of_all(subjects)
    for setting in settings:
        comparison.measure(setting, parts)
    results = comparison.measurements
    if args.out:
        record = BenchmarkRecord(
            **describe_origin(settings[0].device),
            environment={name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
            settings=process,
            ceilings=comparison.ceilings,
            results=results,
        )
        write_json(asdict(record), args.out)
    print_results(results, comparison.ceilings)
    if args.plot:
        draw_scaling(results).savefig(args.plot, dpi=100)


def read_settings(args: argparse.Namespace) -> list[Setting]:
    """Every combination of what the arguments list.

    Raises:
        UserError: a size that is none, or a device that isn't there.
    """
    devices = args.devices or ['cuda' if torch.cuda.is_available() else 'cpu']
    for device in devices:
        if torch.device(device).type == 'cuda' and not torch.cuda.is_available():
            raise UserError(f'--devices {device}: there is no GPU that PyTorch can use; give cpu')
    sizes = [parse_size(size) for size in args.sizes] if args.sizes else [tuple((args.size * 2)[:2])]
    batch_sizes = args.batch_sizes or [args.batch_size]
    sweep = product(devices, args.dtypes, args.memory_formats, args.compile, batch_sizes, sizes, [args.fuse_conv_bn])
    return [Setting(*values) for values in sweep]


def parse_size(text: str) -> tuple[int, int]:
    """``'224'`` or ``'800x1216'`` (height, then width).

    Raises:
        UserError: it is neither.
    """
    numbers = text.split('x')
    if len(numbers) > 2 or not all(number.isdecimal() for number in numbers):
        raise UserError(f'--sizes {text}: give an image as 224 or as 800x1216, height and then width')
    return tuple(map(int, (numbers * 2)[:2]))


def parts_of_all(subjects: list[Subject]) -> list[str]:
    """The whole, and the neck where every model has one."""
    models = [subject.build(Setting(device='meta', memory_format='contiguous')) for subject in subjects]
    return [part for part in PARTS if part != 'backbone' and all(has_part(model, part) for model in models)]


def print_results(results: list[Measurement], ceilings: list[dict]) -> None:
    """A table for each part and kind in each setting, then the ceilings, then where time goes."""

    def group(result: Measurement) -> tuple:
        return result.part, result.kind, result.setting

    for (part, kind, setting), measurements in groupby(results, group):
        print_table(tabulate(list(measurements)), title=f'{part}, {kind}: {setting.describe()}')
    print_table([describe_ceilings(**ceiling) for ceiling in ceilings], title="the machine's ceilings", notes=NOTES)
    for result in results:
        if result.seconds_by_operator:
            title = f'{result.model}, {result.part}, {result.kind}: where the time goes'
            print_table(describe_operators(result.seconds_by_operator), title=title)
