"""mmengine's checkpoint hook, which removes an old checkpoint only after the new one is complete."""

import math
from collections.abc import Iterable, Set
from pathlib import Path

import torch
from mmengine.dist import all_reduce, all_reduce_params, is_main_process
from mmengine.hooks import CheckpointHook as PlainCheckpointHook
from mmengine.hooks import Hook
from mmengine.optim import OptimWrapper
from mmengine.runner import Runner
from torch.distributed.fsdp import FSDPModule

from vt.checkpoints.reading import OWN, own_checkpoints
from vt.engine.hooks.invalid_losses import why_not_save
from vt.engine.score_rules import rule_of
from vt.errors import UserError
from vt.files import write_atomically
from vt.hints import as_typed
from vt.registry import HOOKS

INTERRUPTED = 'interrupted_'  # prefix of names
POINTER = 'last_checkpoint'
# Arguments of mmengine's hook by which another run would not find its checkpoints, or would overwrite them.
PLACES = {'out_dir', 'filename_tmpl', 'published_keys', 'backend_args', 'file_client_args'}


@HOOKS.register_module()
class CheckpointHook(PlainCheckpointHook):
    """mmengine's hook without ``out_dir``, ``filename_tmpl`` and ``published_keys``, and with six differences.

    - A checkpoint, also the best one, is removed after its replacement has been written.
    - A resumed run finds the checkpoints to replace by the names that this hook gives in the folder. What a checkpoint
      says about files has no effect, and what a link leads to is never removed.
    - ``last_checkpoint`` is written atomically.
    - Before a checkpoint is written, accumulated gradients are averaged over processes.
    - Nothing is written while weights or loss are not finite.
    - A run that stops early saves its last weights.
    """

    def __init__(self, interval: int = -1, **options) -> None:
        _refuse('vt.CheckpointHook', PLACES & options.keys())
        super().__init__(interval, **options)

    def before_train(self, runner: Runner) -> None:
        self._unit = 'epoch' if self.by_epoch else 'iter'
        super().before_train(runner)
        # What this hook has written and may remove, by the prefix of the name, oldest first.
        self._own: dict[str, list[Path]] = self._find_own(runner) if runner.iter else {}
        given = Path(runner.cfg.get('load_from') or '')
        start, step = Path(self.out_dir, given.name), dict(epoch=runner.epoch, iter=runner.iter)
        continues = runner.iter and start.is_file() and start.resolve() == given.resolve()
        is_step = start.name == self.filename_tmpl.format(step[self._unit])
        self._begin = runner.iter
        self._saved = runner.iter if continues and is_step else None  # iteration of the last such file
        if continues:
            self._replace_others(runner, start)  # a run that was killed may not have done so

    def _find_own(self, runner: Runner) -> dict[str, list[Path]]:
        """Return the checkpoints that this hook has written up to the one that the run resumes from.

        A run that was killed has left at most one more than are kept at every step. Still more were kept on purpose, by
        another setting: they stay.
        """
        begin, names = dict(epoch=runner.epoch, iter=runner.iter), self.key_indicators if self.save_best else ()
        if 'auto' in names:
            names = [name.removeprefix('val/') for name in runner.message_hub.log_scalars if name.startswith('val/')]
        units = {'': self._unit, INTERRUPTED: 'iter'}
        units |= {f'best_{name.replace("/", "_")}_': self._unit for name in names}
        found: dict[str, list[Path]] = {prefix: [] for prefix in units}
        for step, unit, prefix, path in own_checkpoints(Path(self.out_dir)):
            if units.get(prefix) == unit and step <= begin[unit] and path.is_file():
                found[prefix].append(path)
        return {prefix: paths for prefix, paths in found.items() if prefix or len(paths) <= self._most(prefix) + 1}

    def _most(self, prefix: str) -> float:
        """Return how many checkpoints of a name are kept."""
        if prefix:
            return 1
        return self.max_keep_ckpts if self.max_keep_ckpts > 0 else math.inf

    def after_train(self, runner: Runner) -> None:
        """Save what a run that stopped early has trained since its last checkpoint."""
        if self.save_last and runner.train_loop.stop_training and runner.iter not in (self._begin, self._saved):
            self._save_step(runner, dict(epoch=runner.epoch, iter=runner.iter))

    def save_interrupted(self, runner: Runner) -> str | Path | None:
        """Save after the current iteration, anywhere in an epoch; the next checkpoint replaces this one.

        Returns:
            Path of the checkpoint that this run has written last: this one, unless weights or loss are not finite.
        """
        step = runner.iter + 1
        if _may_save(runner):
            self._save(runner, f'{INTERRUPTED}iter_{step}.pth', dict(epoch=runner.epoch, iter=step))
        return self.last_ckpt

    def after_train_epoch(self, runner: Runner) -> None:
        is_last = self.save_last and self.is_last_train_epoch(runner)
        if self.by_epoch and (is_last or self.every_n_epochs(runner, self.interval, self.save_begin)):
            self._save_step(runner, dict(epoch=runner.epoch + 1, iter=runner.iter))

    def after_train_iter(self, runner: Runner, *args, **kwargs) -> None:
        is_last = self.save_last and self.is_last_train_iter(runner)
        if not self.by_epoch and (is_last or self.every_n_train_iters(runner, self.interval, self.save_begin)):
            self._save_step(runner, dict(epoch=runner.epoch, iter=runner.iter + 1))

    def after_val_epoch(self, runner: Runner, metrics: dict) -> None:
        """Save the best checkpoint, then the last one again, which records the best one's name and the validation."""
        runner.message_hub.update_info('last_validation', runner.iter)
        if not _may_save(runner):
            return
        # With None mmengine does not write the last one, nor removes the best one before it writes a better one.
        last, self.last_ckpt, self.best_ckpt_path = self.last_ckpt, None, None
        self.best_ckpt_path_dict = dict.fromkeys(self.save_best or ())
        if self.save_best and 'auto' in self.key_indicators and self.rules == [None]:
            self.rules = [rule_of(next(iter(metrics), ''))]
        super().after_val_epoch(runner, metrics)
        self.last_ckpt = last
        better = [path for path in (self.best_ckpt_path, *self.best_ckpt_path_dict.values()) if path]
        for path in better:
            self._note(Path(path))
        if better and self._saved == runner.iter:
            self._save_step(runner, dict(epoch=runner.epoch, iter=runner.iter))

    def _save_step(self, runner: Runner, meta: dict) -> None:
        if not _may_save(runner):
            return
        step = meta[self._unit]
        if self._saved != meta['iter']:  # once, also if the validation is added
            runner.logger.info(f'Saving checkpoint at {step} {"epochs" if self.by_epoch else "iterations"}')
        self._saved = meta['iter']
        self._save(runner, self.filename_tmpl.format(step), meta)

    def _save(self, runner: Runner, name: str, meta: dict) -> None:
        """Save, then remove what is outdated."""
        average_gradients(runner)
        path = Path(self.out_dir, name)
        self.last_ckpt = str(path)
        runner.message_hub.update_info('last_ckpt', self.last_ckpt)
        parts = dict(save_optimizer=self.save_optimizer, save_param_scheduler=self.save_param_scheduler, **self.args)
        runner.save_checkpoint(self.out_dir, name, meta=meta, by_epoch=self.by_epoch, **parts)
        self._note(path)
        self._replace_others(runner, path)

    def _replace_others(self, runner: Runner, path: Path) -> None:
        """Point to the newest checkpoint, and remove what is outdated, also interrupted and best checkpoints."""
        if not is_main_process():
            return
        write_atomically(Path(runner.work_dir, POINTER), str(path))
        for prefix, own in self._own.items():
            most = 0 if prefix == INTERRUPTED and path not in own else self._most(prefix)
            while len(own) > most:
                outdated = own.pop(0)
                if outdated.is_file():
                    outdated.unlink()

    def _note(self, path: Path) -> None:
        """Remember the newest checkpoint of a name."""
        own = self._own.setdefault(OWN.sub(r'\1', path.name), [])
        if path not in own:
            own.append(path)


