"""Measure products of tokens and matrices with each library: ``python -m projects.speed.products``."""

import argparse
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import conv2d, linear

from docs.reports.records import write_measured
from vt.analysis.speed import Step, time_interleaved
from vt.analysis.tables import print_table
from vt.cli.parser import CommandParser
from vt.engine.reporting import one_line_errors
from vt.engine.run.speed_settings import keep_freed_memory, use_threads
from vt.ops.maps import to_pixels
from vt.ops.token_products import SPEEDUP, TRIAL, choose_token_library, multiply, onednn_speedup
from vt.paths import check_output

# M rows of tokens, K channels in, N channels out: one image's tokens, batches of them, and what fills a processor.
SIZES = [
    (16, 256, 256),
    (16, 512, 512),
    (16, 1024, 1024),
    (128, 512, 512),
    (128, 1024, 1024),
    (512, 1024, 1024),
    (1024, 1024, 1024),
    (2048, 2048, 2048),
    (4096, 4096, 4096),
]

MAPS = [(200, 304), (100, 152), (50, 76), (25, 38)]  # of VT-FPN at 800x1216: H and W
CHANNELS, TOKENS = 256, 8


def time_products(sizes: Iterable[tuple[int, int, int]] = SIZES, seconds: float = 4) -> dict[str, Any]:
    """The trial that chooses a library, and a row for each size and kind.

    Args:
        sizes: M, K and N.
        seconds: at most about this long a size and kind.

    Returns:
        ``trial``: its size, how many times as fast oneDNN was, from which lead on it is chosen, the seconds that it
        took, and what was chosen; ``products``: GFLOP/s of each library; that of oneDNN is the
        BLAS's where a product is too small for oneDNN.
    """
    onednn_speedup()  # what is loaded and made once is there
    begin = time.perf_counter()
    lead = onednn_speedup()
    trial = dict(size=TRIAL, lead=lead, chosen_from=SPEEDUP, seconds=time.perf_counter() - begin)
    products = [_time(size, kind, seconds) for size in sizes for kind in ('inference', 'training')]
    return dict(trial=trial | dict(chosen=choose_token_library('auto')), products=products)


def _time(size: tuple[int, int, int], kind: str, seconds: float) -> dict[str, Any]:
    rows, inputs, outputs = size
    training = kind == 'training'
    x = torch.randn(rows, inputs, requires_grad=training)
    weight = torch.randn(outputs, inputs, requires_grad=training)
    gradient = torch.randn(rows, outputs)

    def step(product: Callable[..., Tensor]) -> Step:
        def run() -> None:
            y = product(x, weight)
            if training:
                torch.autograd.grad(y, (x, weight), gradient)

        return run

    steps = {'blas': step(linear), 'onednn': step(multiply)}
    times = time_interleaved(steps, torch.device('cpu'), f'{size}, {kind}', rounds=15, seconds=seconds)
    work = 2 * rows * inputs * outputs * (3 if training else 1)
    rates = {library: work / float(np.median(found)) / 1e9 for library, found in times.items()}
    return dict(size=size, kind=kind, **rates)


def time_pixel_products(sizes: Iterable[tuple[int, int]] = MAPS, seconds: float = 4) -> list[dict[str, Any]]:
    """Where the pixels of a map meet a few tokens, in channels_last and in inference: a row for each size, in seconds.

    Args:
        sizes: H and W of maps.
        seconds: at most about this long a size.

    Returns:
        ``logits``: of each pixel and token by the BLAS, as VT computes them; ``convolution``: the same by a 1x1
        convolution; ``sums`` over the pixels; ``onto``: what is read back, added to the map; ``read``: the map, once.
    """
    device = torch.device('cpu')
    rows = []
    for size in sizes:
        times = time_interleaved(_pixel_steps(*size), device, f'{size} pixels', rounds=40, seconds=seconds)
        rows.append(dict(size=size) | {name: float(np.median(found)) for name, found in times.items()})
    return rows


def _pixel_steps(height: int, width: int) -> dict[str, Step]:
    x = torch.randn(1, CHANNELS, height, width).contiguous(memory_format=torch.channels_last)
    pixels, tokens = to_pixels(x), torch.randn(1, TOKENS, CHANNELS)
    weights = torch.randn(1, TOKENS, height * width).softmax(dim=2)
    chunks = next(number for number in range(16, 0, -1) if height * width % number == 0)
    parts = pixels.unflatten(1, (chunks, -1))
    shares = weights.unflatten(2, (chunks, -1)).transpose(1, 2)
    return dict(
        logits=lambda: pixels @ tokens.transpose(1, 2),
        convolution=lambda: conv2d(x, tokens.reshape(TOKENS, CHANNELS, 1, 1)),
        sums=lambda: (shares @ parts).sum(1),
        onto=lambda: pixels.baddbmm_(weights.transpose(1, 2), tokens),
        read=lambda: pixels.sum(),
    )


def main(args: argparse.Namespace) -> None:
    """Time products of tokens and matrices, and of pixels, by each library; print rates and the choice, write them."""
    check_output(args.out)
    use_threads()
    keep_freed_memory()
    found = time_products([size for size in SIZES if max(size) <= args.largest], args.seconds)
    pixels = time_pixel_products([size for size in MAPS if max(size) <= args.largest], args.seconds)
    trial = found['trial']
    size = 'x'.join(map(str, trial['size']))
    print_table(
        [
            {'rows x in x out': 'x'.join(map(str, row['size'])), 'kind': row['kind']}
            | {f'{library} (GFLOP/s)': f'{row[library]:.0f}' for library in ('blas', 'onednn')}
            for row in found['products']
        ],
        f'oneDNN is {trial["lead"]:.2f}x as fast in {size}, found in {1e3 * trial["seconds"]:.0f} ms: '
        f'{trial["chosen"]} is chosen (oneDNN from {trial["chosen_from"]}x on)',
    )
    print_table(
        [
            {'pixels': 'x'.join(map(str, row['size']))}
            | {f'{name} (ms)': f'{1000 * row[name]:.3g}' for name in row if name != 'size'}
            for row in pixels
        ],
        'Pixels of 256 channels and 8 tokens',
    )
    write_measured(args.out, **found, pixels=pixels)


def parse_args() -> argparse.Namespace:
    parser = CommandParser(
        "Measure products of tokens, matrices and pixels with PyTorch's BLAS and oneDNN, and show which is chosen.",
        'python -m projects.speed.products --largest 1024',
    )
    parser.add_argument('--seconds', type=float, default=4, help='time limit per row, about (default: 4)')
    parser.add_argument(
        '--largest', type=int, default=4096, help='largest number of rows, channels or pixels per side (default: 4096)'
    )
    parser.add_argument('--out', help='JSON file for the measurements')
    parser.add_common_options(config=False, checkpoint=False)
    return parser.parse_args()


if __name__ == '__main__':
    args = parse_args()
    with one_line_errors('products', args.traceback):
        main(args)
