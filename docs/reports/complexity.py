"""FLOPs and parameters of our models beside the paper's tables 1 to 10."""

import re
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path

import torch
import yaml
from mmengine.config import Config
from torch import nn

from vt.analysis.speed.subject import set_num_classes
from vt.engine.counting import Complexity, count_by_module, count_complexity, has_neck, neck_inputs
from vt.engine.launch import build_model

from .markdown import ROOT, Rows
from .paper import ABLATIONS, DETECTRON2_CLASSES, SEGMENTATION, load_tables

CONFIGS = ROOT / 'configs'
IMAGE_SIZE = (224, 224)
RECIPE = '8xb32-90e_in1k'


def all_tables() -> Iterator[tuple[str, Rows, list[str]]]:
    """Title, rows and notes of the tables 1 to 10."""
    makers = {
        1: ('how much less VT-ResNet costs', compare_reductions),
        2: ('the default recipe', compare_default_recipe),
    }
    makers |= {table: (ablation.title, partial(compare_ablation, table=table)) for table, ablation in ABLATIONS.items()}
    makers[8] = ('the advanced recipe', compare_advanced_recipe)
    for table, (_, (height, width), _) in SEGMENTATION.items():
        makers[table] = (f'segmentors at {height}x{width}', partial(compare_segmentors, table=table))
    for table, (title, compare) in makers.items():
        yield f'Table {table}: {title}', compare(), load_tables()['notes'][f'{table}']


@cache
def read_costs() -> dict[str, dict[str, int]]:
    """``FLOPs`` and ``Parameters`` of every model by its config's path, as counted into the metafiles."""
    files = [yaml.load(path.read_text(), yaml.CSafeLoader) for path in CONFIGS.rglob('metafile.yml')]
    return {model['Config']: model['Metadata'] for file in files for model in file['Models']}


def describe_cost(path: str, published: Sequence[float | None], empty: str = '') -> dict[str, str]:
    """Cells of a config's cost, beside what was published: million parameters, billion FLOPs, top-1 in percent."""
    cost = read_costs()[path]
    parameters, flops, top1 = (empty if value is None else str(value) for value in published)
    return {
        'M parameters': f'{cost["Parameters"] / 1e6:.2f}',
        'published': parameters,
        'G FLOPs': f'{cost["FLOPs"] / 1e9:.2f}',
        'published ': flops,
        'top-1, published': top1,
    }


@cache  # the tables share their models
def count_config(
    path: Path, size: tuple[int, int], num_classes: int | None = None
) -> tuple[Complexity, Complexity | None]:
    """FLOPs and parameters of a config's model and of its neck, counted without computing anything.

    The neck's are None where there is none with parameters. ``num_classes`` are a segmentor's, by default the config's.
    """
    model, image = _build_without_memory(path, size, num_classes)
    whole = count_complexity(model, image, mode='tensor')
    neck = count_complexity(model.neck, neck_inputs(model, image)) if has_neck(model) else None
    return whole, neck


def count_stage5(path: Path, size: tuple[int, int] = IMAGE_SIZE) -> Complexity:
    """FLOPs and parameters of ``layer4``, ResNet's stage 5 or the VT modules in its place."""
    model, image = _build_without_memory(path, size)
    by_module = count_by_module(model, image, mode='tensor')
    flops = sum(count for name, count in by_module.items() if re.search(r'\blayer4\.\d+$', name))
    return Complexity(flops, sum(parameter.numel() for parameter in model.backbone.layer4.parameters()))


def _build_without_memory(
    path: Path, size: tuple[int, int], num_classes: int | None = None
) -> tuple[nn.Module, torch.Tensor]:
    cfg = Config.fromfile(path)
    if num_classes is not None:
        set_num_classes(cfg, num_classes)
    return build_model(cfg).to('meta'), torch.empty(1, 3, *size, device='meta')


def classifier_config(name: str, variant: str | None = None, table: str = '') -> Path:
    """The ImageNet config of ``'R18'``, ``'VT-R18'``, ..., or of an ablation of it."""
    depth = name.split('R')[-1]
    if variant:
        return CONFIGS / 'ablations' / table / f'vt-resnet{depth}_{variant}_{RECIPE}.py'
    stem = 'vt_resnet/vt-resnet' if name.startswith('VT') else 'baselines/resnet'
    return CONFIGS / f'{stem}{depth}_{RECIPE}.py'


