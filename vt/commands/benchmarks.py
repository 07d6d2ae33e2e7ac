"""Command of ``tools/benchmark.py``: time and memory of models."""

import argparse
import os
from dataclasses import asdict
from itertools import product

import torch

from vt.analysis.speed.comparison import Comparison
from vt.analysis.speed.measurement import BenchmarkRecord, Setting, default_dtype, parse_size
from vt.analysis.speed.subject import Subject
from vt.engine.launch import require_device
from vt.engine.run_record import describe_origin
from vt.engine.speed_settings import keep_freed_memory, require_compiler, use_threads
from vt.errors import UserError
from vt.ops.token_products import choose_token_library

from .outputs import check_output, write_json

# Environment variables that influence the speed of a CPU.
ENVIRONMENT = ('OMP_NUM_THREADS', 'GLIBC_TUNABLES', 'LD_PRELOAD', 'THP_MEM_ALLOC_ENABLE', 'ONEDNN_MAX_CPU_ISA')
ENVIRONMENT += ('ONEDNN_DEFAULT_FPMATH_MODE', 'OMP_WAIT_POLICY', 'GOMP_SPINCOUNT')


def benchmark(args: argparse.Namespace) -> None:
    """Measure all models interleaved, in every setting; print medians and ratios to the first model.

    Raises:
        UserError: at the end, if a model does not support a size.
    """
    check_output(args.out, *args.configs)
    settings = _read_settings(args)
    if any(setting.compile != 'off' for setting in settings):
        require_compiler()
    process = dict(threads=use_threads(), keeps_freed_memory=not args.default_allocator and keep_freed_memory())
    torch.backends.cudnn.benchmark = True  # as in the configs
    subjects = [
        subject for source in args.configs for subject in Subject(source, args.num_classes).with_tokens(args.tokens)
    ]
    comparison = Comparison(subjects, args.kinds, args.rounds, args.seconds, not args.no_memory, args.meter)
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
        write_json(asdict(record), args.out, follow=True)
    comparison.print_tables()
    if comparison.left_out:
        raise UserError('; '.join(comparison.left_out))


def _read_settings(args: argparse.Namespace) -> list[Setting]:
    """Return every combination of the values of the arguments.

    Raises:
        UserError: a wrong size, a device that does not exist, or TensorFloat-32 on a CPU.
    """
    devices = args.devices or ['cuda' if torch.cuda.is_available() else 'cpu']
    for device in devices:
        is_gpu = require_device(device).type == 'cuda'
        if not is_gpu and 'tf32' in (args.dtypes or ()):
            raise UserError(f'--dtypes tf32: {device} has no TensorFloat-32; give float32')
    states = [(device, dtype) for device in devices for dtype in args.dtypes or [default_dtype(device)]]
    sizes = [parse_size(size) for size in args.sizes]
    libraries = list(dict.fromkeys(map(choose_token_library, args.token_products)))
    how = args.memory_formats, args.compile, args.batch_sizes, sizes, [args.fuse_conv_bn], libraries
    return [Setting(*state, *values) for state, *values in product(states, *how)]
