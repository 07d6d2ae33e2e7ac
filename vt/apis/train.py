"""Train a model from a config, as ``tools/train.py`` asks."""

import argparse
from pathlib import Path

import mmengine
from mmengine.config import Config
from mmengine.dist import is_main_process

from vt.apis.run_record import record_training
from vt.engine.command_line import load_config, require_file
from vt.engine.launch import build_runner, is_segmentation, use_amp


def train(args: argparse.Namespace) -> None:
    """Train, and write how it was done and how it ended to ``training.json`` in the work directory."""
    cfg = training_config(args)
    if is_segmentation(cfg) and not args.skip_data_check:
        from vt.engine.segmentation_data import check_segmentation_data  # it imports MMSegmentation

        check_segmentation_data(cfg, ('train', 'val'))
    runner = build_runner(cfg)
    runner.train()
    if is_main_process():
        mmengine.dump(record_training(runner, args.config), Path(runner.work_dir) / 'training.json', indent=2)


def training_config(args: argparse.Namespace) -> Config:
    """The config with the arguments of ``tools/train.py`` entered."""
    cfg = load_config(args)
    if args.no_validate:
        cfg.val_cfg = cfg.val_dataloader = cfg.val_evaluator = None
    if args.amp:
        use_amp(cfg)
    if args.resume == 'auto':
        cfg.resume, cfg.load_from = True, None
    elif args.resume is not None:
        require_file(args.resume, 'checkpoint to resume from')
        cfg.resume, cfg.load_from = True, args.resume
    if args.auto_scale_lr:
        if 'auto_scale_lr' not in cfg:
            raise ValueError('--auto-scale-lr needs auto_scale_lr=dict(base_batch_size=...) in the config')
        cfg.auto_scale_lr.enable = True
    if cfg.get('load_from'):
        require_file(cfg.load_from, 'checkpoint')
    return cfg
