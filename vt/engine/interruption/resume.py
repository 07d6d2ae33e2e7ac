"""Going on after an interruption as if there had been none."""

import os
from bisect import bisect
from pathlib import Path

from mmengine.dist import broadcast_object_list, is_main_process, master_only
from mmengine.hooks import Hook
from mmengine.runner import EpochBasedTrainLoop, Runner

from vt.checkpoints.files import POINTER
from vt.checkpoints.newest import find_damage, find_newest_checkpoint
from vt.engine.processes.distributed import any_process
from vt.errors import UserError
from vt.registry import HOOKS

from .accumulation import accumulated_gradients, restore_gradients
from .seeds import NumberedSampler

# Restarts by torchrun and by SLURM run the same command line again.
RESTARTS = ('TORCHELASTIC_RESTART_COUNT', 'SLURM_RESTART_COUNT')


def was_restarted() -> bool:
    """Whether torchrun or SLURM has started this run again, after a failure or a pre-emption.

    All processes ask together: torchrun on a machine where none failed does not count a restart.
    """
    return any_process(any(int(os.environ.get(name) or 0) > 0 for name in RESTARTS))


def choose_checkpoint(work_dir: str, asked: str | None) -> tuple[str | None, list[str]]:
    """The checkpoint to go on from.

    Args:
        work_dir: of the run.
        asked: path or address of a checkpoint, or None for the newest one in ``work_dir``.

    Returns:
        The checkpoint, and lines for the log: on damaged files, for which the newest whole one of the same folder steps
        in, and on nothing to go on from, in which case there is none.

    Raises:
        UserError: there are damaged files alone.
    """
    if asked is not None:
        damage = None if '://' in asked else find_damage(asked)
        if damage is None:
            return asked, []
    folder = work_dir if asked is None else os.path.dirname(asked) or '.'
    newest, damaged = find_newest_checkpoint(Path(folder))
    if asked is not None:
        others = (entry for entry in damaged if os.path.realpath(entry[0]) != os.path.realpath(asked))
        damaged = [(asked, damage), *others]
    lines = [f'{path} is damaged: {why}' for path, why in damaged]
    if newest is not None:
        return str(newest), [f'{line}. Going on from {newest} instead' for line in lines]
    if lines:
        raise UserError(f'{lines[0]}; {folder} holds no whole checkpoint: leave --resume out to begin anew')
    return None, [f'There is nothing to resume in {folder}: training starts from the beginning']


def choose_together(work_dir: str, asked: str | None) -> tuple[str | None, list[str]]:
    """As :func:`choose_checkpoint`; the main process chooses for all, which may see a file system at other moments."""
    choice: list = [None]
    if is_main_process():
        try:
            choice = [choose_checkpoint(work_dir, asked)]
        except (OSError, ValueError) as error:
            choice = [error]
    broadcast_object_list(choice)
    if isinstance(choice[0], Exception):
        raise choice[0]
    return choice[0]


@master_only
def forget_earlier_run(work_dir: str) -> None:
    """Forget which checkpoint was the last one; the files stay. A restart must not go on from that of another run."""
    Path(work_dir, POINTER).unlink(missing_ok=True)


@HOOKS.register_module()
class ResumeHook(Hook):
    """Save and restore what mmengine does not: the place in an epoch, accumulated gradients, a validation that was due.

    A run that was killed between a checkpoint and the validation that follows it validates first.
    """

    priority = 'LOWEST'
    _resumes = False

    def before_save_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        epoch, begin = getattr(runner.train_loop, 'start', (None, 0))
        batches = checkpoint['meta']['iter'] - begin if checkpoint['meta']['epoch'] == epoch else 0
        checkpoint['progress'] = dict(batches=batches, of=epoch_length(runner))
        gradients = accumulated_gradients(runner) if 'optimizer' in checkpoint else None
        if gradients is not None:
            checkpoint['gradients'] = gradients

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        self._resumes = bool(runner.cfg.get('resume'))
        if self._resumes:
            self._gradients = checkpoint.get('gradients')
            self._find_place(runner, checkpoint)

    def before_train(self, runner: Runner) -> None:
        if not self._resumes:
            return
        self._resumes = False
        restore_seed(runner)
        if self._gradients is not None:
            restore_gradients(runner, self._gradients)
        if not getattr(runner.train_loop, 'begin', 0) and validation_is_due(runner):
            runner.val_loop.run()

    def _find_place(self, runner: Runner, checkpoint: dict) -> None:
        """Enter how much of the epoch is done; where epochs have another length now, it begins anew."""
        progress, meta = checkpoint.get('progress', dict(batches=0)), checkpoint['meta']
        if not progress['batches']:
            return
        length = epoch_length(runner)
        if progress['of'] == length:
            runner.train_loop.begin = progress['batches']
        else:
            meta['iter'] = meta['epoch'] * length
            runner.logger.warning(
                f'Epochs have {length} iterations now and had {progress["of"]}: epoch {meta["epoch"] + 1} begins anew'
            )


def epoch_length(runner: Runner) -> int:
    """Iterations of an epoch; 0 in a loop over iterations."""
    return len(runner.train_dataloader) if isinstance(runner.train_loop, EpochBasedTrainLoop) else 0


def restore_seed(runner: Runner) -> None:
    """Give the resumed seed to the samplers; a run without one of its own drew another when they were made."""
    sampler = getattr(runner.train_dataloader.batch_sampler, 'sampler', None)
    if isinstance(sampler, NumberedSampler) and not runner.cfg.get('randomness', {}).get('diff_rank_seed'):
        sampler.sample_seed = sampler.sampler.seed = runner.seed


def validation_is_due(runner: Runner) -> bool:
    """Whether a run was killed between a checkpoint and the validation that follows it."""
    loop = runner.train_loop
    if runner.val_loop is None or runner.message_hub.runtime_info.get('last_validation') == runner.iter:
        return False
    is_by_epoch = isinstance(loop, EpochBasedTrainLoop)
    done, end = (loop.epoch, loop.max_epochs) if is_by_epoch else (loop.iter, loop.max_iters)
    interval = loop.dynamic_intervals[bisect(loop.dynamic_milestones, done + 1) - 1]
    return done >= loop.val_begin and (done % interval == 0 or done == end)
