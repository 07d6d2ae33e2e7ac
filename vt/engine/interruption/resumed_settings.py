"""Where a checkpoint and the config of the run that goes on from it differ: what holds, and what the log says."""

import copy
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from mmengine.optim import OptimWrapper, OptimWrapperDict
from mmengine.runner import Runner
from prettytable import PrettyTable

from vt.engine.config_files import as_data
from vt.engine.schedules import advance, rates_after
from vt.errors import UserError
from vt.untrusted_text import printable

FLAG = '--new-schedule'
SEED, PROCESSES = 'randomness.seed', 'number of processes'
SCHEDULE = re.compile(r'param_scheduler\b|auto_scale_lr\.|optim_wrapper\.(\w+\.)?(optimizer|paramwise_cfg)\.')
OF_ONE_START = ('work_dir', 'load_from', 'resume', 'launcher', 'new_schedule')
SPANS = ('begin', 'end', 'T_max', 'total_steps')  # of a scheduler; the length of training decides on those not given
OF_SCHEDULES = ('initial_', 'max_', 'min_', 'momentum')  # what schedulers add to a group of weights
MOST_ROWS = 40


def settings_of(runner: Runner) -> dict[str, Any]:
    """Every setting of a run by its dotted key, as plain data; no scheduler has stepped."""
    asked = {key: value for key, value in runner.cfg.to_dict().items() if key not in OF_ONE_START}
    schedulers = runner.param_schedulers if isinstance(runner.param_schedulers, list) else []
    spans = {
        f'param_scheduler.{index}.{name}': getattr(scheduler, name)
        for index, scheduler in enumerate(schedulers)
        for name in SPANS
        if hasattr(scheduler, name)
    }
    return spans | {PROCESSES: runner.world_size} | dict(_flatten(as_data(asked)))


def _flatten(value: Any, key: str = '') -> Iterator[tuple[str, Any]]:
    is_list = isinstance(value, list) and any(isinstance(item, dict) for item in value)
    if not (is_list or isinstance(value, dict)):
        yield key, value
        return
    for name, item in enumerate(value) if is_list else value.items():
        yield from _flatten(item, f'{key}.{name}' if key else str(name))


def settle(runner: Runner, checkpoint: dict, length: int) -> dict[str, Any]:
    """Say in one table of the log where a checkpoint and the config differ, before the checkpoint is loaded.

    The numbers of the optimizer and the schedule are the checkpoint's. With ``new_schedule`` in the config they are the
    config's, as they are at the iteration of the checkpoint, and replace those in it. The runner's schedulers have not
    stepped; ``length`` is that of an epoch that was trained, 0 in a loop over iterations. The settings in which the
    checkpoint prevails are returned by their dotted keys.

    Raises:
        UserError: the checkpoint's optimizer, or without ``new_schedule`` its schedule, is of another kind; or it is of
            a version that kept matrices divided.
    """
    if 'divided_by' in checkpoint['meta']:
        raise UserError(
            'the checkpoint is of an earlier version, which kept matrices divided by the setting step: its weights '
            'load, its optimizer does not fit them; use load_from'
        )
    is_new, asked, meta = bool(runner.cfg.get('new_schedule')), settings_of(runner), checkpoint['meta']
    has_one = isinstance(runner.optim_wrapper, OptimWrapper) and not isinstance(runner.optim_wrapper, OptimWrapperDict)
    written = _written_settings(meta)
    had = dict(written or asked | (_optimizer_settings(runner, checkpoint) if has_one else {}))
    had[SEED] = None if asked.get(SEED) is None else meta.get('seed')
    keys = sorted(key for key in asked | had if asked.get(key) != had.get(key))
    scheduled = [key for key in keys if SCHEDULE.match(key) and not key.endswith('.type')]
    if has_one:
        _require_fit(runner, checkpoint, is_new)
    elif is_new:
        raise UserError(f'{FLAG} is for one optimizer, not for several')
    kept = {key: had.get(key) for key in keys if key == SEED or (key in scheduled and not is_new)}
    table = [(key, had.get(key), asked.get(key), (had if key in kept else asked).get(key)) for key in keys]
    if has_one and (keys or not written):
        rates = _compare_rates(runner, checkpoint, length)
        table += [(*row, row[2 if is_new else 1]) for row in rates]
        scheduled = scheduled or [setting for setting, *_ in rates]
        if is_new and (scheduled or not written):
            _take_config(runner, checkpoint, length)
    if table:
        advice = f'; {FLAG} takes learning rate, decay and schedule of the config' if scheduled and not is_new else ''
        _log(runner, table, advice, warns=bool(kept or advice))
    return kept


