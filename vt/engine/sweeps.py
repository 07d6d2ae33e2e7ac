"""Sweeps: a config trained with every combination of some settings and seeds, on one machine or on a cluster.

Every run calls ``tools/train.py``; on a cluster it is a job of submitit. A finished run is skipped, one that
was stopped goes on from its last checkpoint, and one that fails leaves the others alone. A run is known by the digest
of all of its settings: where its folder holds one of others, it is trained in a folder beside.
"""

import fcntl
import itertools
import json
import os
import re
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from vt.checkpoints.files import read_json, write_atomically
from vt.errors import UserError
from vt.untrusted_text import printable

from .config_files import ROOT
from .errors import in_one_line

try:
    import submitit
except ImportError as error:
    raise UserError("sweeps need submitit: pip install 'submitit>=1.5,<2'") from error

TRAIN = ROOT / 'tools/train.py'
MARK, RECORD = 'sweep_run.json', 'training.json'  # of a run that begins, and of one that has ended
NOT_SWEPT = {'randomness.seed': 'give seeds by --seeds', 'work_dir': 'give it by --work-dir'}


@dataclass(frozen=True)
class SweepRun:
    """One training: ``settings`` as ``key=value``, its ``label`` and seed, and where it leaves its results.

    ``digest`` is that of its whole config, see :func:`vt.engine.config_files.digest_config`.
    """

    config: str
    settings: tuple[str, ...]
    label: str
    seed: int
    work_dir: Path
    digest: str = ''

    @property
    def is_finished(self) -> bool:
        """Whether its record is there, and is of these settings."""
        return _read_identity(self.work_dir / RECORD) == (self.digest, self.seed)


def plan(config: str, settings: Sequence[str], seeds: Sequence[int], folder: Path) -> list[SweepRun]:
    """The runs of every combination, ``folder/LABEL_seed-SEED``; those of a seed together, so that a stop leaves rows.

    ``settings`` are of the form ``key=value,value``; a comma inside of brackets is a value's own.

    Raises:
        UserError: a setting is not of that form, or the sweep sets it itself; two combinations have one label.
    """
    choices = dict(map(_split, settings))
    for key in choices.keys() & NOT_SWEPT.keys():
        raise UserError(f'{key} is not swept: {NOT_SWEPT[key]}')
    names = _shorten([key for key, values in choices.items() if len(values) > 1])
    runs = []
    for seed, chosen in itertools.product(seeds, itertools.product(*choices.values())):
        values = dict(zip(choices, chosen))
        texts = {name: re.sub(r'[^\w.+-]+', '_', values[key]).strip('_') for key, name in names.items()}
        label = '_'.join(f'{name}={text}' for name, text in texts.items()) or Path(config).stem
        pairs = tuple(f'{key}={value}' for key, value in values.items())
        runs.append(SweepRun(config, pairs, label, seed, folder / f'{label}_seed-{seed}'))
    if len({run.work_dir for run in runs}) < len(runs):
        raise UserError('two combinations have one name: give each value and each seed once')
    return runs


def settle(run: SweepRun, tell: Callable[[str], None]) -> SweepRun:
    """Give a run a folder that is its own: the planned one, or, where that holds a run of other settings, one beside.

    ``tell`` is called with a line where it is another folder, or a record is damaged.

    Raises:
        UserError: the folder beside is not its own either.
    """
    name = f'{run.label}, seed {run.seed}'
    settled, other = run, _claim(run)
    if other:
        settled = replace(run, work_dir=run.work_dir.with_name(f'{run.work_dir.name}_{run.digest[:8]}'))
        if why := _claim(settled):
            raise UserError(f'{settled.work_dir} {why}: remove it, or give another --work-dir')
        tell(f'{name}: {run.work_dir} {other}; this run is in {settled.work_dir}')
    if (record := settled.work_dir / RECORD).exists() and not settled.is_finished:
        tell(f'{name}: {record} is damaged; the run goes on from its last checkpoint')
    return settled


