"""How long things take and what they need, as ``tools/benchmark.py`` and ``tools/benchmark_*.py`` ask."""

import argparse
import os
from dataclasses import asdict, replace
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from rich.progress import track

from vt.analysis.figures import save_figure
from vt.analysis.speed.comparison import Comparison
from vt.analysis.speed.data_loading import (
    build_loader,
    describe_loader,
    gives_clips,
    loading_config,
    samples_per_second,
    write_jpegs,
    write_videos,
)
from vt.analysis.speed.measurement import BenchmarkRecord, Setting, default_dtype, parse_size
from vt.analysis.speed.scaling import draw_scaling
from vt.analysis.speed.startup import time_first_iteration, time_process
from vt.analysis.speed.subject import Subject
from vt.analysis.speed.timing import median_of_rounds
from vt.analysis.tables import insert, print_table, split, to_markdown
from vt.engine.config_files import ROOT, read_config, require_file
from vt.engine.run_record import describe_origin
from vt.engine.speed_settings import keep_freed_memory, require_compiler, use_threads
from vt.errors import UserError
from vt.ops.token_products import choose_token_library

from .outputs import check_output, check_picture, write_json, write_measured

TRAIN = str(ROOT / 'tools' / 'train.py')
# What changes the time of a CPU.
ENVIRONMENT = ('OMP_NUM_THREADS', 'GLIBC_TUNABLES', 'LD_PRELOAD', 'THP_MEM_ALLOC_ENABLE', 'ONEDNN_MAX_CPU_ISA')
ENVIRONMENT += ('ONEDNN_DEFAULT_FPMATH_MODE',)


