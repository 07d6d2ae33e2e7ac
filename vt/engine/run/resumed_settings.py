"""Compare the settings of a checkpoint with the config of the resumed run, and decide which ones apply."""

import copy
import json
import re
from typing import Any
from zlib import crc32

import numpy as np
from mmengine.dataset import BaseDataset
from mmengine.runner import Runner
from prettytable import PrettyTable
from torch.utils.data import Dataset

from vt.checkpoints.reading import Checkpoint
from vt.engine.config.parts import flatten
from vt.engine.hooks.num_classes import first_difference, labels_in, list_names, names_in, without_wrappers
from vt.engine.run.record import as_data
from vt.engine.run.schedules import advance, rates_after
from vt.errors import UserError
from vt.untrusted_text import printable

NEW = '--new-schedule'
SEED, PROCESSES = 'randomness.seed', 'number of processes'
SAMPLES, LABELS = 'number of training samples', 'labels of the training samples (checksum)'
MOST_LABELS = 10_000  # of which the checksum is
SCHEDULE = re.compile(r'param_scheduler\b|auto_scale_lr\.|optim_wrapper\.(\w+\.)?(optimizer|paramwise_cfg)\.')
PER_LAUNCH_KEYS = ('work_dir', 'load_from', 'resume', 'launcher', 'new_schedule')
TYPE = 'optim_wrapper.optimizer.type'
OTHER = ': resume with the optimizer settings of the checkpoint, or start from its weights with load_from'


def settings_of(runner: Runner) -> dict[str, Any]:
    """Return all settings of a run by their dotted keys, as plain data."""
    asked = {key: value for key, value in runner.cfg.to_dict().items() if key not in PER_LAUNCH_KEYS}
    data = _describe(runner.train_dataloader.dataset)
    return {PROCESSES: runner.world_size} | data | dict(flatten(as_data(asked)))


def _describe(dataset: Dataset) -> dict[str, Any]:
    """Return the number of training samples, and a checksum of their labels, or of those spread over them."""
    found: dict[str, Any] = {SAMPLES: len(dataset)}
    if getattr(type(without_wrappers(dataset)), 'get_data_info', None) is BaseDataset.get_data_info:  # else it may draw
        places = np.linspace(0, len(dataset) - 1, min(len(dataset), MOST_LABELS)).astype(int).tolist()
        labels = [labels_in(dataset.get_data_info(place)) for place in places]
        found[LABELS] = f'{crc32(str(labels).encode()):08x}'
    return found


def refuse_other_classes(checkpoint: dict, dataset: Dataset) -> None:
    """Raise a UserError if class indices differ from those of a checkpoint: a resumed run keeps names and order."""
    trained, classes = Checkpoint('', checkpoint).dataset_meta.get('classes') or (), names_in(dataset) or ()
    label = first_difference(trained, classes, translates=False) if trained and classes else None
    if label is not None:
        then, now = (list_names(names[label : label + 1]) or 'no class' for names in (trained, classes))
        words = f'label {label} is {then} in the checkpoint ({len(trained)} classes), but {now} in the training data'
        advice = 'give the data the classes of the checkpoint in its order, or start from its weights with load_from'
        raise UserError(f'{words} ({len(classes)} classes): {advice}')


