"""Command of ``vt train``: train a model from a config."""

import argparse
import shlex
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from mmengine.dist import get_world_size, is_main_process

from vt.analysis.tables import print_table
from vt.data_checks.data import check_data
from vt.engine.config.pretrained import compare_preparation
from vt.engine.config.steps import Run, RunOptions, prepare, require_file
from vt.engine.hooks.console import best_of
from vt.engine.run.batch_size import BatchSizeHook
from vt.engine.run.image_sizes import advising_size
from vt.engine.run.launch import build_prepared
from vt.engine.run.record import digest_config, record_training
from vt.engine.run.resume import ResumeHook
from vt.engine.run.runner import VTRunner
from vt.engine.run.work_directory import RECORD, start_of, use_work_directory
from vt.errors import UserError
from vt.files import write_json
from vt.hints import as_typed


@advising_size
def train(args: argparse.Namespace) -> Run:
    """Train, write settings, scores and times to ``training.json`` in the work directory, and return the run."""
    run = training_run(args)
    cfg, digest = run.cfg, digest_config(run.cfg)
    asked = args.resume or start_of(cfg)
    if args.new_schedule and not asked:
        raise UserError('--new-schedule requires --resume')
    with use_work_directory(cfg.work_dir, asked) as start:
        notes, is_new = [*start.notes], start.checkpoint is None
        if is_new and cfg.get('load_from'):
            require_file(cfg.load_from, 'checkpoint for load_from:')
        if is_new and not args.skip_data_check:  # a resumed run was checked before
            notes += check_data(run.data, ('train', 'val'))
        notes += compare_preparation(cfg) if is_new else []
        if args.skip_data_check:
            cfg.default_hooks.pop('dry_run', None)
        runner = build_prepared(run)
        runner.is_repeatable = True
        runner.start_from(replace(start, notes=tuple(notes)), args.new_schedule)
        if args.new_schedule and not any(isinstance(hook, ResumeHook) for hook in runner.hooks):
            raise UserError('--new-schedule requires vt.ResumeHook, which the config disables (default_hooks.resume)')
        runner.train()
        if is_main_process():
            record = record_training(runner, args.config, args.cfg_options or {}, digest)
            write_json(record, Path(cfg.work_dir, RECORD))
            for line in next_steps(runner):
                runner.logger.info(line)
    return run


def next_steps(runner: VTRunner) -> list[str]:
    """Return the last lines of a training: the best score and its checkpoint, and commands that use the run."""
    folder, here, best = Path(runner.work_dir), Path.cwd(), best_of(runner)
    folder = folder.relative_to(here) if folder.is_relative_to(here) else folder
    run = shlex.quote(str(folder))
    files = sorted(folder.glob('best_*.pth'), key=lambda path: path.stat().st_mtime)
    lines = [f'Best {best[0]} {best[1]:.2f}: {files[-1]}'] if best and files else []
    commands = [f'vt test {run} --report report'] if runner.cfg.get('test_dataloader') else []
    commands += [f'vt predict {run} {"video.mp4" if "Clip" in str(runner.cfg.model) else "photo.jpg"}']
    return [*lines, f'Next: {"; ".join(map(as_typed, commands))}']


def find_batch_size(args: argparse.Namespace) -> None:
    """Command of ``--find-batch-size``: print a table of the tested batch sizes, and the largest; write no files."""
    run = training_run(args)
    cfg = run.cfg
    if args.resume or get_world_size() > 1:
        raise UserError('--find-batch-size requires a single process, without --resume: batch sizes are per process')
    if (cfg.get('speed') or {}).get('train_graphs'):
        raise UserError('--find-batch-size does not work with speed.train_graphs: remove one of them')
    hook = BatchSizeHook()
    with TemporaryDirectory() as folder:
        cfg.work_dir, cfg.log_level = folder, 'WARNING'
        for name in ('dry_run', 'preemption'):
            cfg.default_hooks.pop(name, None)
        runner = build_prepared(run)
        runner.register_hook(hook)
        runner.train()
        images = len(runner.train_dataloader.dataset)
    print_table(hook.trials, title=f'Training steps of {args.config}, {torch.cuda.get_device_name()}')
    base = (cfg.get('auto_scale_lr') or {}).get('base_batch_size')
    rate = f' --auto-scale-lr (from {base})' if base else ', and scale the learning rate'
    end = ', all training images' if hook.largest == images else ''
    print(f'largest batch{end}: batch_size={hook.largest}{rate}')


def training_run(args: argparse.Namespace) -> Run:
    """Return the run for the arguments of ``vt train``."""
    run = prepare(args.config, RunOptions.of(args))
    for name in ('train_dataloader', 'train_cfg', 'optim_wrapper'):
        if not run.cfg.get(name):
            raise UserError(f'training requires {name} in the config')
    return run