def benchmark(args: argparse.Namespace) -> None:
    """Measure all models in turn, in every setting; print medians and the ratios to the first model."""
    check_output(args.out, *args.configs)
    check_picture(args.plot, *args.configs)
    settings = _read_settings(args)
    if any(setting.compile != 'off' for setting in settings):
        require_compiler()
    process = dict(threads=use_threads(), keeps_freed_memory=not args.default_allocator and keep_freed_memory())
    torch.backends.cudnn.benchmark = True  # as in the configs
    subjects = [
        subject for source in args.configs for subject in Subject(source, args.num_classes).with_tokens(args.tokens)
    ]
    comparison = Comparison(subjects, args.kinds, args.rounds, args.seconds, not args.no_memory)
    for setting in settings:
        comparison.measure(setting, args.only)
    if args.out:
        record = BenchmarkRecord(
            **describe_origin(settings[0].device),
            environment={name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
            settings=process,
            ceilings=comparison.ceilings,
            results=comparison.measurements,
        )
        write_json(asdict(record), args.out)
    comparison.print_tables()
    if args.plot:
        save_figure(draw_scaling(comparison.measurements), args.plot)


def _read_settings(args: argparse.Namespace) -> list[Setting]:
    """Every combination of what the arguments list.

    Raises:
        UserError: a size that is none, a device that isn't there, or TensorFloat-32 on a CPU.
    """
    devices = args.devices or ['cuda' if torch.cuda.is_available() else 'cpu']
    for device in devices:
        is_gpu = torch.device(device).type == 'cuda'
        if is_gpu and not torch.cuda.is_available():
            raise UserError(f'--devices {device}: there is no GPU that PyTorch can use; give cpu')
        if not is_gpu and 'tf32' in (args.dtypes or ()):
            raise UserError(f'--dtypes tf32: {device} has no TensorFloat-32; give float32')
    states = [(device, dtype) for device in devices for dtype in args.dtypes or [default_dtype(device)]]
    sizes = [parse_size(size) for size in args.sizes]
    libraries = list(dict.fromkeys(map(choose_token_library, args.token_products)))
    sweep = product(states, args.memory_formats, args.compile, args.batch_sizes, sizes)
    settings = [Setting(*state, *values, fuse_conv_bn=args.fuse_conv_bn) for state, *values in sweep]
    return [replace(setting, token_products=library) for setting in settings for library in libraries]


def benchmark_data(args: argparse.Namespace) -> None:
    """Load every config's data with every decoder and number of workers in turn; print medians, write every run."""
    check_output(args.out, *args.configs)
    videos = {gives_clips(read_config(path)) for path in args.configs}
    if len(videos) > 1:
        raise UserError('some of the configs read videos, the others do not: time them apart')
    what = 'videos' if videos == {True} else 'images'
    with TemporaryDirectory() as folder:
        write = write_videos if what == 'videos' else write_jpegs
        file_size = write(Path(folder), args.synthetic) if args.synthetic else None
        rows, steps = [], {}
        for path, decoder, workers in product(args.configs, args.decoders or [None], args.workers):
            cfg = loading_config(path, decoder, workers, folder if args.synthetic else None, args.load_only)
            steps[len(rows)] = partial(samples_per_second, build_loader(cfg), args.batches)
            rows.append(describe_loader(path, cfg))
        measured = median_of_rounds(steps, args.rounds, 'Loading')
    unit = 'clips/s' if what == 'videos' else 'images/s'
    table = [
        {name: str(value) for name, value in row.items()} | {unit: f'{rate:.4g}'}
        for row, (rate, _) in zip(rows, measured.values())
    ]
    print_table(table, title=f'Training {what} loaded')
    results = [
        row | {unit.replace('/s', '_per_second'): rate, 'runs': runs}
        for row, (rate, runs) in zip(rows, measured.values())
    ]
    size = '340x256, 300 frames' if what == 'videos' else '500x375'
    source = f'{args.synthetic} synthetic, {size}, {file_size} bytes' if args.synthetic else "the config's"
    write_measured(args.out, **{what: source}, load_only=args.load_only, results=results)


def benchmark_startup(args: argparse.Namespace) -> None:
    """Time fresh processes in turn, A B C A B C ...; print medians, and write every run to a file."""
    for config in args.configs:
        require_file(config, 'config')
    check_output(args.out, *args.configs)
    commands = {'import torch': ['-c', 'import torch'], 'import vt': ['-c', 'import vt']}
    commands['tools/train.py --help'] = [TRAIN, '--help']
    steps = {name: partial(time_process, *command) for name, command in commands.items()}
    for config in args.configs:
        steps[f'first iteration of {Path(config).stem}'] = partial(time_first_iteration, TRAIN, config)
    measured = median_of_rounds(steps, args.rounds, 'Starting')
    print_table([{'what': name, 'seconds': f'{median:.2f}'} for name, (median, _) in measured.items()], 'Start-up')
    results = [dict(what=name, seconds=median, runs=runs) for name, (median, runs) in measured.items()]
    write_measured(args.out, results=results)


def benchmark_kernels(args: argparse.Namespace) -> None:
    """Compile every Triton kernel for several GPUs; print and write what each takes of one.

    Raises:
        UserError: Triton is not there.
    """
    check_output(args.out)
    if args.page:
        split(args.page, 'kernels')  # refused before anything is compiled
    if find_spec('triton') is None:
        raise UserError('the kernels need Triton, which is not installed: pip install triton')
    from vt.analysis.speed.kernel_resources import cases, measure, table

    results = [measure(*case) for case in track(cases(), 'Compiling')]
    rows = table(results)
    print_table(rows, 'Triton kernels: registers of a thread / spilled bytes of a thread / kB of shared memory')
    write_measured(args.out, triton=version('triton'), results=results)
    if args.page:
        insert(args.page, 'kernels', to_markdown(rows))


def benchmark_products(args: argparse.Namespace) -> None:
    """Time products of tokens and matrices, and of pixels, by each library; print rates and the choice, write them."""
    check_output(args.out)
    from vt.analysis.speed.product_times import MAPS, SIZES, pixel_table, table, time_pixel_products, time_products

    use_threads()
    keep_freed_memory()
    found = time_products([size for size in SIZES if max(size) <= args.largest], args.seconds)
    pixels = time_pixel_products([size for size in MAPS if max(size) <= args.largest], args.seconds)
    trial = found['trial']
    size = 'x'.join(map(str, trial['size']))
    print_table(
        table(found),
        f'oneDNN is {trial["lead"]:.2f}x as fast in {size}, found in {1e3 * trial["seconds"]:.0f} ms: '
        f'{trial["chosen"]} is chosen (oneDNN from {trial["chosen_from"]}x on)',
    )
    print_table(pixel_table(pixels), 'Pixels of 256 channels and 8 tokens')
    write_measured(args.out, **found, pixels=pixels)
