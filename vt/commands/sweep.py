"""Command of ``vt sweep``: train a config with all combinations of settings and seeds.

Each run calls ``vt train``, which lets only one training into a folder. Finished runs are skipped, interrupted
runs resume from their last checkpoint, and a run that fails does not stop the others. A run is identified by a digest
of its settings: a folder that contains another run is refused.
"""

import argparse
import itertools
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import joblib
import torch
from rich.console import Console

from vt.apis.model_zoo import name_of
from vt.engine.config.parts import flatten, leaves, shorten_keys
from vt.engine.config.pretrained import named_weights
from vt.engine.config.steps import RunOptions, prepare, read_config
from vt.engine.reporting import in_one_line
from vt.engine.run.record import as_data, digest_config
from vt.engine.run.work_directory import RECORD
from vt.errors import MissingFileError, UserError
from vt.files import ROOT, read_json, write_atomically, write_json
from vt.hints import as_typed
from vt.key_values import parse_options

TRAIN = ROOT / 'tools/train.py'
KILLED = 9  # number of SIGKILL, which Windows does not have
MARK = 'sweep_run.json'  # written at the start of a run, as its record is at the end
ORDER = 'sweep.json'  # of the labels
NOT_SWEPT = {'randomness.seed': 'use --seeds', 'work_dir': 'use --work-dir'}


@dataclass(frozen=True)
class SweepRun:
    """One training of a sweep."""

    config: str  # path
    settings: tuple[str, ...]  # as key=value
    label: str  # name of the combination of settings
    seed: int
    work_dir: Path  # folder of the results
    digest: str = ''  # of the whole config, see vt.engine.run.record.digest_config
    changed: float = 0.0  # when its data, or the weights that it begins with, changed last

    @property
    def is_finished(self) -> bool:
        """Whether the folder has the record of a finished run with these settings."""
        return self.digest_in(RECORD) == f'{self.digest} {self.seed}'

    def digest_in(self, name: str) -> str:
        """Return digest and seed in a file of the folder, its mark or its record; empty without them."""
        with suppress(UserError):
            content = read_json(self.work_dir / name, '', keys=['digest', 'seed'])
            return f'{content["digest"]} {content["seed"]}'
        return ''


def sweep(args: argparse.Namespace) -> None:
    """Train a config with every combination of settings and seeds; finished runs are skipped.

    Raises:
        UserError: a wrong key or value, before training starts; or, at the end, failed runs.
    """
    if args.jobs is not None and args.jobs < 1:
        raise UserError(f'--jobs {args.jobs} must be at least 1')
    try:
        seeds = [int(seed) for seed in split_values(args.seeds, f'--seeds={args.seeds}')]
    except ValueError as error:
        raise UserError(f'--seeds {args.seeds}: write 0:3 for 0, 1 and 2, or a list such as 0,4') from error
    folder = Path(args.work_dir or f'work_dirs/sweeps/{name_of(args.config)}')
    known = dict(flatten(as_data(read_config(args.config).to_dict())))
    runs = identify(plan(args.config, args.settings, seeds, folder, known), folder)
    note_order([run.label for run in runs], folder)
    try:
        train_all(runs, folder, args.jobs)
    finally:
        print(as_typed(f'vt report sweep {shlex.quote(str(folder))}'))


def plan(
    config: str, settings: Sequence[str], seeds: Sequence[int], folder: Path, known: Iterable[str] = ()
) -> list[SweepRun]:
    """Return the runs of all combinations of settings and seeds, with work directories ``folder/LABEL_seed-SEED``.

    Args:
        config: path of the config.
        settings: settings as ``key=value,value``; commas inside brackets, and in a value in quotes, belong to it.
        seeds: seeds; all combinations of one seed come before the next seed.
        folder: folder of the sweep.
        known: keys of the config, from which the short ones in labels differ.

    Raises:
        UserError: a setting has another form, cannot be swept or is given twice, or two combinations have the same
            label.
    """
    choices: dict[str, list[str]] = {}
    for setting in settings:
        key, _, text = setting.partition('=')
        if key in choices:
            raise UserError(f'{key} is given twice: give all values at once, key=value,value')
        choices[key] = split_values(text, setting)
    for key in choices.keys() & NOT_SWEPT.keys():
        raise UserError(f'{key} cannot be swept: {NOT_SWEPT[key]}')
    names = shorten_keys([key for key, values in choices.items() if len(values) > 1], known)
    runs = []
    for seed, chosen in itertools.product(seeds, itertools.product(*choices.values())):
        values = dict(zip(choices, chosen))
        texts = {name: re.sub(r'[^\w.+-]+', '_', values[key]).strip('_') for key, name in names.items()}
        label = '_'.join(f'{name}={text}' for name, text in texts.items()) or name_of(config)
        pairs = tuple(f'{key}={value}' for key, value in values.items())
        runs.append(SweepRun(config, pairs, label, seed, folder / f'{label}_seed-{seed}'))
    if len({run.work_dir for run in runs}) < len(runs):
        raise UserError('two combinations have the same name: give each value and each seed once')
    return runs


def split_values(text: str, setting: str) -> list[str]:
    """Split the values of a setting, such as ``1,2`` or ``0:5``; commas in brackets or quotes belong to a value."""
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
    if setting.startswith('=') or not (values and all(values)):
        raise UserError(f'{setting!r} must have the form key=value,value, or key=0:5 for 0 to 4')
    return values


def note_order(labels: Iterable[str], folder: Path) -> None:
    """Write the labels of a sweep in the order of its command, and behind them those of earlier commands."""
    write_json([*dict.fromkeys([*labels, *read_order(folder)])], folder / ORDER)


