"""The parts of a GPU's report, from the kernels' errors to whole trainings; in a dry run on a CPU each is tiny.

Letters: N batch, P pixels, C channels, H and W map size, L tokens.
"""

import functools
import gc
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor, nn

from vt import ops
from vt.analysis.speed import run_seconds, synchronize
from vt.engine.cuda_graphs import capture
from vt.engine.reporting import in_one_line
from vt.engine.run_record import describe_origin
from vt.files import PACKAGE, ROOT, read_json, write_atomically

from . import sdpa
from .ceilings import CeilingMeter
from .gpu_timing import list_kernels, time_cold, time_launch, time_row
from .settings import KINDS, Setting
from .subject import Subject
from .workload import Workload

Row = dict[str, Any]
DTYPE = 'bfloat16'  # of all that is timed: by autocast in models
RECORDED = ('config', 'length', 'metrics', 'seconds', 'data_seconds', 'iterations', 'batch_size')  # of a training
STOPPED = 'stopped: no time was left'
# How many times an operation must read or write its map, in inference and in training.
MAPS_MOVED = dict(tokenize=(1, 3), project_onto=(2, 5))


@dataclass(frozen=True)
class Rows:
    """The rows of one part, sent one by one as they come.

    Attributes:
        send: takes a row.
        until: of ``time.monotonic``; a row that would begin later is skipped.
        device: what is measured.
        dry: in the smallest sizes.
        folder: for records of trainings.
    """

    send: Callable[[Row], object]
    until: float
    device: torch.device
    dry: bool
    folder: Path

    def add(self, measure: Callable[[Row], object], **row: Any) -> None:
        """Let ``measure`` add to a row; what it raises is the row's error, and its traceback goes to the log."""
        begin = time.monotonic()
        if begin > self.until:
            self.send(row | dict(skipped='no time was left'))
            return
        try:
            measure(row)
        except Exception as error:
            row |= dict(error=in_one_line(error)[:300], log=traceback.format_exc())
        self.send(row | dict(row_seconds=round(time.monotonic() - begin, 2)))
        gc.collect()
        synchronize(self.device)  # raises where the GPU is of no more use to this process
        torch.cuda.empty_cache()

    def setting(self, **values: Any) -> Setting:
        """How models run."""
        return Setting(**dict(device=self.device.type, dtype=DTYPE) | values)

    @property
    def seconds(self) -> float:
        """About how long one time takes to find."""
        return 0.02 if self.dry else 0.4


def environment(rows: Rows) -> None:
    """Device, versions, and whether float32 is computed in TensorFloat-32, as in runs."""

    def describe(row: Row) -> None:
        origin = describe_origin(rows.device)
        triton = dict(triton=version('triton')) if find_spec('triton') else {}
        row |= dict(device=origin['device'], versions=origin['versions'] | triton)
        rows.setting().choose_products()
        row |= dict(float32_products=torch.get_float32_matmul_precision(), tf32=torch.backends.cudnn.allow_tf32)
        if rows.device.type == 'cuda':
            query = '--query-gpu=driver_version,memory.total,clocks.max.sm,clocks.max.mem,power.limit'
            row['smi'] = subprocess.check_output(['nvidia-smi', query, '--format=csv,noheader'], text=True).strip()

    rows.add(describe)


def ceilings(rows: Rows) -> None:
    """FLOP/s of matrix product and convolutions, bytes/s of a copy."""

    def measure(row: Row) -> None:
        setting = rows.setting(dtype=row['dtype'])
        setting.choose_products()
        meter = CeilingMeter(rows.device, setting.tensor_dtype)
        times = {name: time_row(step, rows.device, rows.seconds)['us'] / 1e6 for name, step in meter.steps.items()}
        row |= vars(meter.ceilings(times))

    for dtype in (DTYPE, 'tf32'):
        rows.add(measure, dtype=dtype)


def kernels(rows: Rows) -> None:
    """Value and gradients against the equations in float64, by norm and worst element; twice, for exact repeats."""
    sizes = [(1, 70, 64, 8)] if rows.dry else [(1, 60800, 256, 8), (8, 15200, 256, 8), (1, 950, 256, 8)]
    sizes += [] if rows.dry else [(3, 197, 256, 16), (1, 2, 256, 8), (300, 196, 256, 16), (2, 4099, 128, 32)]
    cases = [('bfloat16', size) for size in sizes] + [('float16', size) for size in sizes[:2]]

    def measure(row: Row) -> None:
        n, p, c, num_tokens = row['n_p_c_l']
        torch.manual_seed(0)
        x = torch.randn(n, p, c, device=rows.device).relu().to(getattr(torch, row['dtype']))
        tensors = operands(row['operation'], x, num_tokens)
        ours, again = (with_gradients(row['operation'], row['path'], tensors) for _ in range(2))
        exact = with_gradients(row['operation'], 'plain', [tensor.double() for tensor in tensors])
        off = {name: ours[name].double() - exact[name] for name in exact}
        row['norm'] = {name: (off[name].norm() / exact[name].norm()).item() for name in exact}
        row['worst'] = {name: (off[name].abs().max() / exact[name].abs().max()).item() for name in exact}
        row['repeats'] = all(torch.equal(ours[name], again[name]) for name in exact)

    for (dtype, size), operation, path in product(cases, MAPS_MOVED, ('fused',) if rows.dry else ('triton', 'fused')):
        rows.add(measure, operation=operation, path=path, dtype=dtype, n_p_c_l=size)


