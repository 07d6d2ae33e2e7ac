"""FLOPs and parameters of our models beside the paper's tables 1 to 10."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import torch
from mmengine.config import Config
from torch import Tensor, nn

from vt.engine.counting import Complexity, count_complexity
from vt.engine.run.launch import build_model

from .markdown import ROOT, Rows
from .paper import ABLATIONS, DETECTRON2_CLASSES, SEGMENTATION, load_tables

CONFIGS = ROOT / 'configs'
IMAGE_SIZE = (224, 224)
RECIPE = '8xb32-90e_in1k'
# Columns of a row with its ``cost``, a model's metadata, and its ``published`` parameters, FLOPs and top-1.
COST = {
    'M parameters': '{cost[Parameters]:M.2f}',
    'published': '{published[0]}',
    'G FLOPs': '{cost[FLOPs]:G.2f}',
    'published ': '{published[1]}',
    'top-1, published': '{published[2]}',
}


def set_num_classes(cfg: Config, num_classes: int) -> None:
    """Set the number of classes of the head of a classifier or segmentor."""
    cfg.model['decode_head' if 'decode_head' in cfg.model else 'head'].num_classes = num_classes


def all_tables() -> Iterator[tuple[str, Rows, list[str]]]:
    """Title, rows and notes of the tables 1 to 10."""
    tables = {1: ('how much less VT-ResNet costs', compare_reductions())}
    tables[2] = ('the default recipe', compare_classifiers('table2_default_recipe'))
    tables |= {number: (each.title, compare_ablation(number)) for number, each in ABLATIONS.items()}
    tables[8] = ('the advanced recipe', compare_classifiers('table8_advanced_recipe'))
    for number, (_, (height, width), _) in SEGMENTATION.items():
        tables[number] = (f'segmentors at {height}x{width}', compare_segmentors(number))
    for number, (title, rows) in tables.items():
        yield f'Table {number}: {title}', rows, load_tables()['notes'][f'{number}']


def has_neck(model: nn.Module) -> bool:
    """Whether a model has a neck with parameters."""
    neck = getattr(model, 'neck', None)
    return neck is not None and any(True for _ in neck.parameters())


@torch.no_grad()
def neck_inputs(model: nn.Module, images: Tensor) -> tuple[Tensor, ...]:
    """The feature maps that the backbone passes to the neck for ``images``; sets evaluation mode."""
    model.eval()
    return tuple(model.backbone(images))


@cache  # the tables share their models
def count_config(
    path: Path, size: tuple[int, int] = IMAGE_SIZE, num_classes: int | None = None
) -> tuple[Complexity, Complexity | None]:
    """FLOPs and parameters of a config's model and of its neck, counted without computing anything.

    The neck's are None where there is none with parameters. ``num_classes`` are a segmentor's, by default the config's.
    """
    model, image = _build_without_memory(path, size, num_classes)
    whole = count_complexity(model, image, mode='tensor')
    neck = count_complexity(model.neck, neck_inputs(model, image)) if has_neck(model) else None
    return whole, neck


def count_stage5(path: Path) -> Complexity:
    """FLOPs and parameters of ``layer4``, ResNet's stage 5 or the VT modules in its place."""
    model, image = _build_without_memory(path, IMAGE_SIZE)
    stage, calls = model.backbone.layer4, []
    for part in stage:
        part.register_forward_pre_hook(lambda part, args: calls.append((part, args)))
    count_complexity(model, image, mode='tensor')
    flops = sum(count_complexity(part, *args).flops for part, args in calls.copy())
    return Complexity(flops, sum(parameter.numel() for parameter in stage.parameters()))


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
        row = {'model': name}
        for key, attribute in (('flops', 'FLOPs'), ('params', 'parameters')):
            for part, end, count in (('total', '', _count), ('stage5', ' of stage 5', count_stage5)):
                resnet, vt = (getattr(count(path), attribute.lower()) for path in paths)
                row[f'{attribute}{end}, ours / paper'] = f'{resnet / vt:.2f}x / {paper[f"{key}_{part}"][name]}x'
        rows.append(row)
    return rows


def compare_classifiers(table: str) -> Rows:
    """Tables 2 and 8: ResNets and their VT baselines."""
    rows = [row | dict(model=row['model'].split()[0]) for row in load_tables()[table]]
    return [{'model': row['model']} | _compare_cost(_count(classifier_config(row['model'])), row) for row in rows]


def compare_ablation(table: int) -> Rows:
    """Tables 3 to 7: each variant, and its change against the model itself."""
    ablation, rows = ABLATIONS[table], []
    for model in ('VT-R18', 'VT-R34'):
        reference = _count(classifier_config(model))
        (theirs,) = [row['mflops'] for row in ablation.rows(model) if row['variant'] is None]
        for row in ablation.rows(model):
            cost = _count(classifier_config(model, row['variant'], ablation.key))
            change = f'{(cost.flops - reference.flops) / 1e6:+.1f} / {row["mflops"] - theirs:+}'
            cells = {'model': model, ablation.column: row['value']} | _compare_cost(cost, row)
            rows.append(cells | {'change of MFLOPs, ours / paper': change})
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
        necks[neck] = part.flops, row['gflops_fpn']
    ours, paper = (fpn / vt_fpn for fpn, vt_fpn in zip(necks['FPN'], necks['VT-FPN']))
    *_, last = rows[0]
    return [*rows, dict.fromkeys(rows[0], '') | {'model': 'FPN / VT-FPN', last: f'{ours:.2f}x / {paper:.2f}x'}]


def _count(path: Path) -> Complexity:
    return count_config(path)[0]


def _compare_cost(cost: Complexity, paper: dict) -> dict[str, str]:
    if 'gflops' in paper:
        flops, digits = _beside('GFLOPs', cost.flops / 1e9, paper['gflops'], digits=3), 2
    else:
        flops, digits = _beside('MFLOPs', cost.flops / 1e6, paper['mflops'], digits=0), 1
    return flops | _beside('M parameters', cost.parameters / 1e6, paper['mparams'], digits)


def _beside(what: str, ours: float, paper: float, digits: int) -> dict[str, str]:
    return {f'{what}, ours / paper': f'{ours:.{digits}f} / {paper} ({100 * (ours / paper - 1):+.1f} %)'}