def reconcile_settings(
    runner: Runner, checkpoint: dict, asked: dict[str, Any], length: int, is_rescaled: bool = False
) -> dict[str, Any]:
    """Log a table of differences between a checkpoint and the config, and decide which settings apply.

    Call it before the checkpoint is loaded and before schedulers step. By default the settings of optimizer and
    schedule are those of the checkpoint. With ``new_schedule`` in the config they are the config's, at the iteration of
    the checkpoint, and replace those in the checkpoint.

    Args:
        runner: the resumed run.
        checkpoint: the checkpoint, changed in place with ``new_schedule``.
        asked: the settings of the run, of :func:`settings_of`.
        length: number of iterations per epoch; 0 in a loop over iterations.
        is_rescaled: whether epochs had another number of iterations before the interruption, in which schedules by
            iteration are stored. The config's schedules are used then, at the same epoch.

    Returns:
        Settings of the checkpoint that are used in place of the config's, by their dotted keys.

    Raises:
        UserError: the checkpoint has no settings, another kind of optimizer or other parameter groups, or without
            ``new_schedule`` another kind of schedule, or another schedule of epochs of another length.
    """
    is_new, meta = bool(runner.cfg.get('new_schedule')), checkpoint['meta']
    if 'settings' not in meta:
        raise UserError('the checkpoint lacks the settings of its run (vt.ResumeHook): use load_from for its weights')
    had = json.loads(meta['settings'])
    had[SEED] = None if asked.get(SEED) is None else meta.get('seed')
    keys = sorted(key for key in asked | had if asked.get(key) != had.get(key))
    scheduled = [key for key in keys if SCHEDULE.match(key) and not key.endswith('.type')]
    then, now = (str(settings.get(TYPE)).rpartition('.')[2] for settings in (had, asked))
    if then != now:  # states of Adam and AdamW, for one, have the same keys
        raise UserError(f'the checkpoint has the optimizer {then}, but the config has {now}{OTHER}')
    wrapper: Any = runner.optim_wrapper
    schedulers: Any = runner.param_schedulers or ()
    groups = [len(checkpoint['optimizer']['param_groups']), len(wrapper.optimizer.param_groups)]
    if groups[0] != groups[1]:
        raise UserError(f'the checkpoint has {groups[0]} parameter groups, the run {groups[1]} (paramwise_cfg){OTHER}')
    if is_rescaled and any(not scheduler.by_epoch for scheduler in schedulers):
        if scheduled and not is_new:
            words = 'the schedule counts iterations, an epoch of the checkpoint has another number of them, and'
            raise UserError(f'{words} {scheduled[0]} differs: add {NEW}, or resume with the settings of the checkpoint')
        is_new = True
    if not (is_new or _schedulers_fit(runner, checkpoint)):
        raise UserError(f'the checkpoint has other schedulers than the config: resume with its own, or add {NEW}')
    kept = {key: had.get(key) for key in keys if key == SEED or (key in scheduled and not is_new)}
    table = [(key, had.get(key), asked.get(key), (had if key in kept else asked).get(key)) for key in keys]
    if keys or is_rescaled:
        rates = _compare_rates(runner, checkpoint, length)
        table += [(*row, row[2 if is_new else 1]) for row in rates]
        scheduled = scheduled or [setting for setting, *_ in rates]
        if is_new and scheduled:
            _take_config(runner, checkpoint, length)
    if table:
        advice = f'; {NEW} uses learning rate, decay and schedule of the config' if scheduled and not is_new else ''
        shown = PrettyTable(['setting', 'checkpoint', 'config', 'used'], align='l')
        shown.add_rows([[_show(cell) for cell in row] for row in table])
        log = runner.logger.warning if kept or advice else runner.logger.info
        log(f'The checkpoint and the config differ{advice}:\n{shown}')
    return kept


def _schedulers_fit(runner: Any, checkpoint: dict) -> bool:
    """Return whether the scheduler states of a checkpoint have the attributes of the run's schedulers."""
    now = [{name for name, value in vars(one).items() if not callable(value)} for one in runner.param_schedulers or []]
    return [names - {'optimizer'} for names in now] == [
        state.keys() for state in checkpoint.get('param_schedulers', [])
    ]


def _show(value: Any) -> str:
    return f'{value:.6g}' if isinstance(value, float) else printable(value, 60)


def _compare_rates(runner: Any, checkpoint: dict, length: int) -> list[tuple[str, Any, Any]]:
    """Compare the learning rate of the first group by both schedules, at the next and at the last iteration.

    Returns:
        Rows of name, rate of the checkpoint and rate of the config; empty if they are equal.
    """
    begin, end = checkpoint['meta']['iter'], max(checkpoint['meta']['iter'], runner.max_iters - 1)
    last = begin, end, len(runner.train_dataloader) if length else 0
    schedulers, old = runner.param_schedulers or [], checkpoint['optimizer']['param_groups'][0]
    asked = rates_after(schedulers, runner.optim_wrapper.optimizer.param_groups[:1], (0, begin, length), last)
    had = [old.get('lr'), 'other schedulers']
    if _schedulers_fit(runner, checkpoint):
        schedulers = [copy.copy(scheduler) for scheduler in schedulers]
        for scheduler, state in zip(schedulers, checkpoint.get('param_schedulers', [])):
            scheduler.load_state_dict(state)
        had = rates_after(schedulers, [old], (begin, begin, 0), last)
    names = ('learning rate, next iteration', 'learning rate, last iteration')
    return list(zip(names, had, asked)) if any(_show(old) != _show(new) for old, new in zip(had, asked)) else []


def _take_config(runner: Any, checkpoint: dict, length: int) -> None:
    """Step the schedulers to the checkpoint's iteration, and store them and the optimizer's settings in it."""
    schedulers, wrapper, state = runner.param_schedulers or [], runner.optim_wrapper, checkpoint['optimizer']
    advance(schedulers, 0, checkpoint['meta']['iter'], length)
    state['param_groups'] = [
        dict(new, params=old['params'])
        for new, old in zip(wrapper.optimizer.param_groups, state['param_groups'], strict=True)
    ]
    if wrapper.base_param_settings is not None:
        state['base_param_settings'] = wrapper.base_param_settings
    checkpoint['param_schedulers'] = [scheduler.state_dict() for scheduler in schedulers]
