"""The index of all models, as OpenMMLab's tools read it: a metafile beside the configs of each folder.

Parameters and FLOPs are counted, scores come from the records of trained runs, everything else from the configs.
"""

import re
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

import torch
import yaml
from mmengine.registry import init_default_scope
from rich.progress import track

from vt.checkpoints.files import read_json, write_atomically
from vt.engine.config_files import read_config
from vt.engine.counting import count_complexity
from vt.engine.launch import build_model, is_segmentation
from vt.engine.run_record import METRICS
from vt.inference.inputs import input_shape

INDEX, METAFILE = 'model-index.yml', 'metafile.yml'
NAMED_SIZE = re.compile(r'-(\d+)x(\d+)$')  # the size that a segmentor's name ends with
CITATION = re.compile(r'\(([^()]*\b\d{4})\b[^()]*\)')  # in the head of a system's file: (Touvron et al., ICCV 2021)
VT = ('Visual Transformers: Token-based Image Representation and Processing for Computer Vision', '2006.03677')
# Folders of configs: the collection's name, and its paper's title and number on arXiv.
COLLECTIONS: dict[str, tuple] = dict(
    vt_resnet=('VT-ResNet', VT),
    vt_fpn=('VT-FPN', VT),
    vt_early=('VT, first version', (VT[0], '2006.03677v1')),
    vt_anywhere=('VT at any place of any backbone', VT),
    vt_cls=('VT with a class token', VT),
    ablations=('Ablations of VT', VT),
    sample_efficiency=('Networks of equal FLOPs', None),
    baselines=('What VT is compared with', None),
    vit=('ViT', ('An Image is Worth 16x16 Words: Transformers for Image Recognition at Scale', '2010.11929')),
    mvit=('MViT', ('Multiscale Vision Transformers', '2104.11227')),
    survey=('Systems of a survey of vision transformers', None),
)
# What the last part of a config's name begins with.
DATASETS = {
    'in1k': 'ImageNet-1k',
    'cifar100': 'CIFAR-100',
    'cifar10': 'CIFAR-10',
    'image-folder': 'a folder of images',
    'hugging-face': 'a data set of Hugging Face',
    'digits': 'Digits',
    'five-digits': 'Digits, five classes',
    'twin-digits': 'Twin digits',
    'digit-scenes': 'Digit scenes',
    'relational-scenes': 'Relational digit scenes',
    'moving-digits': 'Moving digits',
    'svrt-1': 'SVRT, problem 1',
    'svrt-7': 'SVRT, problem 7',
    'psvrt': 'PSVRT',
    'sort-of-clevr': 'Sort-of-CLEVR',
    'sort-of-clevr-twin': 'Sort-of-CLEVR with twins',
    'pathfinder-short': 'Pathfinder, short paths',
    'pathfinder-long': 'Pathfinder, long paths',
    'k400': 'Kinetics-400',
    'k600': 'Kinetics-600',
    'ade20k': 'ADE20K',
    'cityscapes': 'Cityscapes',
    'coco-stuff164k': 'COCO-Stuff 164k',
    'lip': 'LIP',
}
METRIC_NAMES = {'accuracy/top1': 'Top 1 Accuracy', 'mIoU': 'mIoU'}


def leaf_configs(root: Path) -> dict[str, list[Path]]:
    """The configs that train a model, by their folder below ``configs``."""
    rooms = defaultdict(list)
    for path in sorted((root / 'configs').rglob('*.py')):
        if '_base_' not in path.parts:
            rooms[path.relative_to(root / 'configs').parts[0]].append(path)
    return rooms


def write_metafiles(root: Path) -> int:
    """Write all metafiles and the index that names them; returns the number of models."""
    scores, rooms = read_scores(root / 'docs/records'), leaf_configs(root)
    for room in rooms:
        models = [describe(path, root, scores) for path in track(rooms[room], room, transient=True)]
        _dump(dict(Collections=[collection(room)], Models=models), root / 'configs' / room / METAFILE)
    _dump(dict(Import=[f'configs/{room}/{METAFILE}' for room in rooms]), root / INDEX)
    return sum(map(len, rooms.values()))


def write_scores(root: Path) -> None:
    """Enter the scores of trained runs into the metafiles, and leave what was counted."""
    scores = read_scores(root / 'docs/records')
    for path in sorted((root / 'configs').glob(f'*/{METAFILE}')):
        content = yaml.safe_load(path.read_text())
        for model in content['Models']:
            for result in model['Results']:
                result['Metrics'] = scores.get(model['Config'], {})
        _dump(content, path)


def collection(room: str) -> dict[str, Any]:
    """What a folder's models have in common."""
    name, paper = COLLECTIONS.get(room, (room, None))
    entry = dict(Name=name, Metadata=dict(Architecture=[name]))
    return entry | (dict(Paper=dict(Title=paper[0], URL=f'https://arxiv.org/abs/{paper[1]}')) if paper else {})


def describe(path: Path, root: Path, scores: dict[str, dict]) -> dict[str, Any]:
    """A model's entry; nothing is computed to count its FLOPs, and no data set is needed.

    Args:
        path: of its config.
        root: folder above ``configs``.
        scores: as :func:`read_scores` gives them.
    """
    cfg = read_config(str(path), quietly=True)
    init_default_scope(cfg.get('default_scope', 'mmpretrain'))
    size = NAMED_SIZE.search(path.stem)
    shape = (3, *map(int, size.groups())) if size and is_segmentation(cfg) else input_shape(cfg)
    cost = count_complexity(build_model(cfg).to('meta'), torch.empty(1, *shape, device='meta'), mode='tensor')
    config = path.relative_to(root).as_posix()
    task = 'Semantic Segmentation' if is_segmentation(cfg) else 'Image Classification'
    last = path.stem.rpartition('_')[2]
    dataset = next(DATASETS[key] for key in sorted(DATASETS, key=len, reverse=True) if last.startswith(key))
    metadata = {
        'Training Data': dataset,
        'Input': 'x'.join(map(str, shape)),
        'FLOPs': cost.flops,
        'Parameters': cost.parameters,
    }
    metrics = scores.get(config, {})
    entry = {
        'Name': path.stem,
        'In Collection': collection(path.relative_to(root / 'configs').parts[0])['Name'],
        'Config': config,
        'Metadata': metadata,
        'Results': [
            dict(Task='Video Classification' if len(shape) == 4 else task, Dataset=dataset, Metrics=metrics),
        ],
    }
    citation = _citation(root / f'configs/_base_/survey/{path.stem.partition("_")[0]}.py')
    return entry | (dict(Paper=citation) if citation else {})


def _citation(path: Path) -> str | None:
    found = CITATION.search(path.read_text().partition('\n')[0]) if path.is_file() else None
    return found and found[1]


def read_scores(records: Path) -> dict[str, dict[str, float]]:
    """Metrics of the configs that were trained as they are: the median over seeds, in percent."""
    runs: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for path in sorted(records.glob('*.json')):
        if path.stem == 'repeat':  # its runs are cut short
            continue
        for record in read_json(path, 'train it again', list):
            for metric in record['metrics'].keys() & METRICS.keys() if not record['options'] else ():
                runs[record['config']][METRIC_NAMES[metric]].append(record['metrics'][metric])
    return {
        config: {name: round(median(values), 2) for name, values in metrics.items()} for config, metrics in runs.items()
    }


def _dump(content: dict, path: Path) -> None:
    write_atomically(path, yaml.safe_dump(content, sort_keys=False, width=120))
