"""Command of ``tools/sweep.py``: sweeps over settings and seeds."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import joblib
import torch
from rich.console import Console

from vt.apis.published import named_weights
from vt.engine.checks.config import check_config
from vt.engine.config_parts import digest_config, leaves
from vt.engine.prepare import read_config
from vt.engine.sweeps import SweepRun, claim, enter_sweep, last_change, plan, train_as_array, train_here
from vt.errors import UserError

from .arguments import parse_options

LOADERS = 'train_dataloader', 'val_dataloader'


def sweep(args: argparse.Namespace) -> None:
    """Train a config with every combination of settings and seeds; finished runs are skipped.

    Raises:
        UserError: a wrong key or value, before training starts; or, at the end, failed runs.
    """
    if args.jobs is not None and args.jobs < 1:
        raise UserError(f'--jobs {args.jobs}: give 1 or more')
    folder = Path(args.work_dir or f'work_dirs/sweeps/{Path(args.config).stem}')
    runs = plan(args.config, args.settings, _read_seeds(args.seeds), folder)
    identities = identify(runs, folder)
    enter_sweep(folder, args.config)
    try:
        train_all(runs, identities, folder, args)
    finally:
        print(f'python tools/analysis/report.py sweep {folder}')


def identify(runs: Sequence[SweepRun], folder: Path) -> dict[tuple, dict[str, Any]]:
    """Return the digests of the runs' settings, and when their data changed last, by config and settings.

    Raises:
        UserError: a wrong key or value.
    """
    identities: dict[tuple, dict[str, Any]] = {(run.config, run.settings): {} for run in runs}
    for config, settings in identities:
        options = parse_options(settings)
        cfg = read_config(config, options)
        check_config(cfg, options)
        data = [leaf for name in LOADERS for leaf in leaves((cfg.get(name) or {}).get('dataset'))]
        paths = [cfg.get('load_from'), *named_weights(cfg.model)]
        for each in data:
            prefix = each.get('data_prefix')
            folders = prefix.values() if isinstance(prefix, dict) else [prefix]
            paths += [each['data_root']] if each.get('data_root') else [each.get('ann_file'), *folders]
        changed = last_change([str(path) for path in paths if path], folder)
        identities[config, settings] = dict(digest=digest_config(cfg), changed=changed)
    return identities


def train_all(
    runs: Sequence[SweepRun], identities: dict[tuple, dict[str, Any]], folder: Path, args: argparse.Namespace
) -> list[SweepRun]:
    """Train the unfinished runs; return all runs.

    Raises:
        UserError: a folder contains another run; or, at the end, failed runs.
    """
    runs = [replace(run, **identities[run.config, run.settings]) for run in runs]
    for run in runs:
        claim(run)
    waiting = [run for run in runs if not run.is_finished]
    print(f'{len(runs)} runs in {folder}, {len(runs) - len(waiting)} of them finished before')
    console = Console(highlight=False, soft_wrap=True)

    def tell(run: SweepRun, reason: str | None) -> None:
        console.print(f'{run.label}, seed {run.seed}: {reason or "finished"}', markup=False)

    failures = []
    if waiting and args.executor == 'local':
        gpus = torch.cuda.device_count()
        cores = joblib.cpu_count(only_physical_cores=True)
        most = min(args.jobs or gpus or cores, len(waiting))
        if most > 1:  # threads of parallel runs on the same cores would slow each other down
            os.environ.setdefault('OMP_NUM_THREADS', '1' if gpus else str(max(1, cores // most)))
        failures = train_here(waiting, most, gpus, tell)
    elif waiting:
        parameters = dict(slurm_partition=args.partition, mem_gb=args.memory, cpus_per_task=args.cpus)
        parameters |= dict(gpus_per_node=args.gpus, slurm_array_parallelism=args.jobs, timeout_min=args.time)
        settings = dict(name=folder.name) | {key: value for key, value in parameters.items() if value is not None}
        failures = train_as_array(waiting, folder / 'jobs', args.executor, tell, **settings)
    if failures:
        raise UserError(f'{len(failures)} of {len(runs)} runs failed, see output.txt of each: {"; ".join(failures)}')
    return runs


def _read_seeds(text: str) -> list[int]:
    """Parse seeds: ``'0:3'`` is 0, 1, 2; ``'0,4'`` is 0 and 4."""
    first, colon, last = text.partition(':')
    try:
        seeds = list(range(int(first), int(last))) if colon else [int(seed) for seed in text.split(',')]
    except ValueError:
        seeds = []
    if not seeds:
        raise UserError(f'--seeds {text}: give them as 0:3 (0, 1 and 2) or as 0,4')
    return seeds
