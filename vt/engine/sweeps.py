"""Sweeps: train a config with all combinations of settings and seeds, on one machine or on a cluster.

Each run calls ``tools/train.py``; on a cluster it is a submitit job. Finished runs are skipped, interrupted runs resume
from their last checkpoint, and a run that fails does not stop the others. A run is identified by a digest of its
settings: a folder with a run of others is refused.
"""

import fcntl
import itertools
import json
import os
import re
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from vt.checkpoints.files import open_plain, read_json, temporary_folder, write_atomically
from vt.errors import UserError
from vt.untrusted_text import printable

from .errors import in_one_line
from .prepare import ROOT

try:
    import submitit
except ImportError as error:
    raise UserError("sweeps need submitit: pip install 'submitit>=1.5,<2'") from error

TRAIN = ROOT / 'tools/train.py'
MARK, RECORD = 'sweep_run.json', 'training.json'  # written at the start and at the end of a run
ERROR = re.compile(r'error: |[\w.]*(?:Error|Exception|Interrupt)\b')  # ours, or the end of a traceback
# What Python prints of errors in destructors and at the exit, which end nothing.
IGNORED = re.compile(r'^Exception ignored in.*\n(?:Traceback.*\n(?:\s.*\n)*)?\S.*\n?', re.MULTILINE)
NOT_SWEPT = {'randomness.seed': 'use --seeds', 'work_dir': 'use --work-dir'}


@dataclass(frozen=True)
class SweepRun:
    """One training of a sweep."""

    config: str  # path
    settings: tuple[str, ...]  # as key=value
    label: str  # name of the combination of settings
    seed: int
    work_dir: Path  # folder of the results
    digest: str = ''  # of the whole config, see vt.engine.config_parts.digest_config
    changed: float = 0.0  # when its data, or the weights that it begins with, changed last

    @property
    def is_finished(self) -> bool:
        """Whether the folder has the record of a finished run with these settings."""
        found = _read_identity(self.work_dir / RECORD)
        return found == (self.digest, self.seed)


def plan(config: str, settings: Sequence[str], seeds: Sequence[int], folder: Path) -> list[SweepRun]:
    """Return the runs of all combinations of settings and seeds, with work directories ``folder/LABEL_seed-SEED``.

    Args:
        config: path of the config.
        settings: settings as ``key=value,value``; commas inside brackets, and in a value in quotes, belong to it.
        seeds: seeds; all combinations of one seed come before the next seed.
        folder: folder of the sweep.

    Raises:
        UserError: a setting has another form, cannot be swept or is given twice, or two combinations have the same
            label.
    """
    split = [*map(_split, settings)]
    choices = dict(split)
    if twice := [key for key in choices if sum(key == other for other, _ in split) > 1]:
        raise UserError(f'{", ".join(twice)} is given twice: give all its values as key=value,value')
    for key in choices.keys() & NOT_SWEPT.keys():
        raise UserError(f'{key} cannot be swept: {NOT_SWEPT[key]}')
    names = _shorten([key for key, values in choices.items() if len(values) > 1])
    runs = []
    for seed, chosen in itertools.product(seeds, itertools.product(*choices.values())):
        values = dict(zip(choices, chosen))
        texts = {name: re.sub(r'[^\w.+-]+', '_', values[key]).strip('_') for key, name in names.items()}
        label = '_'.join(f'{name}={text}' for name, text in texts.items()) or Path(config).stem
        pairs = tuple(f'{key}={value}' for key, value in values.items())
        runs.append(SweepRun(config, pairs, label, seed, folder / f'{label}_seed-{seed}'))
    if len({run.work_dir for run in runs}) < len(runs):
        raise UserError('two combinations have the same name: give each value and each seed once')
    return runs


def claim(run: SweepRun) -> None:
    """Create the folder of a run with its mark, unless it is there.

    Raises:
        UserError: the folder contains a run of other settings or of earlier data, or one that no sweep started.
    """
    run.work_dir.parent.mkdir(parents=True, exist_ok=True)
    with temporary_folder(run.work_dir.parent) as folder:
        write_atomically(folder / 'run' / MARK, json.dumps(dict(digest=run.digest, seed=run.seed)))
        with suppress(OSError):  # it is there
            (folder / 'run').rename(run.work_dir)
    read = (_read_identity(run.work_dir / name) for name in (MARK, RECORD))
    found = {each for each in read if each is not None}
    other = 'a run with other settings' if found else 'a run that this sweep did not start'
    if found == {(run.digest, run.seed)}:
        mark = run.work_dir / MARK
        other = 'a run of earlier data or weights' if mark.exists() and mark.stat().st_mtime < run.changed else ''
    if other:
        raise UserError(f'{run.work_dir} contains {other}: remove it, or choose another --work-dir')


def last_change(paths: Iterable[str], sweep: Path) -> float:
    """Return when files or folders changed last, with all that they contain, by the time of their file system.

    Args:
        paths: paths; missing ones count as 0.
        sweep: folder of the sweep, which does not count, nor do the files of folders around it.
    """
    changed, sweep = 0.0, sweep.resolve()
    for path in map(Path, paths):
        found = [path] if path.is_file() else []
        for name, folders, files in os.walk(path, followlinks=True):
            folder = Path(name).resolve()
            if folder == sweep:
                folders.clear()
            elif not sweep.is_relative_to(folder):
                found += [folder, *(folder / file for file in files)]
        changed = max([changed, *(each.stat().st_mtime for each in found if each.exists())])
    return changed


def _read_identity(path: Path) -> tuple[str, int] | None:
    """Read digest and seed from a mark or a record; None without them."""
    with suppress(UserError):
        content = read_json(path, '', keys=['digest', 'seed'])
        return str(content['digest']), int(content['seed'])
    return None


