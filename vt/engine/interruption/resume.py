"""Resume a run exactly: choose the checkpoint, and restore what mmengine does not save."""

import json
from bisect import bisect
from pathlib import Path
from typing import Any

from mmengine.config import Config
from mmengine.dist import broadcast_object_list, is_main_process
from mmengine.hooks import EMAHook, Hook
from mmengine.runner import EpochBasedTrainLoop as WholeEpochsLoop
from mmengine.runner import Runner
from torch.utils.data import BatchSampler

from vt.checkpoints.reading import find_damage, find_newest_checkpoint
from vt.engine.prepare import require_file
from vt.engine.processes.distributed import any_process
from vt.engine.processes.process_variables import number_in
from vt.engine.processes.sharding import like
from vt.engine.schedules import epoch_length
from vt.errors import UserError
from vt.registry import HOOKS, LOOPS
from vt.untrusted_text import printable

from .checkpoint_hook import is_accumulating
from .resumed_settings import settings_of, settle
from .seeds import NumberedSampler
from .work_directory import WorkDirectory

# Set when torchrun or SLURM restarts a run with the same command line.
RESTARTS = ('TORCHELASTIC_RESTART_COUNT', 'SLURM_RESTART_COUNT')


def enter_resume(cfg: Config, asked: str | None, folder: WorkDirectory) -> list[str]:
    """Choose the checkpoint to resume from, and set ``resume`` and ``load_from`` of the config.

    Call it in all processes. If the file is damaged, the newest complete one of the same folder is used. A run that
    torchrun or SLURM restarts resumes from its own last checkpoint, if there is one.

    Args:
        cfg: config of the run, changed in place.
        asked: value of ``--resume``: a path or a folder with checkpoints, a URL, ``'auto'`` for the newest checkpoint
            in the work directory, or None.
        folder: the work directory, which this run has locked.

    Returns:
        Lines for the log.

    Raises:
        UserError: a file does not exist, or all checkpoints are damaged.
    """
    was_restarted = any_process(any(number_in(name) > 0 for name in RESTARTS))
    if asked is None and cfg.get('resume'):
        asked = cfg.get('load_from') or 'auto'
    if was_restarted:  # the run may have written a checkpoint, possibly a damaged one
        newest = find_newest_checkpoint(cfg.work_dir) if is_main_process() else ()
        asked = 'auto' if any_process(any(newest)) else asked
    if asked not in (None, 'auto') and not Path(asked).is_dir():
        require_file(asked, 'checkpoint to resume from')
    # The main process chooses, since a file system may look different to other processes.
    choice: list[Any] = [_choose(cfg.work_dir, asked) if is_main_process() else None]
    broadcast_object_list(choice)
    checkpoint, notes = choice[0]
    if asked != 'auto' or checkpoint is None:
        folder.begin_from(checkpoint)
    if asked is not None:
        cfg.resume = checkpoint is not None
        cfg.load_from = checkpoint or cfg.get('load_from')
    if cfg.get('load_from'):
        require_file(cfg.load_from, 'checkpoint of load_from,')
    return notes


def _choose(work_dir: str, asked: str | None) -> tuple[str | None, list[str]]:
    """Return a complete checkpoint or None, and lines for the log about checkpoints not used."""
    if asked is None or '://' in asked:
        return asked, []
    folder = Path(work_dir if asked == 'auto' else asked)
    is_file = asked != 'auto' and not folder.is_dir()
    damage = find_damage(asked) if is_file else None
    if is_file and damage is None:
        return asked, []
    folder = folder.parent if is_file else folder
    newest, others = find_newest_checkpoint(folder)
    damaged = ({} if damage is None else {Path(asked): damage}) | dict(others)
    lines = [printable(line) for line in damaged.values()]
    if newest is not None:
        return str(newest), [f'{line}. Resuming from {newest} instead' for line in lines]
    if lines:
        raise UserError(f'{lines[0]}; {folder} has no complete checkpoint: remove --resume to start again')
    if asked != 'auto':
        raise UserError(f'--resume {asked}: the folder has no checkpoint')
    earlier = max(folder.glob('earlier_run_*'), default=None)
    hint = '' if earlier is None else f' (for an earlier run, use --resume {earlier})'
    return None, [f'There is nothing to resume in {folder}{hint}: training starts from the beginning']