def operands(operation: str, x: Tensor, num_tokens: int) -> list[Tensor]:
    """A map or its pixels, and random tokens of about the pixels' size: queries, or keys and values."""
    n, c = x.shape[0], x.shape[1 if x.dim() == 4 else 2]
    shapes = [(num_tokens, c)] if operation == 'tokenize' else [(n, 1, num_tokens, c)] * 2
    return [x, *(torch.randn(shape, device=x.device).mul(c**-0.5).to(x) for shape in shapes)]


def with_gradients(operation: str, path: str, tensors: Sequence[Tensor]) -> dict[str, Tensor]:
    """An operation's value on a path, and the gradient of each operand; the same direction at every call."""
    leaves = [tensor.detach().requires_grad_() for tensor in tensors]
    with ops.use_path(path):
        value = getattr(ops, operation)(*leaves)
        torch.manual_seed(1)
        gradients = torch.autograd.grad(value, leaves, torch.randn(value.shape, device=value.device).to(value))
    names = ('value', 'pixels', *(('queries',) if operation == 'tokenize' else ('keys', 'values')))
    return dict(zip(names, (value.detach(), *gradients), strict=True))


def paths(rows: Rows) -> None:
    """Tokenize and project on each path: launch, in a row, and the GPU alone with a cold L2; bytes moved a second."""
    maps = [(1, 256, 200, 304, 8), (8, 256, 200, 304, 8), (8, 256, 25, 38, 8), (32, 256, 14, 14, 16)]
    maps = [(1, 256, 4, 4, 8)] if rows.dry else [*maps, (256, 256, 14, 14, 16)]

    def measure(row: Row) -> None:
        *shape, num_tokens = row['n_c_h_w_l']
        x = torch.randn(shape, device=rows.device, dtype=torch.bfloat16).to(memory_format=torch.channels_last)
        trains = row['kind'] == 'training'
        tensors = [tensor.requires_grad_(trains) for tensor in operands(row['operation'], x, num_tokens)]

        def step() -> None:
            with ops.use_path(row['path']):
                value = getattr(ops, row['operation'])(*tensors)
            if trains:
                torch.autograd.grad(value, tensors, value.detach())

        row |= dict(eager=time_row(step, rows.device, rows.seconds / 3), launch_us=time_launch(step, rows.device))
        if rows.device.type == 'cuda':
            row['gpu'] = time_cold(step)
            row['bytes_per_second'] = x.nbytes * MAPS_MOVED[row['operation']][trains] / row['gpu']['us'] * 1e6

    every = (*(() if rows.dry else ('triton',)), 'fused', sdpa.NAME, 'plain')
    for size, operation, kind, path in product(maps, MAPS_MOVED, KINDS, every):
        rows.add(measure, operation=operation, kind=kind, path=path, n_c_h_w_l=size)


def necks(rows: Rows) -> None:
    """FPN and VT-FPN alone."""
    add_models(rows, neck_sources(rows), 'neck', (1,) if rows.dry else (1, 8, 32))


def resnets(rows: Rows) -> None:
    """ResNets, VT's and torchvision's."""
    for depth in (18, 50):
        sources = [f'configs/{name}{depth}_8xb32-90e_in1k.py' for name in ('baselines/resnet', 'vt_resnet/vt-resnet')]
        add_models(rows, [*sources, f'torchvision:resnet{depth}'], 'whole', (2,) if rows.dry else (32, 256))


def neck_sources(rows: Rows) -> list[str]:
    """Configs with FPN and VT-FPN."""
    recipe = 'r18_digit-scenes' if rows.dry else 'r50_4xb8-90k_coco-stuff164k-800x1216'
    return [f'configs/{name}_{recipe}.py' for name in ('baselines/fpn', 'vt_fpn/vt-fpn')]


def add_models(rows: Rows, sources: Sequence[str], part: str, batches: Sequence[int], **how: Any) -> None:
    """A row for each batch, kind and model: the step in a row, its launch, its kernels, and as a CUDA graph."""
    small, large = ((64, 96), (800, 1216)) if part == 'neck' else ((32, 32), (224, 224))
    build = functools.cache(lambda source: build_model(rows, source))

    def measure(row: Row) -> None:
        setting = rows.setting(batch_size=row['batch'], size=small if rows.dry else large, **how)
        setting.choose_products()
        step = Workload(build(row['model']), part, setting).step(row['kind'])
        row['first_seconds'] = run_seconds(step, 1, rows.device)
        row['eager'] = time_row(step, rows.device, rows.seconds)
        row['launch_us'] = time_launch(step, rows.device)
        row['kernels'] = list_kernels(step, rows.device)
        if rows.device.type == 'cuda' and setting.compile == 'off':  # the compiler makes graphs of its own
            replay, _ = capture(step)
            row['graph'] = time_row(replay, rows.device, rows.seconds)

    for batch, kind, source in product(batches, KINDS, sources):
        rows.add(measure, model=source, kind=kind, batch=batch, dtype=DTYPE, **how)


