"""Compare the cost of models in every setting: ``python -m projects.speed.compare CONFIG [CONFIG ...]``.

``tools/benchmark.py`` with parts of models, memory, more settings, and on request the machine's ceilings.
"""

import argparse
import os
from dataclasses import asdict
from itertools import product

import torch

from docs.reports.records import lay_out
from vt.cli.commands import add_measurement
from vt.cli.parser import CommandParser
from vt.commands.benchmarks import read_settings
from vt.engine.reporting import one_line_errors
from vt.engine.run.record import describe_origin
from vt.engine.run.speed_settings import keep_freed_memory, use_threads
from vt.errors import UserError
from vt.files import write_atomically
from vt.ops.token_products import choose_token_library
from vt.paths import check_output

from .comparison import Comparison
from .roofline import Roofline
from .settings import BenchmarkRecord, Setting
from .subject import Subject

# Environment variables that influence the speed of a CPU.
ENVIRONMENT = ('OMP_NUM_THREADS', 'GLIBC_TUNABLES', 'LD_PRELOAD', 'THP_MEM_ALLOC_ENABLE', 'ONEDNN_MAX_CPU_ISA')
ENVIRONMENT += ('ONEDNN_DEFAULT_FPMATH_MODE', 'OMP_WAIT_POLICY', 'GOMP_SPINCOUNT')


def compare(args: argparse.Namespace) -> None:
    """Measure all models interleaved, in every setting; print medians and ratios to the first model.

    Raises:
        UserError: at the end, if a model does not support a size.
    """
    check_output(args.out, *args.configs)
    settings = _read_settings(args)
    process = dict(threads=use_threads(), keeps_freed_memory=not args.default_allocator and keep_freed_memory())
    torch.backends.cudnn.benchmark = True  # as in the configs
    subjects = [
        subject for source in args.configs for subject in Subject(source, args.num_classes).with_tokens(args.tokens)
    ]
    meter = Roofline if args.ceilings else None
    comparison = Comparison(subjects, args.kinds, args.rounds, args.seconds, not args.no_memory, meter)
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
        write_atomically(args.out, lay_out(asdict(record)))
    comparison.print_tables()
    if comparison.left_out:
        raise UserError('; '.join(comparison.left_out))


def _read_settings(args: argparse.Namespace) -> list[Setting]:
    """Return every combination of the values of the arguments."""
    libraries = list(dict.fromkeys(map(choose_token_library, args.token_products)))
    how = args.memory_formats, args.compile, [args.fuse_conv_bn], libraries
    names = 'memory_format', 'compile', 'fuse_conv_bn', 'token_products'
    return [Setting(**asdict(base), **dict(zip(names, more))) for base, *more in product(read_settings(args), *how)]


def parse_args() -> argparse.Namespace:
    parser = CommandParser(
        'Compare the speed and memory of models in one interleaved run, relative to the first model.',
        'python -m projects.speed.compare configs/baselines/resnet18_8xb32-90e_in1k.py \\\n'
        '      configs/vt_resnet/vt-resnet18_8xb32-90e_in1k.py torchvision:resnet18 --batch-sizes 1 8',
    )
    add_measurement(
        parser, 'paths of configs, whose data are not read; or torchvision:MODEL, timm:MODEL, mmpretrain:MODEL'
    )
    what = parser.add_argument_group('what is measured')
    what.add_argument(
        '--only',
        nargs='+',
        choices=['whole', 'neck', 'backbone'],
        help='parts to time (default: the whole model, and the neck if all models have one)',
    )
    what.add_argument('--num-classes', type=int, help='number of classes of the head (default: as in the config)')
    what.add_argument('--tokens', type=int, nargs='+', default=[], help='numbers of tokens of VT models to compare')
    what.add_argument('--no-memory', action='store_true', help='do not measure peak memory, in one process per model')
    how = parser.add_argument_group('more settings')
    how.add_argument(
        '--memory-formats',
        nargs='+',
        choices=['channels_last', 'contiguous'],
        default=['channels_last'],
        help='memory format of weights and images (default: channels_last, as in tools/train.py)',
    )
    how.add_argument(
        '--compile',
        nargs='*',
        default=['off'],
        metavar='MODE',
        help="modes of torch.compile, of which reduce-overhead uses CUDA graphs; 'off' (without a mode: default)",
    )
    how.add_argument(
        '--token-products',
        nargs='+',
        choices=['auto', 'blas', 'onednn'],
        default=['auto'],
        help='library for products of tokens on a CPU (default: auto, the faster one, as in tools/train.py)',
    )
    how.add_argument('--fuse-conv-bn', action='store_true', help='fold normalisations into convolutions in inference')
    how.add_argument('--default-allocator', action='store_true', help='do not let glibc keep freed memory')
    how.add_argument('--ceilings', action='store_true', help="also measure the machine's peak rates")
    parser.add_common_options(config=False, checkpoint=False)
    args = parser.parse_args()
    args.compile = args.compile or ['default']
    return args


if __name__ == '__main__':
    arguments = parse_args()
    with one_line_errors('compare', arguments.traceback):
        compare(arguments)