def compare_reductions() -> Rows:
    """Table 1: ResNet over VT-ResNet, in all and in stage 5."""
    paper, rows = load_tables()['table1_reduction'], []
    for name in paper['flops_total']:
        paths = [classifier_config(prefix + name) for prefix in ('', 'VT-')]
        resnet, vt = (count_config(path, IMAGE_SIZE)[0] for path in paths)
        resnet5, vt5 = (count_stage5(path) for path in paths)
        ours = dict(
            flops_total=resnet.flops / vt.flops,
            flops_stage5=resnet5.flops / vt5.flops,
            params_total=resnet.parameters / vt.parameters,
            params_stage5=resnet5.parameters / vt5.parameters,
        )
        row = {'model': name}
        for key, title in zip(ours, ('FLOPs', 'FLOPs of stage 5', 'parameters', 'parameters of stage 5')):
            row[f'{title}, ours / paper'] = f'{ours[key]:.2f}x / {paper[key][name]}x'
        rows.append(row)
    return rows


def compare_default_recipe() -> Rows:
    """Table 2: ResNet-18 and 34 and their VT twins."""
    rows = []
    for row in load_tables()['table2_default_recipe']:
        cost, _ = count_config(classifier_config(row['model']), IMAGE_SIZE)
        rows.append({'model': row['model']} | _compare_cost(cost, row['mflops'], row['mparams']))
    return rows


def compare_ablation(table: int) -> Rows:
    """Tables 3 to 7: each variant, and its change against the model itself."""
    ablation, rows = ABLATIONS[table], []
    for model in ('VT-R18', 'VT-R34'):
        reference, _ = count_config(classifier_config(model), IMAGE_SIZE)
        paper_rows = ablation.rows(model)
        paper_reference = next(row for row in paper_rows if row[ablation.column] == ablation.default)
        for row in paper_rows:
            value = row[ablation.column]
            path = classifier_config(model, ablation.variants[value], ablation.key)
            cost, _ = count_config(path, IMAGE_SIZE)
            change, paper_change = (cost.flops - reference.flops) / 1e6, row['mflops'] - paper_reference['mflops']
            rows.append(
                {'model': model, ablation.column: str(value)}
                | _compare_cost(cost, row['mflops'], row['mparams'])
                | {'change of MFLOPs, ours / paper': f'{change:+.1f} / {paper_change:+}'}
            )
    return rows


def compare_advanced_recipe() -> Rows:
    """Table 8: the four depths and their ResNets."""
    rows = []
    for row in load_tables()['table8_advanced_recipe']:
        name = row['model'].split()[0]
        cost, _ = count_config(classifier_config(name), IMAGE_SIZE)
        rows.append(
            {'model': name}
            | _beside('GFLOPs', cost.flops / 1e9, row['gflops'], digits=3)
            | _beside('M parameters', cost.parameters / 1e6, row['mparams'], digits=2)
        )
    return rows


def compare_segmentors(table: int) -> Rows:
    """Tables 9 and 10: segmentors and their necks; the last row tells how much less ours cost."""
    name, size, recipe = SEGMENTATION[table]
    rows, necks = [], {}
    for row in load_tables()[name]:
        depth, neck = row['model'].removeprefix('R-').split()
        stem = 'vt_fpn/vt-fpn' if neck == 'VT-FPN' else 'baselines/fpn'
        whole, part = count_config(CONFIGS / f'{stem}_r{depth}_{recipe}.py', size, DETECTRON2_CLASSES)
        rows.append(
            {'model': row['model']}
            | _beside('GFLOPs', whole.flops / 1e9, row['gflops_total'], digits=1)
            | _beside('neck GFLOPs', part.flops / 1e9, row['gflops_fpn'], digits=2)
        )
        necks[neck] = dict(ours=part.flops, paper=row['gflops_fpn'])
    ours, paper = (necks['FPN'][whose] / necks['VT-FPN'][whose] for whose in ('ours', 'paper'))
    *_, last = rows[0]
    return [*rows, dict.fromkeys(rows[0], '') | {'model': 'FPN / VT-FPN', last: f'{ours:.2f}x / {paper:.2f}x'}]


def _compare_cost(cost: Complexity, mflops: float, mparams: float) -> dict[str, str]:
    flops = _beside('MFLOPs', cost.flops / 1e6, mflops, digits=0)
    return flops | _beside('M parameters', cost.parameters / 1e6, mparams, digits=1)


def _beside(what: str, ours: float, paper: float, digits: int) -> dict[str, str]:
    return {f'{what}, ours / paper': f'{ours:.{digits}f} / {paper} ({100 * (ours / paper - 1):+.1f} %)'}
