"""Models side by side, as ``tools/benchmark.py`` asks."""

import argparse
import os
import shlex
import sys
from dataclasses import asdict
from itertools import groupby, product
from typing import Any

import mmengine
import torch

from vt.analysis.comparison import Comparison, tabulate
from vt.analysis.measurement import BenchmarkRecord, Measurement
from vt.analysis.report import print_table
from vt.analysis.run_record import versions
from vt.analysis.scaling import draw_scaling
from vt.analysis.setting import PARTS, Setting
from vt.analysis.speed import describe_device
from vt.analysis.subject import Subject
from vt.analysis.workload import has_part
from vt.engine.speed import keep_freed_memory, use_threads
from vt.engine.speed_settings import require_compiler

# What changes the time of a CPU.
ENVIRONMENT = (
    'OMP_NUM_THREADS',
    'GLIBC_TUNABLES',
    'LD_PRELOAD',
    'THP_MEM_ALLOC_ENABLE',
    'ONEDNN_MAX_CPU_ISA',
    'ONEDNN_DEFAULT_FPMATH_MODE',
)

NOTES = (
    "FLOPs of models are multiply-adds; in the ceilings' GFLOP/s one of them is two. A copy counts what it reads and "
    'what it writes.',
    'Of the roofline: the time of the matrix operators alone, each at these ceilings, over the measured time.',
)


def benchmark(args: argparse.Namespace) -> None:
    """Measure all models in turn, in every setting; print medians and the ratios to the first model."""
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
            command=shlex.join(['python', *sys.argv]),
            environment={name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
            device=describe_device(torch.device(settings[0].device)),
            versions=versions(),
            settings=process,
            ceilings=comparison.ceilings,
            results=results,
        )
        mmengine.dump(asdict(record), args.out, indent=2)
    if args.plot:
        draw_scaling(results).savefig(args.plot, dpi=100)
    print_results(results, comparison.ceilings)


def read_settings(args: argparse.Namespace) -> list[Setting]:
    """Every combination of what the arguments list.

    Raises:
        ValueError: a size that is none, or a device that isn't there.
    """
    devices = args.devices or ['cuda' if torch.cuda.is_available() else 'cpu']
    for device in devices:
        if torch.device(device).type == 'cuda' and not torch.cuda.is_available():
            raise ValueError(f'--devices {device}: there is no GPU that PyTorch can use; give cpu')
    sizes = [parse_size(size) for size in args.sizes] if args.sizes else [tuple((args.size * 2)[:2])]
    batch_sizes = args.batch_sizes or [args.batch_size]
    sweep = product(devices, args.dtypes, args.memory_formats, args.compile, batch_sizes, sizes, [args.fuse_conv_bn])
    return [Setting(*values) for values in sweep]


def parse_size(text: str) -> tuple[int, int]:
    """``'224'`` or ``'800x1216'`` (height, then width).

    Raises:
        ValueError: it is neither.
    """
    numbers = text.split('x')
    if len(numbers) > 2 or not all(number.isdecimal() for number in numbers):
        raise ValueError(f'--sizes {text}: give an image as 224 or as 800x1216, height and then width')
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
    print_table([_describe_ceilings(**ceiling) for ceiling in ceilings], title="the machine's ceilings", notes=NOTES)
    for result in results:
        if result.seconds_by_operator:
            title = f'{result.model}, {result.part}, {result.kind}: where the time goes'
            print_table(_describe_operators(result.seconds_by_operator), title=title)


def _describe_ceilings(part: str, kind: str, size: tuple[int, int], **ceiling: Any) -> dict[str, str]:
    height, width = size
    return {
        'while': f'{part}, {kind}, batch {ceiling["batch_size"]}, {height}x{width}',
        'device': ceiling['device'],
        'precision': ceiling['dtype'],
        'matrix product (GFLOP/s)': f'{ceiling["matmul"] / 1e9:.0f}',
        '1x1 convolution (GFLOP/s)': f'{ceiling["convolution1x1"] / 1e9:.0f}',
        '3x3 convolution (GFLOP/s)': f'{ceiling["convolution3x3"] / 1e9:.0f}',
        'copy (GB/s)': f'{ceiling["copy"] / 1e9:.1f}',
    }


def _describe_operators(seconds: dict[str, float]) -> list[dict[str, str]]:
    whole = sum(seconds.values())
    return [
        {'operator': name, 'ms': f'{1e3 * value:.1f}', 'share (%)': f'{100 * value / whole:.0f}'}
        for name, value in seconds.items()
    ]