def refuse_places(hooks: Iterable[Hook], work_dir: str) -> None:
    """Refuse a checkpoint hook of mmengine, or a subclass, that writes elsewhere; VT's refuses the arguments itself."""
    for hook in hooks:
        if isinstance(hook, PlainCheckpointHook) and not isinstance(hook, CheckpointHook):
            usual = dict(out_dir=work_dir, filename_tmpl='epoch_{}.pth' if hook.by_epoch else 'iter_{}.pth')
            elsewhere = {name for name in PLACES if getattr(hook, name) not in (None, usual.get(name))}
            _refuse(type(hook).__name__, elsewhere)


def _refuse(hook: str, elsewhere: Set[str]) -> None:
    if elsewhere:
        raise UserError(
            f'{hook}: checkpoints are always epoch_N.pth or iter_N.pth in the work directory (--work-dir), and '
            f'{as_typed("vt publish")} publishes them: remove {", ".join(sorted(elsewhere))}'
        )


def _may_save(runner: Runner) -> bool:
    reason = why_not_save(runner)
    if reason:
        runner.logger.warning(f'No checkpoint is written: {reason}')
    return not reason


def is_accumulating(runner: Runner) -> bool:
    """Whether the last iteration left gradients for the next one, with ``optim_wrapper.accumulative_counts``."""
    wrapper = runner.optim_wrapper
    return isinstance(wrapper, OptimWrapper) and not wrapper.should_update()


def average_gradients(runner: Runner) -> None:
    """Average accumulated gradients over all processes, since only one of them saves its own.

    Their mean at the end of the accumulation is the same: gradients are averaged once more then. A weight that only
    some processes used so far has a gradient of zero in the others. FSDP has averaged those that it keeps.
    """
    if runner.world_size == 1 or not is_accumulating(runner) or isinstance(runner.model, FSDPModule):
        return
    parameters = [parameter for parameter in runner.model.parameters() if parameter.requires_grad]
    used = torch.tensor([parameter.grad is not None for parameter in parameters], dtype=torch.int32)
    all_reduce(used, 'max')
    parameters = [parameter for parameter, is_used in zip(parameters, used.tolist()) if is_used]
    for parameter in parameters:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    all_reduce_params([parameter.grad for parameter in parameters], op='mean')