@LOOPS.register_module()
class EpochBasedTrainLoop(WholeEpochsLoop):
    """mmengine's loop over epochs, which can resume in the middle of an epoch.

    Attributes:
        begin: number of batches to skip in the next epoch, because they were trained on before the interruption.
        start: current epoch, and the iteration at which it started.
    """

    begin, start = 0, (0, 0)

    def run_epoch(self) -> None:
        sampler = getattr(self.dataloader.batch_sampler, 'sampler', None)
        # With other batch samplers the batches to skip are loaded and ignored.
        self._skips = type(self.dataloader.batch_sampler) is BatchSampler and isinstance(sampler, NumberedSampler)
        if self._skips and isinstance(sampler, NumberedSampler):
            sampler.begin = self.begin * self.dataloader.batch_sampler.batch_size
        self.start = self.epoch, self.iter - self.begin
        super().run_epoch()
        self.begin = 0

    def run_iter(self, idx: int, data_batch: dict) -> None:
        if self._skips:
            super().run_iter(idx + self.begin, data_batch)
        elif idx >= self.begin:
            super().run_iter(idx, data_batch)


@HOOKS.register_module()
class ResumeHook(Hook):
    """Save and restore what mmengine does not: the position in an epoch, accumulated gradients, settings.

    A run that was killed between a checkpoint and the following validation runs that validation first.
    """

    priority = 'LOWEST'
    _resumes = False
    _settings: dict | None = None

    def before_save_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        epoch, begin = getattr(runner.train_loop, 'start', (None, 0))
        batches = checkpoint['meta']['iter'] - begin if checkpoint['meta']['epoch'] == epoch else 0
        checkpoint['progress'] = dict(batches=batches, of=epoch_length(runner))
        checkpoint['meta']['settings'] = json.dumps(self._settings)
        if 'optimizer' in checkpoint and is_accumulating(runner):
            checkpoint['gradients'] = [parameter.grad for parameter in runner.model.parameters()]

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        self._resumes = bool(runner.cfg.get('resume'))
        if not self._resumes:
            return
        if 'ema_state_dict' in checkpoint and not any(isinstance(hook, EMAHook) for hook in runner.hooks):
            raise UserError(
                'the checkpoint has averaged weights beside those that were trained, and the config has no EMAHook: '
                'keep it in custom_hooks, or start a new run from the averages with load_from'
            )
        self._gradients = checkpoint.get('gradients')
        length, meta, progress = epoch_length(runner), checkpoint['meta'], checkpoint.get('progress', {})
        key, done, most = (
            ('epochs', meta['epoch'], runner.max_epochs) if length else ('iters', meta['iter'], runner.max_iters)
        )
        if done > most:
            raise UserError(
                f'the checkpoint has {done} {key}, more than train_cfg.max_{key}={most}: raise it to train on'
            )
        batches, of = progress.get('batches', 0), progress.get('of')
        if batches and of == length:
            runner.train_loop.begin = batches
        elif of and of != length:
            words = f'Epochs have {length} iterations now, and had {of} in the checkpoint'
            meta['iter'] = meta['epoch'] * length  # with a part of an epoch, the position in it is unknown
            words += f': epoch {meta["epoch"] + 1} starts again' if batches else ''
            runner.logger.warning(words)
        self._settings = settings_of(runner)
        kept = settle(runner, checkpoint, length, is_rescaled=bool(of) and of != length)
        self._settings |= kept
        checkpoint['message_hub']['runtime_info']['kept_settings'] = kept

    def before_train(self, runner: Runner) -> None:
        if not self._resumes:
            self._settings = settings_of(runner)
            return
        self._resumes = False
        sampler = getattr(runner.train_dataloader.batch_sampler, 'sampler', None)
        if isinstance(sampler, NumberedSampler) and not runner.cfg.get('randomness', {}).get('diff_rank_seed'):
            sampler.sample_seed = sampler.sampler.seed = runner.seed  # the sampler was built with another seed
        for parameter, gradient in zip(runner.model.parameters(), self._gradients or ()):
            parameter.grad = like(parameter, gradient)
        if not getattr(runner.train_loop, 'begin', 0) and validation_is_due(runner):
            runner.val_loop.run()


def validation_is_due(runner: Runner) -> bool:
    """Return whether a run was killed between a checkpoint and the following validation."""
    loop = runner.train_loop
    if runner.val_loop is None or runner.message_hub.runtime_info.get('last_validation') == runner.iter:
        return False
    is_by_epoch = isinstance(loop, WholeEpochsLoop)
    done, end = (loop.epoch, loop.max_epochs) if is_by_epoch else (loop.iter, loop.max_iters)
    interval = loop.dynamic_intervals[bisect(loop.dynamic_milestones, done + 1) - 1]
    return done >= loop.val_begin and (done % interval == 0 or done == end)
