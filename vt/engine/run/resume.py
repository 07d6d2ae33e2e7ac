"""Resume a run exactly: save and restore what mmengine does not."""

import json
from bisect import bisect
from typing import Any

from mmengine.hooks import EMAHook, Hook
from mmengine.runner import EpochBasedTrainLoop as WholeEpochsLoop
from mmengine.runner import Runner
from torch.utils.data import BatchSampler

from vt.engine.determinism import NumberedSampler
from vt.engine.hooks.checkpoint import is_accumulating
from vt.engine.run.schedules import epoch_length
from vt.engine.run.sharding import like
from vt.errors import UserError
from vt.registry import HOOKS, LOOPS

from .resumed_settings import reconcile_settings, settings_of


@LOOPS.register_module()
class EpochBasedTrainLoop(WholeEpochsLoop):
    """mmengine's loop over epochs, which can resume in the middle of an epoch.

    Attributes:
        begin: number of batches to skip in the next epoch, because they were trained on before the interruption.
        start: current epoch, and the iteration at which it started.
    """

    begin, start = 0, (0, 0)

    def run_epoch(self) -> None:
        batches: Any = self.dataloader.batch_sampler
        sampler = getattr(batches, 'sampler', None)
        # With other batch samplers the batches to skip are loaded and ignored.
        self._skips = type(batches) is BatchSampler and isinstance(sampler, NumberedSampler)
        if self._skips and isinstance(sampler, NumberedSampler):
            sampler.begin = self.begin * batches.batch_size
        self.start = self.epoch, self.iter - self.begin
        super().run_epoch()
        self.begin = 0

    def run_iter(self, idx: int, data_batch: Any) -> None:
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
            advice = 'keep it in custom_hooks, or start a new run from the averages with load_from'
            raise UserError(f'the checkpoint has averaged (EMA) weights, but the config has no EMAHook: {advice}')
        self._gradients = checkpoint.get('gradients')
        length, meta, progress = epoch_length(runner), checkpoint['meta'], checkpoint.get('progress', {})
        key, most = ('epochs', runner.max_epochs) if length else ('iters', runner.max_iters)
        if (done := meta['epoch' if length else 'iter']) > most:
            words, short = f'the checkpoint was trained for {done} {key}', 'epochs' if length else 'iterations'
            raise UserError(f'{words}, more than train_cfg.max_{key}={most}: raise {short}')
        batches, of = progress.get('batches', 0), progress.get('of')
        if of is not None and bool(of) != bool(length):
            then, now = (['iterations', 'epochs'][bool(each)] for each in (of, length))
            words = (
                f'the checkpoint is of a run by {then}, but train_cfg counts {now}: resume with the same kind of loop'
            )
            raise UserError(f'{words}, or start from its weights with load_from')
        if batches and of == length:
            runner.train_loop.begin = batches
        elif of and of != length:
            words = f'Epochs have {length} iterations now, and had {of} in the checkpoint'
            meta['iter'] = meta['epoch'] * length  # with a part of an epoch, the position in it is unknown
            told = checkpoint['message_hub']['runtime_info']
            told['last_validation'] = told.get('last_validation', 0) // of * length
            words += f': epoch {meta["epoch"] + 1} starts again' if batches else ''
            runner.logger.warning(words)
        self._settings = settings_of(runner)
        kept = reconcile_settings(runner, checkpoint, self._settings, length, is_rescaled=bool(of) and of != length)
        self._settings |= kept
        hub = checkpoint['message_hub']  # only what is resumed is saved; for another value mmengine fails in training
        hub['resumed_keys'] = dict.fromkeys([*hub['log_scalars'], *hub['runtime_info']], True)
        hub['runtime_info']['kept_settings'] = kept

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
