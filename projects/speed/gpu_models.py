"""Models of a GPU's report, which ``gpu_cases.json`` lists: how they are changed, and what is measured of each."""

import copy
import functools
import json
from itertools import product
from pathlib import Path

import torch
from mmseg.models.necks import FPN
from torch import Tensor, nn
from torch.nn.functional import interpolate

from vt.analysis.speed import run_seconds
from vt.engine.run.cuda_graphs import TrainGraphs, capture
from vt.engine.run.folding import fold_norms
from vt.files import ROOT

from .gpu_rows import OURS, Row, Rows, list_kernels, profile_python, time_launch
from .settings import Setting
from .subject import Subject
from .timing import peak_memory
from .workload import Workload

CASES = json.loads(Path(__file__).with_name('gpu_cases.json').read_text())  # of each part, in the order of their worth
SIZES = dict(resnets=(224, 224), survey=(224, 224))  # of images; 800x1216 in other parts


class BFloat16FPN(FPN):
    """FPN that upsamples and adds in the precision of its laterals, which autocast computes in bfloat16."""

    def forward(self, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        laterals = [convolve(x) for convolve, x in zip(self.lateral_convs, inputs)]
        with torch.autocast(inputs[0].device.type, enabled=False):  # it would upsample in float32
            for index in range(len(laterals) - 1, 0, -1):
                finer = laterals[index - 1]
                laterals[index - 1] = finer + interpolate(laterals[index], finer.shape[2:], **self.upsample_cfg)
        return tuple(convolve(x) for convolve, x in zip(self.fpn_convs, laterals))


def _build(source: str, change: str) -> nn.Module:
    model = Subject(source if ':' in source else str(ROOT / source)).build(Setting())
    if change == 'norms folded':
        fold_norms(model)
    elif change == 'bf16 upsampling':
        model.neck.__class__ = BFloat16FPN
    elif change == 'level by level':
        model.neck.tokenizers[0].register_forward_hook(lambda *_: None)  # any hook on a part has this effect
    return model


def add_models(rows: Rows) -> None:
    """Add the rows of ``CASES``."""
    build = functools.cache(_build)

    def measure(row: Row) -> None:
        size = SIZES.get(rows.part, (64, 96) if rows.dry else (800, 1216))
        setting = rows.setting(batch_size=row['batch'], size=size, compile=row['compile'])
        setting.choose_products()
        torch.compiler.reset()
        torch.manual_seed(0)
        # Models are kept on the CPU: the peak memory is that of one.
        model = setting.place(copy.deepcopy(build(row['model'], row['change'])))
        is_neck = rows.part in ('launch', 'necks')
        MEASURES[rows.part](rows, row, Workload(model, 'neck' if is_neck else 'whole', setting))

    for case in CASES[rows.part]:
        for kind, name in product(case['kinds'], case['models']):
            model, _, change = name.partition(' with ')
            batch = 1 if rows.dry else case['batch']
            rows.add(measure, model=model, change=change, kind=kind, batch=batch, compile=case['compile'])


def measure_model(rows: Rows, row: Row, workload: Workload) -> None:
    """Add the time of a step in a row of steps and as a CUDA graph, its launch, its kernels and the peak memory.

    VT-FPN compiled on a GPU must have run its Triton kernels.
    """
    step = workload.step(row['kind'])
    row['first_seconds'] = run_seconds(step, 1, rows.device)
    row['eager'] = rows.time(step)
    row['launch_us'] = time_launch(step, rows.device)['us']
    row['kernels'] = list_kernels(step, rows.device)
    row['memory'] = peak_memory(step, rows.device)
    on_gpu, mode = rows.device.type == 'cuda', row['compile']
    if on_gpu and mode == 'default' and '/vt-fpn' in row['model'] and row['kernels']['ours'] != ', '.join(OURS):
        raise RuntimeError('compiled VT-FPN did not run its Triton kernels')
    if on_gpu and rows.part == 'necks' and mode == 'off':
        replay, _ = capture(step)
        row['graph'] = rows.time(replay)


def measure_launch(rows: Rows, row: Row, workload: Workload) -> None:
    """Add what launching a step costs Python: 30 rounds, and the functions and operators that take longest."""
    step = workload.step(row['kind'])
    row['launch'] = time_launch(step, rows.device, rounds=30)
    row['python'] = profile_python(step, rows.device)
    row['operators'] = list_kernels(step, torch.device('cpu'))


def measure_graphs(rows: Rows, row: Row, workload: Workload) -> None:
    """Add what :func:`measure_model` adds, with backbone and neck as CUDA graphs or eager, and norms of gradients."""
    if row['change'] and rows.device.type == 'cuda':
        with workload.setting.autocast():
            workload.module.extract_feat = TrainGraphs(workload.module.train(), workload.inputs)
    step = workload.step(row['kind'])
    norms = []
    for _ in range(20):
        step()
        norms.append(torch.nn.utils.get_total_norm([each.grad for each in workload.module.parameters()]).item())
    row['gradient'] = dict(first=norms[0], last=norms[-1])
    measure_model(rows, row, workload)


MEASURES = dict.fromkeys(CASES, measure_model) | dict(launch=measure_launch, graphs=measure_graphs)