def _split(setting: str) -> tuple[str, list[str]]:
    key, sign, text = setting.partition('=')
    values, depth, quote = [''], 0, ''
    for letter in text:
        depth += (letter in '[({') - (letter in '])}')
        if letter in ('"', "'") and (letter == quote or not values[-1].strip()):
            quote = '' if quote else letter
        if letter == ',' and not depth and not quote:
            values.append('')
        else:
            values[-1] += letter
    values = [value.strip() for value in values]
    if span := re.fullmatch(r'(\d+):(\d+)', text):
        values = [*map(str, range(int(span[1]), int(span[2])))]
    if not (key and sign and values and all(values)):
        raise UserError(f'{setting!r} must have the form key=value,value, or key=0:5 for 0 to 4')
    return key, values


def _shorten(keys: Sequence[str]) -> dict[str, str]:
    """Shorten dotted keys to as many of their last parts as distinguish them."""
    names = {}
    for key in keys:
        parts = key.split('.')
        ends = ['.'.join(parts[-length:]) for length in range(1, len(parts) + 1)]
        names[key] = next(end for end in ends if sum(f'.{other}'.endswith(f'.{end}') for other in keys) == 1)
    return names


class Training:
    """Function of a job. If the cluster preempts the job, submitit queues the result of ``checkpoint``."""

    def __call__(self, run: SweepRun, device: int | None = None) -> str | None:
        """Train a run; return None, or the line of output that tells why it failed.

        Args:
            run: the run.
            device: number of a GPU among those that this process sees; None for the CPU, or all GPUs of a job.
        """
        environment = dict(os.environ)
        if device is not None:
            seen = environment.get('CUDA_VISIBLE_DEVICES')
            environment['CUDA_VISIBLE_DEVICES'] = seen.split(',')[device] if seen else str(device)
        command = [sys.executable, str(TRAIN), run.config, '--work-dir', str(run.work_dir), '--resume']
        command += ['--launcher', 'none', '--cfg-options', f'randomness.seed={run.seed}', *run.settings]
        output = run.work_dir / 'output.txt'
        with open_plain(run.work_dir / 'sweep.lock', 'w') as lock, open_plain(output, 'a') as log:
            fcntl.flock(lock, fcntl.LOCK_EX)  # inherited by the training, which may outlive a killed sweep
            if run.is_finished:
                return None
            start = log.seek(0, os.SEEK_END)  # behind the output of earlier attempts
            result = subprocess.run(
                command, stdout=log, stderr=subprocess.STDOUT, env=environment, pass_fds=[lock.fileno()]
            )
        if result.returncode:
            return find_reason(output.read_bytes()[start:].decode(errors='replace'), result.returncode)
        if not run.is_finished:
            return 'the config has changed since the sweep was planned: run the sweep again'
        return None

    def checkpoint(self, *args) -> submitit.helpers.DelayedSubmission:
        """Return the same job, which will resume."""
        return submitit.helpers.DelayedSubmission(self, *args)


def find_reason(output: str, code: int) -> str:
    """Return the signal that ended a run, or the last error in its output, else its last line.

    Libraries may print more at the exit.
    """
    if code < 0:
        advice = '; the memory of the machine may be too small' if code == -signal.SIGKILL else ''
        return f'killed by signal {-code} ({signal.strsignal(-code)}){advice}'
    lines = [line for line in IGNORED.sub('', output).splitlines() if line.strip()]
    errors = [line for line in lines if ERROR.match(line)]
    return [f'exit code {code}', *lines[-1:], *errors[-1:]][-1]


def train_here(runs: Sequence[SweepRun], most: int, gpus: int, tell: Callable) -> list[str]:
    """Train runs on this machine.

    Args:
        runs: the runs.
        most: number of runs at a time.
        gpus: number of GPUs to distribute the runs over; 0 for the CPU.
        tell: function that is called at the end of each run with the run and None, or the reason why it failed.

    Returns:
        Label, seed and reason of each run that failed.
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
    """Train runs as an array of submitit jobs.

    Args:
        runs: the runs.
        folder: folder for the files of the jobs.
        cluster: ``'slurm'``, or ``'debug'`` for this process.
        tell: see :func:`train_here`.
        **settings: parameters of submitit's executor.

    Returns:
        Label, seed and reason of each run that failed.
    """
    executor = submitit.AutoExecutor(folder, cluster=cluster)
    executor.update_parameters(**settings)
    return [failure for run, job in zip(runs, executor.map_array(Training(), runs)) for failure in _end(run, job, tell)]


def _end(run: SweepRun, job: Future | submitit.Job, tell: Callable) -> list[str]:
    """Wait for a job; return a list with its failure, empty if it succeeded."""
    error = job.exception()
    reason = job.result() if error is None else f'its job failed ({printable(in_one_line(error), 300)})'
    tell(run, reason)
    return [f'{run.label}, seed {run.seed}: {reason}'] if reason else []


def enter_sweep(folder: Path, config: str) -> None:
    """Create a folder for sweeps of a config.

    Raises:
        UserError: the folder contains a sweep of another config.
    """
    folder.mkdir(parents=True, exist_ok=True)
    mark = folder / 'sweep.json'
    advice = 'remove it if the runs are of this config, or choose another --work-dir'
    before = read_json(mark, advice, keys=['config'])['config'] if mark.is_file() else config
    if before != config:
        raise UserError(f'{folder} contains a sweep of {before}: choose another --work-dir')
    write_atomically(mark, json.dumps(dict(config=config)))
