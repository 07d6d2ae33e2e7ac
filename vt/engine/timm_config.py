"""``timm:NAME`` in place of a config: any classifier of timm, with its weights and its preparation of images."""

import torch
from mmengine.config import Config

from vt.checkpoints.public import similar_in_timm
from vt.errors import UserError
from vt.files import ROOT
from vt.models.timm_backbone import TimmBackbone

from .published import prepare_as_published

TIMM = 'timm:'
RECIPE = ROOT / 'configs/_base_/recipes/fine_tune_timm.py'


def read_timm_config(source: str) -> Config:
    """Return the config that fine-tunes a classifier of timm, ``timm:NAME``, on a folder of images.

    A run begins with the published weights of this name. Without timm, such a classifier or weights, there is a
    UserError.
    """
    name = source.removeprefix(TIMM)
    cfg = Config.fromfile(RECIPE)
    cfg.load_from = f'timm://{name}'
    prepared = prepare_as_published(cfg, cfg.load_from, is_told=False)
    if prepared is None:
        near = similar_in_timm(name) or 'timm.list_pretrained() lists all'
        raise UserError(f'{source}: timm has no published weights of this name: {near}')
    with torch.device('meta'):
        cfg.model.head.in_channels = TimmBackbone(name).num_features
    cfg.model.backbone.model_name = name
    resize, crop = prepared.steps
    train_crop = cfg.train_dataloader.dataset.pipeline[1]
    train_crop.update(scale=crop['crop_size'], interpolation=resize['interpolation'])
    cfg.val_dataloader = cfg.test_dataloader
    cfg.config_name = f'timm-{name}'
    cfg.work_dir = f'work_dirs/{cfg.config_name}'
    return cfg
