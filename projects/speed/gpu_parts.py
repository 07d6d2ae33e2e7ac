"""The parts of a GPU's report; in a dry run on a CPU each is tiny. N batch, C channels, H, W size, L tokens."""

import json
import os
import subprocess
import sys
import time
from functools import partial
from importlib.metadata import version
from itertools import islice, product
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import mmpretrain
import numpy as np
import torch
from mmengine.optim import build_optim_wrapper
from mmengine.runner import Runner

from vt import ops
from vt.analysis.speed import Step
from vt.engine.config.steps import read_config
from vt.engine.run.launch import draw_weights
from vt.engine.run.record import describe_origin
from vt.files import ROOT
from vt.ops.triton_path import BACKWARD

from .ceilings import CeilingMeter
from .data_loading import write_jpegs
from .gpu_models import add_models
from .gpu_rows import OURS, Row, Rows, time_cold
from .settings import KINDS
from .subject import Subject

SCENES = 'configs/vt_fpn/vt-fpn_r18_digit-scenes.py'
LOGGED = (1, 10, 50, 100, 150)  # iterations whose losses are compared

launch = segmentors = necks = resnets = graphs = survey = add_models


def environment(rows: Rows) -> None:
    """Device, versions, and whether float32 is computed in TensorFloat-32, as in runs."""

    def describe(row: Row) -> None:
        origin = describe_origin(rows.device)
        row |= dict(device=origin['device'], versions=origin['versions'] | dict(triton=version('triton')))
        rows.setting().choose_products()
        row['tf32'] = torch.backends.cudnn.allow_tf32
        if rows.device.type == 'cuda':
            query = '--query-gpu=driver_version,memory.total,clocks.max.sm,clocks.max.mem,power.limit'
            row['smi'] = subprocess.check_output(['nvidia-smi', query, '--format=csv,noheader'], text=True).strip()

    rows.add(describe)


def ceilings(rows: Rows) -> None:
    """FLOP/s of matrix product and convolutions, bytes/s of a copy."""

    def measure(row: Row) -> None:
        meter = CeilingMeter(rows.device, torch.bfloat16)
        times = {name: rows.time(step)['us'] / 1e6 for name, step in meter.steps.items()}
        row |= vars(meter.ceilings(times))

    rows.add(measure, dtype='bfloat16')


def paths(rows: Rows) -> None:
    """Tokenize and project on maps of 1024 channels by path, and the kernels by blocks of their backward passes."""

    def measure(row: Row) -> None:
        with ops.use_path(row['path']), patch.dict(BACKWARD, row.get('blocks', {})):
            step = operation_step(rows, row)
            row['eager'] = rows.time(step)
            if rows.device.type == 'cuda':
                row['gpu'] = time_cold(step)

    operations = ('tokenize', 'project_onto')
    sizes = [(1, 1024, 4, 4, 16)] if rows.dry else [(32, 1024, 14, 14, 16), (8, 1024, 50, 76, 16)]
    for size, operation, kind, path in product(sizes, operations, KINDS, ('plain', 'fused')):
        rows.add(measure, operation=operation, kind=kind, path=path, n_c_h_w_l=size)
    size, path = ((1, 256, 4, 4, 8), 'fused') if rows.dry else ((8, 256, 200, 304, 8), 'triton')
    for operation, block, warps, stages in product(operations, (16, 32), (4, 8), (2, 3)):
        blocks = dict(BLOCK_P=block, num_warps=warps, num_stages=stages)
        rows.add(measure, operation=operation, kind='training', path=path, n_c_h_w_l=size, blocks=blocks)


def operation_step(rows: Rows, row: Row) -> Step:
    """Return a step of an operation on a random map and random tokens."""
    *shape, num_tokens = row['n_c_h_w_l']
    n, c = shape[:2]
    tokens = [(num_tokens, c)] if row['operation'] == 'tokenize' else [(n, 1, num_tokens, c)] * 2
    leaves = [rows.setting().random(*shape), *(torch.randn(each, device=rows.device) / c**0.5 for each in tokens)]
    leaves = [leaf.to(torch.bfloat16).requires_grad_(row['kind'] == 'training') for leaf in leaves]
    forward = partial(getattr(ops, row['operation']), *leaves)
    gradient = forward().detach()
    return forward if row['kind'] == 'inference' else lambda: torch.autograd.grad(forward(), leaves, gradient)


