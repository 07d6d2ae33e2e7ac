"""Sweeps: a config trained with every combination of some settings and seeds, on one machine or on a cluster.

Every run is a job of submitit that calls ``tools/train.py``. A run that is finished is left alone, one that was stopped
goes on from its last checkpoint, and one that fails leaves the others alone.
"""

import fcntl
import itertools
import json
import os
import re
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from vt.checkpoints.files import read_json, write_atomically
from vt.errors import UserError

from .config_files import ROOT

try:
    import submitit
except ImportError as error:
    raise UserError("sweeps need submitit: pip install 'submitit>=1.5,<2'") from error

Executor = submitit.Executor
TRAIN = ROOT / 'tools/train.py'
POLL = 0.5  # seconds between two looks at the jobs


@dataclass(frozen=True)
class SweepRun:
    """One training: ``settings`` as ``key=value``, its ``label`` and seed, and where it leaves its results."""

    config: str
    settings: tuple[str, ...]
    label: str
    seed: int
    work_dir: Path

    @property
    def is_finished(self) -> bool:
        """Whether its record is there."""
        return (self.work_dir / 'training.json').is_file()


def make_executor(folder: Path, cluster: str) -> Executor:
    """Who runs a sweep's jobs: ``cluster`` is submitit's ``'local'``, ``'debug'`` or ``'slurm'``."""
    return submitit.AutoExecutor(folder / 'jobs', cluster=cluster)


def plan(config: str, settings: Sequence[str], seeds: Sequence[int], folder: Path) -> list[SweepRun]:
    """The runs of every combination, ``folder/LABEL_seed-SEED``; those of a seed together, so that a stop leaves rows.

    Args:
        config: path of the config.
        settings: ``key=value,value``; a comma inside of brackets is a value's own.
        seeds: of every combination.
        folder: of the sweep.

    Raises:
        UserError: a setting is not of that form, or two combinations have one label.
    """
    choices = dict(map(_split, settings))
    names = _shorten([key for key, values in choices.items() if len(values) > 1])
    runs = []
    for seed, chosen in itertools.product(seeds, itertools.product(*choices.values())):
        values = dict(zip(choices, chosen))
        label = '_'.join(f'{name}={_as_name(values[key])}' for key, name in names.items()) or Path(config).stem
        pairs = tuple(f'{key}={value}' for key, value in values.items())
        runs.append(SweepRun(config, pairs, label, seed, folder / f'{label}_seed-{seed}'))
    if len({run.work_dir for run in runs}) < len(runs):
        raise UserError('two combinations have one name: give each value and each seed once')
    return runs


def _split(setting: str) -> tuple[str, list[str]]:
    key, sign, text = setting.partition('=')
    values = [value.strip() for value in re.split(r',(?![^\[(]*[\])])', text)]
    if not (key and sign and all(values)):
        raise UserError(f'{setting!r} is not of the form key=value,value')
    return key, values


def _as_name(value: str) -> str:
    """A value as a part of a folder's name."""
    return re.sub(r'[^\w.+-]+', '_', value).strip('_')


def _shorten(keys: Sequence[str]) -> dict[str, str]:
    """Of each dotted key as many of its last parts as tell it from the others."""
    names = {}
    for key in keys:
        parts = key.split('.')
        ends = ['.'.join(parts[-length:]) for length in range(1, len(parts) + 1)]
        names[key] = next(end for end in ends if sum(f'.{other}'.endswith(f'.{end}') for other in keys) == 1)
    return names


class Training:
    """What a job does; where a cluster takes a machine back, submitit queues what ``checkpoint`` gives it."""

    def __call__(self, run: SweepRun, device: int | None = None) -> str | None:
        """Train, on one GPU of this machine where ``device`` names it; None, or the last line of one that failed."""
        run.work_dir.mkdir(parents=True, exist_ok=True)
        environment = dict(os.environ) if device is None else os.environ | dict(CUDA_VISIBLE_DEVICES=str(device))
        command = [sys.executable, str(TRAIN), run.config, '--work-dir', str(run.work_dir), '--resume']
        command += ['--launcher', 'none', '--cfg-options', f'randomness.seed={run.seed}', *run.settings]
        output = run.work_dir / 'output.txt'
        with (run.work_dir / 'sweep.lock').open('w') as lock, output.open('a') as log:
            fcntl.flock(lock, fcntl.LOCK_EX)  # the job of a sweep that was killed may still train it
            if run.is_finished:
                return None
            failed = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, env=environment).returncode
        lines = [line for line in output.read_text().splitlines() if line.strip()]
        return (lines[-1] if lines else f'exit code {failed}') if failed else None

    def checkpoint(self, *args) -> submitit.helpers.DelayedSubmission:
        """The same job once more, which resumes."""
        return submitit.helpers.DelayedSubmission(self, *args)


def train_here(
    runs: Sequence[SweepRun], executor: submitit.Executor, most: int, gpus: int, tell: Callable
) -> list[str]:
    """Train on this machine, ``most`` runs at a time, each on a GPU of its own where there are some.

    Args:
        runs: those that are not finished.
        executor: submitit's for local jobs.
        most: how many at a time.
        gpus: how many there are; each run gets one of them.
        tell: called with a run and None, or how it failed, when it has ended.

    Returns:
        Labels and seeds of those that failed, with why.
    """
    waiting, jobs, failures = deque(runs), {}, []
    free = deque(range(most))
    try:
        while waiting or jobs:
            while waiting and free:
                slot, run = free.popleft(), waiting.popleft()
                jobs[run] = slot, executor.submit(Training(), run, slot % gpus if gpus else None)
            for run, (slot, job) in list(jobs.items()):
                if job.done():
                    free.append(slot)
                    del jobs[run]
                    failures += _end(run, job, tell)
            time.sleep(POLL)
    finally:
        for _, job in jobs.values():
            job.cancel()
    return failures


def train_as_array(runs: Sequence[SweepRun], executor: submitit.Executor, tell: Callable) -> list[str]:
    """Train as one array of jobs of a cluster; arguments and result as of :func:`train_here`."""
    jobs = executor.map_array(Training(), runs)
    return [failure for run, job in zip(runs, jobs) for failure in _end(run, job, tell)]


def _end(run: SweepRun, job: submitit.Job, tell: Callable) -> list[str]:
    """Wait for a job; nothing, or how it failed."""
    error = job.exception()
    reason = job.result() if error is None else f'its job failed ({type(error).__name__}); see {job.paths.stderr}'
    tell(run, reason)
    return [f'{run.label}, seed {run.seed}: {reason}'] if reason else []


def enter_sweep(folder: Path, config: str) -> None:
    """Mark a folder as a sweep of a config.

    Raises:
        UserError: it is one of another config.
    """
    folder.mkdir(parents=True, exist_ok=True)
    mark = folder / 'sweep.json'
    advice = 'remove it if the runs are of this config, or give another --work-dir'
    before = read_json(mark, advice, keys=['config'])['config'] if mark.is_file() else config
    if before != config:
        raise UserError(f'{folder} holds a sweep of {before}: give another --work-dir')
    write_atomically(mark, json.dumps(dict(config=config)))
