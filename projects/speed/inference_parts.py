"""Measure the parts of predicting JPEG files: ``python -m projects.speed.inference_parts CONFIG ... --out FILE``.

Models have random weights.
"""

import argparse
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmengine.dataset import pseudo_collate

from docs.reports.records import write_measured
from vt import apis
from vt.analysis.speed import time_interleaved
from vt.analysis.tables import print_table
from vt.cli.parser import CommandParser
from vt.engine.reporting import one_line_errors
from vt.engine.run.speed_settings import keep_freed_memory, use_threads
from vt.paths import check_output

from .data_loading import write_jpegs

WHOLE = 'all, by vt.apis'


def make_parts(config: str, files: list[str], batch_size: int) -> dict[str, Callable[[], object]]:
    """Functions that compute one part each for all files, by its name, and one that computes everything.

    A part has the results of the parts before it: a step of the pipeline its samples, the network its batches.
    """
    inferencer = apis.inferencer_of(config, None)
    inferencer.model.init_weights()
    parts: dict[str, Callable[[], object]] = {}
    samples: list[dict[str, Any]] = [dict(img_path=file) for file in files]
    for step in (inferencer.pipeline.load, *inferencer.pipeline.rest.transforms):
        compute = partial(_apply, step, samples)
        parts[type(step).__name__] = compute
        samples = compute()
    batches = [pseudo_collate(samples[start : start + batch_size]) for start in range(0, len(samples), batch_size)]
    parts['network'] = lambda: [inferencer.forward(batch) for batch in batches]
    parts[WHOLE] = lambda: inferencer(files, batch_size=batch_size)
    return parts


def _apply(step: Callable[[dict], dict], samples: list[dict]) -> list[dict]:
    return [step(dict(sample)) for sample in samples]


def main(args: argparse.Namespace) -> None:
    """Time the parts in turn; print medians and shares, write every run."""
    check_output(args.out)
    use_threads()
    keep_freed_memory()
    with tempfile.TemporaryDirectory() as folder:
        write_jpegs(Path(folder), args.images)
        files = sorted(map(str, Path(folder).rglob('*.jpg')))
        rows = []
        for config in args.models:
            parts = make_parts(config, files, args.batch_size)
            times = time_interleaved(parts, torch.device('cpu'), config, args.rounds, warmup=1, seconds=1e9)
            medians = {name: float(np.median(runs)) for name, runs in times.items()}
            rows += [
                {
                    'model': config,
                    'part': name,
                    'ms an image': 1e3 * medians[name] / len(files),
                    'percent': f'{100 * medians[name] / medians[WHOLE]:.0f}',
                    'runs': runs.tolist(),
                }
                for name, runs in times.items()
            ]
    table = [
        {key: f'{row[key]:.3f}' if key == 'ms an image' else row[key] for key in row if key != 'runs'} for row in rows
    ]
    print_table(table, 'Parts of inference from files')
    settings = dict(images=f'{len(files)} synthetic, 500x375', batch_size=args.batch_size)
    write_measured(args.out, **settings, results=rows)


def parse_args() -> argparse.Namespace:
    parser = CommandParser(
        'Measure decoding, each transform and the network of predictions from JPEG files.',
        'python -m projects.speed.inference_parts resnet18_8xb32-90e_in1k deit-small_16xb64-300e_in1k',
    )
    parser.add_argument('models', nargs='+', metavar='CONFIG', help='names of models')
    parser.add_argument('--images', type=int, default=200, help='number of generated JPEG files (default: 200)')
    parser.add_argument('--batch-size', type=int, default=8, help='images per batch (default: 8)')
    parser.add_argument('--rounds', type=int, default=9, help='number of interleaved rounds (default: 9)')
    parser.add_argument('--out', help='JSON file for the measurements')
    parser.add_common_options(config=False, checkpoint=False)
    return parser.parse_args()


if __name__ == '__main__':
    args = parse_args()
    with one_line_errors('inference_parts', args.traceback):
        main(args)
