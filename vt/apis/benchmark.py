"""Models side by side, as ``tools/benchmark.py`` asks."""

import argparse
import shlex
import sys
from pathlib import Path

import mmengine
import numpy as np
import torch
from mmengine.registry import MODELS, init_default_scope
from mmpretrain.structures import DataSample
from torch import nn

from vt.analysis.benchmark import inference_step, training_step
from vt.analysis.complexity import count_complexity
from vt.analysis.report import print_table
from vt.analysis.speed import describe_device, time_interleaved
from vt.engine.command_line import read_config


def benchmark(args: argparse.Namespace) -> None:
    """Time inference and training steps of all models in turn; print medians and the ratios to the first model."""
    device = torch.device(args.device or ('cuda' if torch.cuda.is_available() else 'cpu'))
    memory_format = torch.channels_last if args.channels_last else torch.contiguous_format
    models = {Path(path).stem: _build(path).to(device=device, memory_format=memory_format) for path in args.configs}
    height, width = (args.size * 2)[:2]
    images = torch.randn(args.batch_size, 3, height, width, device=device).contiguous(memory_format=memory_format)
    samples = [DataSample().set_gt_label(0).to(device) for _ in range(args.batch_size)]

    costs = {name: count_complexity(model, images[:1], mode='tensor') for name, model in models.items()}
    steps = {name: inference_step(model, images) for name, model in models.items()}
    inference = time_interleaved(steps, device, 'Inference', args.rounds, seconds=240)
    steps = {name: training_step(model, images, samples) for name, model in models.items()}
    training = time_interleaved(steps, device, 'Training', args.rounds, seconds=240)

    record = dict(
        command=shlex.join(['python', *sys.argv]),
        device=describe_device(device),
        torch=torch.__version__,
        batch_size=args.batch_size,
        image_size=[height, width],
        memory_format='channels_last' if args.channels_last else 'contiguous',
        dtype='float32',
        models={
            name: dict(
                flops=cost.flops,
                parameters=cost.parameters,
                inference_seconds=inference[name].tolist(),
                training_seconds=training[name].tolist(),
            )
            for name, cost in costs.items()
        },
    )
    if args.out:
        mmengine.dump(record, args.out, indent=2)
    title = f'{record["device"]}, batch {args.batch_size}, {height}x{width}, {record["memory_format"]}'
    print_table(describe_comparison(record), title=title)


def describe_comparison(record: dict) -> list[dict[str, str]]:
    """A row a model: cost, images a second from the median step, and both as ratios to the first model."""
    rows = []
    reference = next(iter(record['models'].values()))
    for name, model in record['models'].items():
        row = {'model': name, 'FLOPs (G)': f'{model["flops"] / 1e9:.3f}'}
        row['fewer'] = f'{reference["flops"] / model["flops"]:.3f}x'
        row['parameters (M)'] = f'{model["parameters"] / 1e6:.2f}'
        for kind in ('inference', 'training'):
            median, base = (np.median(entry[f'{kind}_seconds']) for entry in (model, reference))
            row[f'{kind} (images/s)'] = f'{record["batch_size"] / median:.1f}'
            row[f'faster in {kind}'] = f'{base / median:.3f}x'
        rows.append(row)
    return rows


def _build(path: str) -> nn.Module:
    """The model of a config with arbitrary weights, which cost what trained ones do."""
    cfg = read_config(path)
    init_default_scope(cfg.get('default_scope', 'mmpretrain'))
    return MODELS.build(cfg.model)
