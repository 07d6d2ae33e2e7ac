"""Models side by side, as ``tools/benchmark.py`` asks."""

import argparse
import os
import shlex
import sys
from pathlib import Path

import mmengine
import numpy as np
import torch
from mmengine.structures import PixelData
from mmpretrain.structures import DataSample
from mmseg.structures import SegDataSample
from torch import Tensor, nn

from vt.analysis.benchmark import has_neck, inference_step, neck_inputs, neck_training_step, training_step
from vt.analysis.complexity import count_complexity
from vt.analysis.complexity_tables import set_num_classes
from vt.analysis.report import print_table
from vt.analysis.speed import describe_device, time_by_operator, time_interleaved
from vt.engine.command_line import read_config
from vt.engine.launch import build_model

ENVIRONMENT = ('OMP_NUM_THREADS', 'GLIBC_TUNABLES')  # what changes the time of a CPU


def benchmark(args: argparse.Namespace) -> None:
    """Time all models in turn, then their necks alone; print medians and the ratios to the first model."""
    device = torch.device(args.device or ('cuda' if torch.cuda.is_available() else 'cpu'))
    memory_format = torch.channels_last if args.channels_last else torch.contiguous_format
    models = {}
    for path in args.configs:
        cfg = read_config(path)
        if args.num_classes:
            set_num_classes(cfg, args.num_classes)
        models[Path(path).stem] = build_model(cfg).to(device=device, memory_format=memory_format)
    height, width = (args.size * 2)[:2]
    images = torch.randn(args.batch_size, 3, height, width, device=device).contiguous(memory_format=memory_format)
    record = dict(
        command=shlex.join(['python', *sys.argv]),
        environment={name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
        device=describe_device(device),
        torch=torch.__version__,
        batch_size=args.batch_size,
        image_size=[height, width],
        memory_format='channels_last' if args.channels_last else 'contiguous',
        dtype='float32',
        models=_measure_models(models, images, args.rounds),
    )
    if all(has_neck(model) for model in models.values()):
        record['necks'] = _measure_necks(models, images, args.rounds, args.profile)
    if args.out:
        mmengine.dump(record, args.out, indent=2)
    for part in ('models', 'necks'):
        if part in record:
            title = f'{part}: {record["device"]}, batch {args.batch_size}, {height}x{width}, {record["memory_format"]}'
            print_table(describe_comparison(record[part], args.batch_size), title=title)
    for name, neck in record.get('necks', {}).items() if args.profile else ():
        for kind, seconds in neck['seconds_by_operator'].items():
            print_table(_describe_operators(seconds), title=f'{name}, neck, {kind}: where the time goes')


def _measure_models(models: dict[str, nn.Module], images: Tensor, rounds: int) -> dict[str, dict]:
    costs = {name: count_complexity(model, images[:1], mode='tensor') for name, model in models.items()}
    inference = {name: inference_step(model, images, mode='tensor') for name, model in models.items()}
    inference = time_interleaved(inference, images.device, 'Inference', rounds, seconds=240)
    training = {name: training_step(model, images, _samples(model, images)) for name, model in models.items()}
    training = time_interleaved(training, images.device, 'Training', rounds, seconds=240)
    return _join(costs, inference, training)


def _measure_necks(models: dict[str, nn.Module], images: Tensor, rounds: int, profile: bool) -> dict[str, dict]:
    device = images.device
    maps = {name: neck_inputs(model, images) for name, model in models.items()}
    costs = {name: count_complexity(model.neck, tuple(x[:1] for x in maps[name])) for name, model in models.items()}
    seconds, operators = {}, {}
    for kind, make_step in (('inference', inference_step), ('training', neck_training_step)):
        steps = {name: make_step(model.neck, maps[name]) for name, model in models.items()}
        seconds[kind] = time_interleaved(steps, device, f'{kind.capitalize()}, necks', rounds, seconds=240)
        operators[kind] = {name: time_by_operator(step, device) for name, step in steps.items()} if profile else {}
    record = _join(costs, **seconds)
    if profile:
        for name in record:
            record[name]['seconds_by_operator'] = {kind: operators[kind][name] for kind in operators}
    return record


def _join(costs: dict, inference: dict[str, np.ndarray], training: dict[str, np.ndarray]) -> dict[str, dict]:
    return {
        name: dict(
            flops=cost.flops,
            parameters=cost.parameters,
            inference_seconds=inference[name].tolist(),
            training_seconds=training[name].tolist(),
        )
        for name, cost in costs.items()
    }


def describe_comparison(models: dict[str, dict], batch_size: int) -> list[dict[str, str]]:
    """A row a model: cost, images a second from the median step, and both as ratios to the first model."""
    rows = []
    reference = next(iter(models.values()))
    for name, model in models.items():
        row = {'model': name, 'FLOPs (G)': f'{model["flops"] / 1e9:.3f}'}
        row['fewer'] = f'{reference["flops"] / model["flops"]:.3f}x'
        row['parameters (M)'] = f'{model["parameters"] / 1e6:.2f}'
        for kind in ('inference', 'training'):
            median, base = (np.median(entry[f'{kind}_seconds']) for entry in (model, reference))
            row[f'{kind} (images/s)'] = f'{batch_size / median:.{1 if batch_size / median > 10 else 3}f}'
            row[f'faster in {kind}'] = f'{base / median:.3f}x'
        rows.append(row)
    return rows


def _describe_operators(seconds: dict[str, float]) -> list[dict[str, str]]:
    whole = sum(seconds.values())
    return [
        {'operator': name, 'ms': f'{1e3 * value:.1f}', 'share (%)': f'{100 * value / whole:.0f}'}
        for name, value in seconds.items()
    ]


def _samples(model: nn.Module, images: Tensor) -> list:
    """What the loss compares with: a class for each image, or for each of its pixels."""
    if not hasattr(model, 'decode_head'):
        return [DataSample().set_gt_label(0).to(images.device) for _ in images]
    labels = torch.zeros(1, *images.shape[-2:], dtype=torch.long, device=images.device)
    return [SegDataSample(gt_sem_seg=PixelData(data=labels)) for _ in images]