def build_model(rows: Rows, source: str) -> nn.Module:
    """A model by the path of its config from the root, or a peer."""
    return Subject(source if ':' in source else str(ROOT / source)).build(rows.setting())


def compiled(rows: Rows) -> None:
    """The necks by ``torch.compile``: into how many graphs they fall, and what a step of VT-FPN costs then."""

    def count(row: Row) -> None:
        setting = rows.setting(batch_size=1, size=(64, 96) if rows.dry else (800, 1216))
        workload = Workload(build_model(rows, row['model']), 'neck', setting)
        row['graphs'], row['break'] = count_graphs(workload, row['kind'])

    for source, kind in product(neck_sources(rows), KINDS):
        rows.add(count, model=source, kind=kind)
    for mode in () if rows.dry else ('default', 'reduce-overhead'):  # a CPU would take a minute
        add_models(rows, neck_sources(rows)[1:], 'neck', (8,), compile=mode)


def count_graphs(workload: Workload, kind: str) -> tuple[int, str]:
    """Graphs that a module falls into when it is compiled, and why, if into several."""
    seen = []

    def backend(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Callable:
        seen.append(graph)
        return graph.forward

    def run(**options: Any) -> None:
        torch.compiler.reset()
        with workload.setting.autocast(), torch.set_grad_enabled(kind == 'training'):
            torch.compile(workload.module.train(kind == 'training'), backend=backend, **options)(workload.inputs)

    run()
    count, reason = len(seen), ''
    if count > 1:
        try:
            run(fullgraph=True)
        except Exception as error:
            reason = in_one_line(error)[:300]
    return count, reason


def trainings(rows: Rows) -> None:
    """Whole trainings by the command line, each with its record."""
    digits, scenes = 'configs/vt_resnet/vt-resnet18_digits.py', 'configs/vt_fpn/vt-fpn_r18_digit-scenes.py'
    if rows.dry:
        epochs = ['train_cfg.max_epochs=1', *(f'{name}_dataloader.dataset.indices=32' for name in ('train', 'val'))]
        iterations = ['train_cfg.max_iters=2', 'train_cfg.val_interval=2', 'val_dataloader.dataset.indices=8']
        runs = dict(digits_bf16=(digits, epochs), scenes_bf16=(scenes, iterations))
    else:
        epochs, iterations = ['train_cfg.max_epochs=4'], ['train_cfg.max_iters=200', 'train_cfg.val_interval=200']
        bf16, fp16 = ([f'optim_wrapper.dtype={dtype}'] for dtype in ('bfloat16', 'float16'))
        runs = dict(digits_bf16=(digits, epochs + bf16), digits_fp16=(digits, epochs + fp16))
        runs |= dict(digits_nccl=(digits, epochs + bf16), scenes_bf16=(scenes, iterations + bf16))
    for name, (config, options) in runs.items():
        rows.add(functools.partial(train, rows=rows, config=config, options=options), run=name)


def train(row: Row, rows: Rows, config: str, options: list[str]) -> None:
    """Train by the command line while there is time; the record goes to the folder, and some of it to the row."""
    launch = [sys.executable, 'tools/train.py', config]
    if row['run'] == 'digits_nccl':
        launch = ['bash', 'tools/dist_train.sh', config, '1']
    with TemporaryDirectory() as work_dir:
        command = [*launch, '--amp', '--skip-data-check', '--work-dir', work_dir, '--cfg-options', *options]
        row['log'] = run_until(command, rows.until)
        if row['log'] == STOPPED:
            row['skipped'] = row.pop('log')
            return
        record = read_json(Path(work_dir, 'training.json'), 'the log has what the training printed')
    del record['command']  # with a folder that is gone
    write_atomically(rows.folder / f'training-{row["run"]}.json', json.dumps(record, indent=1))
    row |= {key: record[key] for key in RECORDED}


def run_until(command: list[str], until: float) -> str:
    """The last lines that a command prints, called in the root; at ``until``, of ``time.monotonic``, it is stopped."""
    places = [str(PACKAGE.parent), os.environ.get('PYTHONPATH', '')]
    environment = os.environ | dict(PYTHON=sys.executable, PYTHONPATH=os.pathsep.join(filter(None, places)))
    environment['SHUTDOWN_TIMEOUT'] = '5'  # of torchrun
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=ROOT,
        env=environment,
        text=True,
        start_new_session=True,
    ) as process:
        for number, seconds in ((signal.SIGTERM, until - time.monotonic()), (signal.SIGKILL, 8)):
            try:
                return process.communicate(timeout=max(0, seconds))[0][-4000:]
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, number)
    return STOPPED
