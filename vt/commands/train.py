"""Train a model from a config, as ``tools/train.py`` asks."""

import argparse
from pathlib import Path

from mmengine.config import Config
from mmengine.dist import is_main_process

from vt.analysis.data_quality.data_check import check_data
from vt.analysis.run_record import record_training
from vt.checkpoints.files import POINTER
from vt.engine.config_files import require_file
from vt.engine.interruption.resume import choose_together, forget_earlier_run, was_restarted
from vt.engine.launch import build_runner, use_amp
from vt.engine.processes.distributed import any_process, join_processes
from vt.errors import UserError

from .arguments import load_config
from .outputs import write_json


def train(args: argparse.Namespace) -> None:
    """Train, and write how it was done and how it ended to ``training.json`` in the work directory."""
    cfg = training_config(args)
    join_processes(cfg)
    notes = enter_resume(cfg, args.resume)
    if not (args.skip_data_check or cfg.get('resume')):  # a run that goes on was checked when it began
        check_data(cfg, ('train', 'val'))
    runner = build_runner(cfg)
    for note in notes:
        runner.logger.warning(note)
    runner.train()
    if is_main_process():
        write_json(record_training(runner, args.config), Path(runner.work_dir) / 'training.json')


def training_config(args: argparse.Namespace) -> Config:
    """The config with the arguments of ``tools/train.py`` entered."""
    cfg = load_config(args)
    for name in ('train_dataloader', 'train_cfg', 'optim_wrapper'):
        if not cfg.get(name):
            raise UserError(f'there is no {name} in it: to train it must be set')
    if args.no_validate:
        cfg.val_cfg = cfg.val_dataloader = cfg.val_evaluator = None
    if args.amp:
        use_amp(cfg)
    if args.auto_scale_lr:
        if 'auto_scale_lr' not in cfg:
            raise UserError('--auto-scale-lr needs auto_scale_lr=dict(base_batch_size=...) in the config')
        cfg.auto_scale_lr.enable = True
    if cfg.get('load_from'):
        require_file(cfg.load_from, 'checkpoint of load_from,')
    return cfg


def enter_resume(cfg: Config, asked: str | None) -> list[str]:
    """Enter the checkpoint to go on from, if ``--resume`` asked for one, by its path or ``'auto'``; lines for the log.

    A run that torchrun or SLURM restarted goes on from its own last checkpoint, if it had written one.
    """
    if was_restarted() and any_process(Path(cfg.work_dir, POINTER).exists()):
        asked = 'auto'
    elif asked is None and cfg.get('resume'):
        asked = cfg.get('load_from') or 'auto'
    if asked is None:
        forget_earlier_run(cfg.work_dir)
        return []
    if asked != 'auto':
        require_file(asked, 'checkpoint to resume from')
    checkpoint, notes = choose_together(cfg.work_dir, None if asked == 'auto' else asked)
    cfg.resume = checkpoint is not None
    cfg.load_from = checkpoint or cfg.get('load_from')
    return notes