def _claim(run: SweepRun) -> str | None:
    """Mark the folder of a run as its own; or why it is not: it is there, and of others."""
    try:
        run.work_dir.mkdir(parents=True)
        write_atomically(run.work_dir / MARK, json.dumps(dict(digest=run.digest, seed=run.seed)))
        return None
    except FileExistsError:
        found = {_read_identity(run.work_dir / name) for name in (MARK, RECORD)} - {None}
    if not found:
        return 'holds a run without a digest of its settings, of an earlier version or by hand'
    return None if found == {(run.digest, run.seed)} else 'holds a run of other settings'


def _read_identity(path: Path) -> tuple[str, int] | None:
    """Digest and seed in a mark or a record; None where it is not there, damaged, or of an earlier version."""
    with suppress(UserError):
        content = read_json(path, '', keys=['digest', 'seed'])
        return str(content['digest']), int(content['seed'])
    return None


def _split(setting: str) -> tuple[str, list[str]]:
    key, sign, text = setting.partition('=')
    values = [value.strip() for value in re.split(r',(?![^\[({]*[\])}])', text)]
    if span := re.fullmatch(r'(\d+):(\d+)', text):
        values = [*map(str, range(int(span[1]), int(span[2])))]
    if not (key and sign and values and all(values)):
        raise UserError(f'{setting!r} is not of the form key=value,value, or key=0:5 for 0 to 4')
    return key, values


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
        environment = dict(os.environ) if device is None else os.environ | dict(CUDA_VISIBLE_DEVICES=str(device))
        command = [sys.executable, str(TRAIN), run.config, '--work-dir', str(run.work_dir), '--resume']
        command += ['--launcher', 'none', '--cfg-options', f'randomness.seed={run.seed}', *run.settings]
        output = run.work_dir / 'output.txt'
        with (run.work_dir / 'sweep.lock').open('w') as lock, output.open('a') as log:
            fcntl.flock(lock, fcntl.LOCK_EX)  # which the training inherits: it outlives a sweep that is killed
            if run.is_finished:
                return None
            result = subprocess.run(
                command, stdout=log, stderr=subprocess.STDOUT, env=environment, pass_fds=[lock.fileno()]
            )
        lines = [line for line in output.read_text().splitlines() if line.strip()]
        if result.returncode:
            return lines[-1] if lines else f'exit code {result.returncode}'
        if not run.is_finished:
            return 'other settings were trained than planned: the config has changed meanwhile; call the sweep again'
        return None

    def checkpoint(self, *args) -> submitit.helpers.DelayedSubmission:
        """The same job once more, which resumes."""
        return submitit.helpers.DelayedSubmission(self, *args)


def train_here(runs: Sequence[SweepRun], most: int, gpus: int, tell: Callable) -> list[str]:
    """Train on this machine, ``most`` runs at a time, each on a GPU of its own where there are ``gpus``.

    When a run has ended ``tell`` is called with it and None, or how it failed. Returns labels and seeds of those that
    failed, with why.
    """
    free = deque(range(most))

    def train(run: SweepRun) -> str | None:
        slot = free.popleft()
        try:
            return Training()(run, slot % gpus if gpus else None)
        finally:
            free.append(slot)

    pool = ThreadPoolExecutor(most)
    try:
        jobs = {pool.submit(train, run): run for run in runs}
        return [failure for job in as_completed(jobs) for failure in _end(jobs[job], job, tell)]
    finally:
        pool.shutdown(cancel_futures=True)


def train_as_array(runs: Sequence[SweepRun], folder: Path, cluster: str, tell: Callable, **settings) -> list[str]:
    """Train as one array of jobs of submitit's ``'slurm'``, or of ``'debug'``, this process; as :func:`train_here`.

    ``folder`` is that of the jobs' files, ``settings`` those of submitit's executor.
    """
    executor = submitit.AutoExecutor(folder, cluster=cluster)
    executor.update_parameters(**settings)
    return [failure for run, job in zip(runs, executor.map_array(Training(), runs)) for failure in _end(run, job, tell)]


def _end(run: SweepRun, job: Future | submitit.Job, tell: Callable) -> list[str]:
    """Wait for a job; nothing, or how it failed."""
    error = job.exception()
    reason = job.result() if error is None else f'its job failed ({printable(in_one_line(error), 300)})'
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
