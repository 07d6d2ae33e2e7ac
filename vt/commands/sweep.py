"""Command of ``tools/sweep.py``: sweeps over settings and seeds."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import joblib
import torch
from rich.console import Console

from vt.apis.published import named_weights
from vt.engine.checks.config import check_config
from vt.engine.config_parts import digest_config, leaves
from vt.engine.errors import in_one_line
from vt.engine.prepare import read_config
from vt.engine.sweeps import SweepRun, claim, last_change, plan, split_values, train_as_array, train_here
from vt.errors import UserError
from vt.untrusted_text import printable

from .arguments import parse_options


def sweep(args: argparse.Namespace) -> None:
    """Train a config with every combination of settings and seeds; finished runs are skipped.

    Raises:
        UserError: a wrong key or value, before training starts; or, at the end, failed runs.
    """
    if args.jobs is not None and args.jobs < 1:
        raise UserError(f'--jobs {args.jobs}: give 1 or more')
    try:
        seeds = [int(seed) for seed in split_values(args.seeds, f'--seeds={args.seeds}')]
    except ValueError as error:
        raise UserError(f'--seeds {args.seeds}: give them as 0:3 (0, 1 and 2) or as 0,4') from error
    folder = Path(args.work_dir or f'work_dirs/sweeps/{Path(args.config).stem}')
    runs = identify(plan(args.config, args.settings, seeds, folder), folder)
    try:
        train_all(runs, folder, args)
    finally:
        print(f'python tools/analysis/report.py sweep {folder}')


def identify(runs: Sequence[SweepRun], folder: Path) -> list[SweepRun]:
    """Return runs with the digests of their settings, and the times when their data changed last.

    Raises:
        UserError: a wrong key or value.
    """

    @cache
    def read(config: str, settings: tuple[str, ...]) -> tuple[str, float]:
        options = parse_options(settings)
        cfg = read_config(config, options)
        check_config(cfg, options)
        paths = [cfg.get('load_from'), *named_weights(cfg.model)]
        loaders = [cfg.get(name) or {} for name in ('train_dataloader', 'val_dataloader')]
        for data in [leaf for loader in loaders for leaf in leaves(loader.get('dataset'))]:
            prefix = data.get('data_prefix')
            folders = prefix.values() if isinstance(prefix, dict) else [prefix]
            paths += [data['data_root']] if data.get('data_root') else [data.get('ann_file'), *folders]
        return digest_config(cfg), last_change([str(path) for path in paths if path], folder)

    identities = [read(run.config, run.settings) for run in runs]
    return [replace(run, digest=digest, changed=changed) for run, (digest, changed) in zip(runs, identities)]


def train_all(runs: Sequence[SweepRun], folder: Path, args: argparse.Namespace) -> None:
    """Train the unfinished runs.

    Raises:
        UserError: a folder contains another run; or, at the end, failed runs.
    """
    for run in runs:
        claim(run)
    waiting = [run for run in runs if not run.is_finished]
    print(f'{len(runs)} runs in {folder}, {len(runs) - len(waiting)} of them finished before')
    if not waiting:
        return
    if args.executor == 'local':
        gpus = torch.cuda.device_count()
        cores = joblib.cpu_count(only_physical_cores=True)
        most = min(args.jobs or gpus or cores, len(waiting))
        if most > 1:  # threads of parallel runs on the same cores would slow each other down
            os.environ.setdefault('OMP_NUM_THREADS', '1' if gpus else str(max(1, cores // most)))
        jobs = train_here(waiting, most, gpus)
    else:
        parameters = dict(slurm_partition=args.partition, mem_gb=args.memory, cpus_per_task=args.cpus)
        parameters |= dict(gpus_per_node=args.gpus, slurm_array_parallelism=args.jobs, timeout_min=args.time)
        settings = dict(name=folder.name) | {key: value for key, value in parameters.items() if value is not None}
        jobs = train_as_array(waiting, folder / 'jobs', args.executor, **settings)
    console, failures = Console(highlight=False, soft_wrap=True), []
    for run, job in jobs:
        error = job.exception()
        reason = job.result() if error is None else f'its job failed ({printable(in_one_line(error), 300)})'
        console.print(f'{run.label}, seed {run.seed}: {reason or "finished"}', markup=False)
        if reason:
            failures.append(f'{run.label}, seed {run.seed}: {reason}')
    if failures:
        raise UserError(f'{len(failures)} of {len(runs)} runs failed, see output.txt of each: {"; ".join(failures)}')
