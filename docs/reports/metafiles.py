"""The metafile of all models, as OpenMMLab's tools read it: ``configs/metafile.yml``, which ``model-index.yml`` names.

Parameters and FLOPs are counted, scores come from the records of trained runs, papers from ``model_pages.yml``,
everything else from the configs.
"""

import math
import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import torch
import yaml
from mmengine.model import BaseModel
from mmengine.registry import DefaultScope

from vt.engine.config.data import Data, apply_num_classes
from vt.engine.config.parts import is_segmentation
from vt.engine.config.steps import read_config
from vt.engine.counting import count_complexity
from vt.engine.run.launch import build_model
from vt.files import ROOT
from vt.inference.inputs import Samples

from .scores import runs_as_they_are

METAFILE = ROOT / 'configs/metafile.yml'
CUT_SHORT = 'repeat'  # the records whose runs are too short for a score
PAPERS = yaml.safe_load(Path(__file__).with_name('model_pages.yml').read_text())  # by the folders of configs
NAMED_SIZE = re.compile(r'-(\d+)x(\d+)$')  # the size that a segmentor's name ends with
DATASETS = yaml.safe_load(Path(__file__).with_name('datasets.yml').read_text())
METRIC_NAMES = {'accuracy/top1': 'Top 1 Accuracy', 'mIoU': 'mIoU'}


def leaf_configs() -> dict[str, list[Path]]:
    """The configs that train a model, by their folder below ``configs``."""
    folders = defaultdict(list)
    for path in sorted((ROOT / 'configs').rglob('*.py')):
        if '_base_' not in path.parts:
            folders[path.relative_to(ROOT / 'configs').parts[0]].append(path)
    return folders


@cache
def read_models() -> dict[str, dict]:
    """The models of the metafile as they are, by their configs' paths."""
    return {model['Config']: model for model in yaml.load(METAFILE.read_text(), yaml.CSafeLoader)['Models']}


def write_metafile(collections: list[dict], models: list[dict]) -> str:
    """The text of the metafile, with one line per entry."""
    lines = []
    for name, entries in dict(Collections=collections, Models=models).items():
        rows = [yaml.safe_dump(entry, sort_keys=False, default_flow_style=True, width=math.inf) for entry in entries]
        lines += [f'{name}:\n', *(f'- {row}' for row in rows)]
    return ''.join(lines)


def describe_folder(
    folder: str, paths: list[Path], scores: dict[str, dict], known: dict[str, dict]
) -> tuple[dict, list[dict]]:
    """A folder's entries in the metafile: the collection with its paper, and the models.

    Args:
        folder: below ``configs``.
        paths: its configs.
        scores: as :func:`read_scores` gives them.
        known: models' entries by their configs' paths, whose FLOPs are not counted again.
    """
    name, (paper, url, _) = folder.replace('_', '-'), PAPERS[folder]['paper']
    collection = {
        'Name': name,  # mim search --model NAME
        'Metadata': {'Architecture': [PAPERS[folder]['title']]},
        'Paper': {'Title': paper, 'URL': url},
        'README': f'configs/{folder}/README.md',
    }
    models = []
    for path in paths:
        config = path.relative_to(ROOT).as_posix()
        entry = known.get(config) or describe(path)
        (result,) = entry['Results']
        models.append(
            {
                'Name': path.stem,
                'In Collection': name,
                'Config': config,
                'Metadata': entry['Metadata'],
                'Results': [result | {'Metrics': scores.get(config, {})}],
            }
        )
    return collection, models


def describe(path: Path) -> dict[str, Any]:
    """What is counted of a model: its input, FLOPs and parameters, beside its task and data set.

    Nothing is computed for it, and no data set is needed.
    """
    model, x = model_on_meta(path)
    cost, shape = count_complexity(model, x, mode='tensor'), x.shape[1:]
    task = 'Video Classification' if len(shape) == 4 else 'Image Classification'
    if hasattr(model, 'decode_head'):
        task = 'Semantic Segmentation'
    last = path.stem.rpartition('_')[2]
    dataset = next(DATASETS[key] for key in sorted(DATASETS, key=len, reverse=True) if last.startswith(key))
    return {
        'Metadata': {
            'Training Data': dataset,
            'Input': 'x'.join(map(str, shape)),
            'FLOPs': cost.flops,
            'Parameters': cost.parameters,
        },
        'Results': [{'Task': task, 'Dataset': dataset}],
    }


def model_on_meta(path: Path) -> tuple[BaseModel, torch.Tensor]:
    """Build the model of a config without values, and an input of the size that it is for."""
    cfg = read_config(str(path))
    apply_num_classes(Data(cfg), ('one', 'other'))  # for data of one's own
    size = NAMED_SIZE.search(path.stem)
    with DefaultScope.overwrite_default_scope(cfg.get('default_scope', 'mmpretrain')):
        shape = (3, *map(int, size.groups())) if size and is_segmentation(cfg) else Samples(cfg).input_shape
        return build_model(cfg).to('meta'), torch.empty(1, *shape, device='meta')


def read_scores(records: Path) -> dict[str, dict[str, float]]:
    """Metrics of the configs that were trained as they are: the median over seeds, in percent.

    Runs in another precision count where there are no others.
    """
    paths = [path for path in sorted(records.glob('*.json')) if path.stem != CUT_SHORT]
    scores: dict[str, dict[str, float]] = {}
    for config, own in runs_as_they_are(paths).items():
        names = dict.fromkeys(name for run in own for name in run['metrics'] if name in METRIC_NAMES)
        scores[config] = {METRIC_NAMES[name]: round(median(run['metrics'][name] for run in own), 2) for name in names}
    return scores