def end_to_end(rows: Rows) -> None:
    """Trainings from JPEG files: ResNet-50 and VT-ResNet-50 by VT, ResNet-50 by MMPretrain's own tool and config."""
    ours, theirs = [sys.executable, 'tools/train.py', '--skip-data-check'], Path(mmpretrain.__path__[0], '.mim')
    config = theirs / 'configs/resnet/resnet50_8xb32_in1k.py'
    runs = {
        'ResNet-50, MMPretrain': [sys.executable, theirs / 'tools/train.py', config],
        'ResNet-50, VT': [*ours, 'configs/baselines/resnet50_8xb32-90e_in1k.py'],
        'VT-ResNet-50, VT': [*ours, 'configs/vt_resnet/vt-resnet50_8xb32-90e_in1k.py'],
    }
    batch, workers, iterations = (4, 1, 4) if rows.dry else (128, 14, 100)
    with TemporaryDirectory() as folder:
        write_images(Path(folder), batch * iterations)
        loader = [f'batch_size={batch}', f'num_workers={workers}', f'dataset.data_root={folder}']
        options = ['train_cfg.max_epochs=1', *(f'train_dataloader.{option}' for option in loader)]
        for name, command in runs.items():
            rows.add(partial(train, rows=rows, command=command, options=options), run=name, batch=batch)


def write_images(folder: Path, number: int) -> None:
    """Write JPEG files, and a list that names each of them several times, in the layout of ImageNet."""
    train, meta = folder / 'train', folder / 'meta'
    train.mkdir()
    meta.mkdir()
    write_jpegs(train, min(number, 256))
    names = [path.relative_to(train) for path in sorted(train.glob('*/*.jpg'))]
    lines = [f'{names[index % len(names)]} {index % 1000}' for index in range(number)]
    (meta / 'train.txt').write_text('\n'.join(lines))


def train(row: Row, rows: Rows, command: list, options: list[str]) -> None:
    """Train by a command; speed, loss and memory that it logged go to the row, and what it printed to the log."""
    amp = [] if rows.dry else ['optim_wrapper.dtype=bfloat16', '--amp']
    limit = ['timeout', '--kill-after=10', f'{max(1, rows.until - time.monotonic()):.0f}']  # ends its workers, too
    path = os.pathsep.join([str(ROOT), os.environ.get('PYTHONPATH', '')])
    variables = os.environ | dict(PYTHONPATH=path, PYTHON=sys.executable, SHUTDOWN_TIMEOUT='5')
    with TemporaryDirectory() as work_dir:
        options = [option.replace('TRACE', f'{work_dir}/trace.json') for option in options]
        options.append(f'default_hooks.logger.interval={2 if rows.dry else 10}')
        flags = ['--no-validate', '--work-dir', work_dir, '--cfg-options', *options, *amp]
        output = dict(stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        done = subprocess.run([*limit, *map(str, command), *flags], cwd=ROOT, env=variables, **output)
        rows.log(f'{row}\n{done.stdout[-4000:]}')
        done.check_returncode()
        (file,) = Path(work_dir).glob('**/scalars.json')
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        traces = [trace.read_text() for trace in Path(work_dir).glob('trace.json')]
    later = lines[len(lines) // 2 :]  # in the first iterations cuDNN chooses its kernels
    seconds, waiting = (np.mean([line[name] for line in later]) for name in ('time', 'data_time'))
    row |= dict(rate=row['batch'] / seconds, waiting=waiting / seconds, loss=dict(last=lines[-1]['loss']))
    row['memory'] = 2**20 * lines[-1].get('memory', 0)
    if traces:
        row['kernels'] = dict(ours=', '.join(name for name in OURS if name in traces[0]) or 'none')


def losses(rows: Rows) -> None:
    """VT-FPN on the digit scenes in three precisions: same weights, same batches, constant learning rate."""

    def measure(row: Row) -> None:
        setting = rows.setting(dtype=row['dtype'])
        setting.choose_products()
        torch.manual_seed(0)
        cfg, model = read_config(str(ROOT / SCENES)), Subject(str(ROOT / SCENES)).build(setting)
        draw_weights(model)
        wrapper = build_optim_wrapper(model.train(), cfg.optim_wrapper)
        loader, found = Runner.build_dataloader(cfg.train_dataloader, seed=0), []
        for batch in islice(loader, 2 if rows.dry else max(LOGGED)):
            data = model.data_preprocessor(batch, True)
            loss, _ = model.parse_losses(setting.forward(model)(**data, mode='loss'))
            wrapper.update_params(loss)
            found.append(loss.item())
        row['loss'] = {f'after_{step}': found[step - 1] for step in LOGGED if step <= len(found)}

    for dtype in ('bfloat16', 'tf32', 'float32'):
        rows.add(measure, dtype=dtype)


def fsdp(rows: Rows) -> None:
    """A training that FSDP2 shards over one process: loss, memory, and the Triton kernels in a profile of it."""
    profiler = dict(type='ProfilerHook', by_epoch=False, profile_times=3, json_trace_path='TRACE')
    profiler['activity_with_cuda'] = not rows.dry
    options = [f'train_cfg.max_iters={4 if rows.dry else 30}', 'fsdp.shard_over=1', f'custom_hooks=[{profiler}]']
    command = ['bash', 'tools/dist_train.sh', SCENES, 1, '--skip-data-check']
    rows.add(partial(train, rows=rows, command=command, options=options), run='VT-FPN', batch=8)
