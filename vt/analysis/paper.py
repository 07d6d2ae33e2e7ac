"""The paper's numbers, and ours beside them.

``paper_tables.json`` holds the tables of Wu et al., ICCV 2021 (arXiv 2006.03677).
"""

import json
from pathlib import Path

import torch
from mmengine.config import Config

from vt.engine.launch import build_model

from .benchmark import has_neck, neck_inputs
from .complexity import Complexity, count_complexity

TABLES = Path(__file__).with_name('paper_tables.json')
DETECTRON2_CLASSES = 54  # COCO-Stuff as detectron2 merges it; the paper's FLOPs of both segmentation tables fit it
# Table, height and width of the images, end of the configs' names.
SEGMENTATION = {
    9: ('table9_coco_stuff_800x1216', (800, 1216), '4xb8-90k_coco-stuff164k-800x1216'),
    10: ('table10_lip_473x473', (473, 473), '4xb24-48k_lip-473x473'),
}


def load_tables() -> dict:
    """Every table of the paper by name; ``source`` says where they are from."""
    return json.loads(TABLES.read_text())


def set_num_classes(cfg: Config, num_classes: int) -> None:
    """Give the head of a classifier or segmentor another number of classes."""
    cfg.model['decode_head' if 'decode_head' in cfg.model else 'head'].num_classes = num_classes


def count_config(
    path: Path, size: tuple[int, int], num_classes: int | None = None
) -> tuple[Complexity, Complexity | None]:
    """FLOPs and parameters of a config's model and of its neck, counted without computing anything.

    Args:
        path: the config.
        size: height and width of the image.
        num_classes: classes of a segmentor's head; the config's by default.

    Returns:
        The whole and the neck; None where there is no neck with parameters.
    """
    cfg = Config.fromfile(path)
    if num_classes is not None:
        set_num_classes(cfg, num_classes)
    model = build_model(cfg).to('meta')
    image = torch.empty(1, 3, *size, device='meta')
    whole = count_complexity(model, image, mode='tensor')
    neck = count_complexity(model.neck, neck_inputs(model, image)) if has_neck(model) else None
    return whole, neck


def compare_classifiers(configs: Path) -> list[dict[str, str]]:
    """Rows that lay our classifiers beside table 8, at 224x224."""
    rows = []
    for row in load_tables()['table8_advanced_recipe']:
        name = row['model'].split()[0]
        stem = 'vt_resnet/vt-resnet' if name.startswith('VT') else 'baselines/resnet'
        cost, _ = count_config(configs / f'{stem}{name.split("R")[-1]}_8xb32-90e_in1k.py', (224, 224))
        rows.append(
            {'model': name}
            | _beside('GFLOPs', cost.flops / 1e9, row['gflops'], digits=3)
            | _beside('M parameters', cost.parameters / 1e6, row['mparams'], digits=2)
        )
    return rows


def compare_segmentors(configs: Path, table: int) -> list[dict[str, str]]:
    """Rows that lay our segmentors and their necks beside table 9 or 10; the last one tells how much less ours cost."""
    name, size, recipe = SEGMENTATION[table]
    rows, necks = [], {}
    for row in load_tables()[name]:
        depth, neck = row['model'].removeprefix('R-').split()
        stem = 'vt_fpn/vt-fpn' if neck == 'VT-FPN' else 'baselines/fpn'
        whole, part = count_config(configs / f'{stem}_r{depth}_{recipe}.py', size, DETECTRON2_CLASSES)
        rows.append(
            {'model': row['model']}
            | _beside('GFLOPs', whole.flops / 1e9, row['gflops_total'], digits=1)
            | _beside('neck GFLOPs', part.flops / 1e9, row['gflops_fpn'], digits=2)
        )
        necks[neck] = dict(ours=part.flops, paper=row['gflops_fpn'])
    ratios = {whose: necks['FPN'][whose] / necks['VT-FPN'][whose] for whose in ('ours', 'paper')}
    last = {'model': 'FPN / VT-FPN'} | {f'neck GFLOPs, {whose}': f'{ratio:.2f}x' for whose, ratio in ratios.items()}
    return [*rows, {column: last.get(column, '') for column in rows[0]}]


def _beside(what: str, ours: float, paper: float, digits: int) -> dict[str, str]:
    return {
        f'{what}, ours': f'{ours:.{digits}f}',
        f'{what}, paper': str(paper),
        f'{what}, difference': f'{100 * (ours / paper - 1):+.1f} %',
    }