def _written_settings(meta: dict) -> dict[str, Any]:
    """Those that a checkpoint was written with; none of one that earlier versions or others wrote."""
    with suppress(KeyError, TypeError, ValueError, RecursionError):
        return dict(json.loads(meta['settings']))
    return {}


def _optimizer_settings(runner: Runner, checkpoint: dict) -> dict[str, Any]:
    """What an optimizer's own state tells of its settings."""
    state = checkpoint['optimizer']
    group = state.get('base_param_settings') or state['param_groups'][0]
    group = group | {'lr': group.get('initial_lr', group.get('lr'))}
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in group.items()}
    given = runner.cfg.optim_wrapper.optimizer
    return {f'optim_wrapper.optimizer.{name}': plain[name] for name in given if name in plain}


def _require_fit(runner: Runner, checkpoint: dict, is_new: bool) -> None:
    """Raise ``UserError`` if what the checkpoint holds is of another optimizer or of other schedulers."""
    now, then = runner.optim_wrapper.optimizer.param_groups, checkpoint['optimizer']['param_groups']
    foreign = ', '.join(sorted(name for name in then[0].keys() - now[0].keys() if not name.startswith(OF_SCHEDULES)))
    if foreign or len(now) != len(then):
        what = f'with {foreign}' if foreign else f'of {len(then)} groups of weights, not {len(now)} (paramwise_cfg)'
        raise UserError(f'the checkpoint has another optimizer, {what}: resume with that one, or use load_from')
    if not (is_new or _schedulers_fit(runner, checkpoint)):
        raise UserError(f'the checkpoint has other schedulers than param_scheduler: resume with those, or add {FLAG}')


def _schedulers_fit(runner: Runner, checkpoint: dict) -> bool:
    """Whether states are of schedulers of these kinds: they have the same names."""
    now = [{name for name, value in vars(one).items() if not callable(value)} for one in runner.param_schedulers or []]
    return [names - {'optimizer'} for names in now] == [
        state.keys() for state in checkpoint.get('param_schedulers', [])
    ]


def _log(runner: Runner, table: list[tuple], advice: str, warns: bool) -> None:
    shown = PrettyTable(['setting', 'checkpoint has', 'asked for', 'used'], align='l')
    shown.add_rows([[_show(cell) for cell in row] for row in table[:MOST_ROWS]])
    more = f'\n({len(table) - MOST_ROWS} more differences)' if len(table) > MOST_ROWS else ''
    log = runner.logger.warning if warns else runner.logger.info
    log(f'The checkpoint and the config differ{advice}:\n{shown}{more}')


def _show(value: Any) -> str:
    return f'{value:.6g}' if isinstance(value, float) else printable(value, 60)


def _compare_rates(runner: Runner, checkpoint: dict, length: int) -> list[tuple[str, Any, Any]]:
    """The learning rate of the first weights by both schedules, at the next and the last iteration, if it differs."""
    begin, end = checkpoint['meta']['iter'], max(checkpoint['meta']['iter'], runner.max_iters - 1)
    last = begin, end, len(runner.train_dataloader) if length else 0
    schedulers, old = runner.param_schedulers or [], checkpoint['optimizer']['param_groups'][0]
    asked = rates_after(schedulers, runner.optim_wrapper.optimizer.param_groups[0], (0, begin, length), last)
    had = [old.get('lr'), 'of other schedulers']
    if _schedulers_fit(runner, checkpoint):
        schedulers = [copy.copy(scheduler) for scheduler in schedulers]
        for scheduler, state in zip(schedulers, checkpoint.get('param_schedulers', [])):
            scheduler.load_state_dict(state)
        had = rates_after(schedulers, old, (begin, begin, 0), last)
    names = ('learning rate, next iteration', 'learning rate, last iteration')
    return list(zip(names, had, asked)) if any(_show(old) != _show(new) for old, new in zip(had, asked)) else []


def _take_config(runner: Runner, checkpoint: dict, length: int) -> None:
    """Step the schedulers to the checkpoint's iteration, and enter them and the optimizer's numbers in it."""
    schedulers, wrapper, state = runner.param_schedulers or [], runner.optim_wrapper, checkpoint['optimizer']
    advance(schedulers, 0, checkpoint['meta']['iter'], length)
    state['param_groups'] = [
        dict(new, params=old['params'])
        for new, old in zip(wrapper.optimizer.param_groups, state['param_groups'], strict=True)
    ]
    if wrapper.base_param_settings is not None:
        state['base_param_settings'] = wrapper.base_param_settings
    checkpoint['param_schedulers'] = [scheduler.state_dict() for scheduler in schedulers]
