"""How each of the survey's models was trained by its authors: what differs from DeiT's recipe, and what is not theirs.

Numbers are read from the configs and the models that they build, sources and remaining differences from the configs'
headers, ``# Source: ...`` and ``# Remaining: ...``.
"""

import re
from collections.abc import Iterable
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

import torch
from mmcv.cnn.bricks import DropPath
from mmengine.config import Config
from mmengine.registry import DefaultScope
from torch import nn

from vt.engine.config.parameter_rules import match_parameters
from vt.engine.config.steps import read_config
from vt.engine.run.launch import build_model
from vt.files import ROOT

from .components import read_survey_models
from .markdown import Rows, config_path

DEIT = '{}_16xb64-300e_in1k'
NOTES = re.compile(r'Source: (?P<source>.+?)\.? Remaining: (?P<remaining>.+?)\.?(?: vt .+| bash .+)?$')
FIRST = 'deit-small'  # the model whose recipe is the first row of the table


def describe_recipes(names: Iterable[str] | None = None) -> Rows:
    """DeiT's recipe, and a row for each model, all by default, that has another one: the settings that differ."""
    rows = [dict(model="DeiT's recipe") | read_recipe(config_path(DEIT.format(FIRST)))]
    for name in names or read_survey_models():
        authors, deit = find_authors(name), config_path(DEIT.format(name))
        if authors != deit:
            title = read_survey_models()[name]['title']
            own, usual = read_recipe(authors), read_recipe(deit)
            changed = {setting: value if value != usual[setting] else '' for setting, value in own.items()}
            rows.append(dict(model=f'[{title}]({authors.removeprefix("configs/")})') | changed)
    same = [setting for setting in rows[0] if not any(row[setting] for row in rows[1:])]
    return [{setting: value for setting, value in row.items() if setting not in same} for row in rows]


def describe_sources() -> Rows:
    """A row a model: the config that trains it as its authors did, where they say so, and what is not as theirs."""
    rows = []
    for name, entry in read_survey_models().items():
        path = find_authors(name)
        rows.append(dict(model=f'[{entry["title"]}]({path.removeprefix("configs/")})') | read_notes(ROOT / path))
    return rows


def find_authors(name: str) -> str:
    """The config that trains a model as its authors did; where none differs from DeiT's recipe, the one with that."""
    deit = config_path(DEIT.format(name))
    found = sorted((ROOT / deit).parent.glob(f'{name}_*-authors_in1k.py'))
    return found[0].relative_to(ROOT).as_posix() if found else deit


def read_notes(path: Path) -> dict[str, str]:
    """``source`` and ``remaining`` of a config's header."""
    lines = takewhile(lambda line: line.startswith('# '), path.read_text().splitlines())
    return NOTES.search(' '.join(line[2:] for line in lines)).groupdict()


@cache
def read_recipe(path: str) -> dict[str, str]:
    """Each setting of a config's recipe as a text."""
    cfg = read_config(str(ROOT / path))
    optim, model = cfg.optim_wrapper, build(cfg)
    warm_up, cosine = cfg.param_scheduler
    cool_down = cosine.get('cool_down', 0)
    hooks = [hook for hook in cfg.get('custom_hooks', []) if hook.type == 'EMAHook']
    augments = (cfg.model.get('train_cfg') or {}).get('augments', [])
    smoothing = cfg.model.get('label_smoothing') or cfg.model.head.loss.get('label_smooth_val', 0.0)
    clip = (optim.get('clip_grad') or {}).get('max_norm')
    return {
        'learning rate': f'{optim.optimizer.lr:g}',
        'batch': f'{cfg.auto_scale_lr.base_batch_size:,}',
        'epochs': f'{cfg.train_cfg.max_epochs - cool_down}' + (f' + {cool_down}' if cool_down else ''),
        'warm-up': f'{warm_up.length} from {warm_up.start_factor * optim.optimizer.lr:.2g}',
        'final learning rate': f'{cosine.eta_min:g}',
        'weight decay': f'{optim.optimizer.weight_decay:g}',
        'also without weight decay': list_undecayed(model, optim.paramwise_cfg.get('custom_keys', {})),
        'stochastic depth': describe_rates([part.drop_prob for part in model.modules() if isinstance(part, DropPath)]),
        'dropout': f'{max([part.p for part in model.modules() if isinstance(part, nn.Dropout)], default=0):g}',
        'gradient clipping': 'no' if clip is None else f'{clip:g}',
        'EMA decay': f'{1 - hooks[0].momentum:g}' if hooks else 'no',
        **read_images(cfg),
        'mixing': ', '.join(f'{each.type} {each.alpha:g}' for each in augments) or 'no',
        'label smoothing': f'{smoothing:g}',
        'weight of patch labels': f'{getattr(model, "distillation_weight", 0):g}',
    }


def build(cfg: Config) -> nn.Module:
    """The model of a config, without memory where its library allows for it."""
    device = 'cpu' if cfg.model.backbone.type == 'TNT' else 'meta'
    with DefaultScope.overwrite_default_scope('mmpretrain'), torch.device(device):
        return build_model(cfg)


def list_undecayed(model: nn.Module, custom_keys: dict[str, dict]) -> str:
    """The keys without decay that rule a parameter, in the order of the alphabet."""
    rules = match_parameters(model, custom_keys)
    found = {key for key, names in rules.items() if names and not custom_keys[key].get('decay_mult', 1.0)}
    return ', '.join(f'`{key}`' for key in sorted(found)) or 'nothing'


def describe_rates(rates: list[float]) -> str:
    """The largest rate, and how many branches have one."""
    dropped = [rate for rate in rates if rate]
    return f'{max(dropped):g} in {len(dropped)} branches' if dropped else 'no'


def read_images(cfg: Config) -> dict[str, Any]:
    """What is done with images: augmentation, their normalisation, and how much of a test image is seen."""
    steps = {}
    for step in cfg.train_dataloader.dataset.pipeline:
        choices = [choice[0] for choice in step.transforms] if step.type == 'RandomChoice' else [step]
        steps[choices[0].type] = choices
    resize, crop = cfg.test_dataloader.dataset.pipeline[1:3]
    sampler, normal = cfg.train_dataloader.sampler, cfg.data_preprocessor
    erasing = steps.get('RandomErasing')
    return {
        'interpolation': ' or '.join(choice.interpolation for choice in steps['RandomResizedCrop']),
        'RandAugment operations': f'{steps["RandAugment"][0].num_policies}',
        'random erasing': f'{erasing[0].erase_prob:g}' if erasing else 'no',
        'augmentation repeats': f'{sampler.get("num_repeats", 1)}',
        'mean; standard deviation': '; '.join(
            ', '.join(f'{value / 255:.3g}' for value in values) for values in (normal.mean, normal.std)
        ),
        'test crop ratio': f'{crop.crop_size / resize.scale:.3g}',
    }