def read_order(folder: Path) -> list[str]:
    """Return the labels of a sweep in the order of its last command; none without their file."""
    with suppress(MissingFileError):
        return read_json(folder / ORDER, 'remove it', shape=[str])
    return []


def identify(runs: Sequence[SweepRun], folder: Path) -> list[SweepRun]:
    """Return runs with the digests of their settings, and the times when their data changed last.

    Raises:
        UserError: a wrong key or value.
    """

    @cache
    def read(config: str, settings: tuple[str, ...]) -> tuple[str, float]:
        options = parse_options(settings)
        cfg = prepare(config, RunOptions(options, shows=True)).cfg
        paths = [cfg.get('load_from'), *named_weights(cfg.model)]
        loaders = [cfg.get(name) or {} for name in ('train_dataloader', 'val_dataloader')]
        for data in [leaf for loader in loaders for leaf in leaves(loader.get('dataset'))]:
            prefix = data.get('data_prefix')
            folders = prefix.values() if isinstance(prefix, dict) else [prefix]
            paths += [data['data_root']] if data.get('data_root') else [data.get('ann_file'), *folders]
        return digest_config(cfg), last_change([str(path) for path in paths if path], folder)

    identities = [read(run.config, run.settings) for run in runs]
    return [replace(run, digest=digest, changed=changed) for run, (digest, changed) in zip(runs, identities)]


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


def claim(run: SweepRun) -> None:
    """Mark the folder of a new run.

    Raises:
        UserError: the folder contains a run of other settings or of earlier data, or one that no sweep started.
    """
    mark, identity = run.work_dir / MARK, f'{run.digest} {run.seed}'
    if not any(run.work_dir.glob('[!.]*')):
        write_atomically(mark, json.dumps(dict(digest=run.digest, seed=run.seed)))
    is_earlier = mark.exists() and mark.stat().st_mtime < run.changed
    if is_earlier or {run.digest_in(MARK), run.digest_in(RECORD)} - {''} != {identity}:
        words = 'a run with other settings, or with data or weights that have changed since'
        raise UserError(f'{run.work_dir} contains {words}: remove it, or choose another --work-dir')


def train_all(runs: Sequence[SweepRun], folder: Path, jobs: int | None = None) -> None:
    """Train the unfinished runs, several at a time.

    Args:
        runs: the runs, see :func:`identify`.
        folder: folder of the sweep.
        jobs: number of runs at a time; by default that of the GPUs, or of the cores.

    Raises:
        UserError: a folder contains another run; or, at the end, failed runs.
    """
    for run in runs:
        claim(run)
    waiting = [run for run in runs if not run.is_finished]
    print(f'{len(runs)} runs in {folder}, {len(runs) - len(waiting)} of them finished before')
    if not waiting:
        return
    gpus, cores = torch.cuda.device_count(), joblib.cpu_count(only_physical_cores=True)
    most = min(jobs or gpus or cores, len(waiting))
    if most > 1:  # threads of parallel runs on the same cores would slow each other down
        os.environ.setdefault('OMP_NUM_THREADS', '1' if gpus else str(max(1, cores // most)))
    free = deque(range(most))
    console, failures = Console(highlight=False, soft_wrap=True), []

    def train(run: SweepRun) -> None:
        slot = free.popleft()
        try:
            reason = train_run(run, slot % gpus if gpus else None)
        except Exception as error:  # of any type: the others go on
            reason = in_one_line(error)
        finally:
            free.append(slot)
        console.print(f'{run.label}, seed {run.seed}: {reason or "finished"}', markup=False)
        if reason:
            failures.append(f'{run.label}, seed {run.seed}: {reason}')

    with ThreadPoolExecutor(most) as pool:  # an interruption waits for the runs that have begun, and begins no other
        [*pool.map(train, waiting)]
    if failures:
        raise UserError(f'{len(failures)} of {len(runs)} runs failed, see output.txt of each: {"; ".join(failures)}')


def train_run(run: SweepRun, device: int | None = None) -> str | None:
    """Train a run; return None, or the line of output that tells why it failed.

    Args:
        run: the run.
        device: number of a GPU among those that this process sees; None for the CPU.
    """
    if run.is_finished:  # by another call, meanwhile
        return None
    environment = dict(os.environ)
    if device is not None:
        seen = environment.get('CUDA_VISIBLE_DEVICES')
        environment['CUDA_VISIBLE_DEVICES'] = seen.split(',')[device] if seen else str(device)
    command = [sys.executable, str(TRAIN), run.config, '--work-dir', str(run.work_dir), '--resume']
    command += ['--launcher', 'none', '--cfg-options', f'randomness.seed={run.seed}', *run.settings]
    output = run.work_dir / 'output.txt'
    with output.open('a', encoding='utf-8') as log:
        start = log.tell()  # behind the output of earlier attempts
        result = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, env=environment)
    if result.returncode:
        return find_reason(output.read_bytes()[start:].decode(errors='replace'), result.returncode)
    return None if run.is_finished else 'the config has changed since the sweep was planned: run the sweep again'


def find_reason(output: str, code: int) -> str:
    """Return the signal that ended a run, or the error in its output, else its last line."""
    if code < 0:
        advice = '; the memory of the machine may be too small' if code == -KILLED else ''
        return f'killed by signal {-code} ({signal.strsignal(-code)}){advice}'
    lines = [line for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith('error: ')]
    return [f'exit code {code}', *lines[-1:], *errors[-1:]][-1]
