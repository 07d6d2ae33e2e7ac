"""mmengine's checkpoints, each whole before the one that it replaces goes."""

from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from mmengine.dist import is_main_process
from mmengine.fileio import BaseStorageBackend
from mmengine.hooks import CheckpointHook as PlainCheckpointHook
from mmengine.runner import Runner

from vt.checkpoints.files import POINTER, write_atomically
from vt.engine.checks.losses import why_not_save
from vt.engine.processes.distributed import sync_buffers
from vt.engine.processes.strategies import gather_optimizer_state
from vt.registry import HOOKS

from .accumulation import average_gradients

INTERRUPTED = 'interrupted_iter_{}.pth'


@HOOKS.register_module()
class CheckpointHook(PlainCheckpointHook):
    """mmengine's hook with its arguments; four things differ.

    A checkpoint is removed after the one that replaces it has been written, the best one too. ``last_checkpoint`` is
    replaced as a whole. Before a file is written, all processes agree on what only one of them saves: the running
    statistics of BN, and gradients that are still being accumulated. Weights that are not finite replace nothing.
    """

    _place: dict | None = None

    def before_train(self, runner: Runner) -> None:
        super().before_train(runner)
        infos = runner.message_hub.runtime_info
        self.last_ckpt = self._here(infos.get('last_ckpt'))
        if self.save_best and hasattr(self, 'best_ckpt_path'):
            self.best_ckpt_path = self._here(self.best_ckpt_path)
        elif self.save_best:
            self.best_ckpt_path_dict = {key: self._here(path) for key, path in self.best_ckpt_path_dict.items()}
        self._outdated = [self._path(name) for name in infos.get('outdated_ckpts', [])]
        self._backend, self.file_backend = self.file_backend, RemoveLater(self.file_backend, self._outdated)
        self._remove_outdated()  # what a run that was killed had no time for

    def before_save_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        """mmengine's flexible runner enters an epoch too many where the best checkpoint has the last one rewritten."""
        checkpoint['meta'].update(self._place or {})

    def save_interrupted(self, runner: Runner) -> str:
        """Save after the current iteration, wherever it is in an epoch; the next checkpoint replaces this one.

        Returns:
            The path of the newest checkpoint: this one, unless weights or loss are not finite.
        """
        step = runner.iter + 1
        if self._may_save(runner):
            self._save(runner, INTERRUPTED.format(step), dict(epoch=runner.epoch, iter=step))
            self._remove_outdated()
        return self.last_ckpt

    def _save_checkpoint_with_step(self, runner: Runner, step: int, meta: dict) -> None:
        if not self._may_save(runner):
            return
        self._keep(runner, step)
        self._save(runner, self.filename_tmpl.format(step), meta)
        self._remove_outdated()

    def after_val_epoch(self, runner: Runner, metrics: dict) -> None:
        runner.message_hub.update_info('last_validation', runner.iter)  # the best checkpoint has the last one rewritten
        super().after_val_epoch(runner, metrics)

    def _save_best_checkpoint(self, runner: Runner, metrics: dict) -> None:
        if self._may_save(runner):
            super()._save_best_checkpoint(runner, metrics)
            self._remove_outdated()

    @staticmethod
    def _may_save(runner: Runner) -> bool:
        reason = why_not_save(runner)
        if reason:
            runner.logger.warning(f'No checkpoint is written: {reason}')
        return not reason

    def _keep(self, runner: Runner, step: int) -> None:
        """Note which steps are kept, in the checkpoint too, and the files that this one replaces."""
        if self.max_keep_ckpts > 0 and step not in list(self.keep_ckpt_ids)[-1:]:
            steps = [*self.keep_ckpt_ids, step]
            self._outdated += [self._path(self.filename_tmpl.format(old)) for old in steps[: -self.max_keep_ckpts]]
            self.keep_ckpt_ids.append(step)  # its length is max_keep_ckpts
            runner.message_hub.update_info('keep_ckpt_ids', list(self.keep_ckpt_ids))

    def _save(self, runner: Runner, name: str, meta: dict) -> None:
        sync_buffers(runner)
        average_gradients(runner)
        gather_optimizer_state(runner)
        self._place = dict(meta)  # until it is written
        if self.last_ckpt and fnmatch(Path(self.last_ckpt).name, INTERRUPTED.format('*')):
            self._outdated.append(self.last_ckpt)
        self.last_ckpt = self._path(name)
        runner.message_hub.update_info('last_ckpt', self.last_ckpt)
        runner.message_hub.update_info('outdated_ckpts', [Path(path).name for path in self._outdated])
        runner.save_checkpoint(
            self.out_dir,
            name,
            self.file_client_args,
            save_optimizer=self.save_optimizer,
            save_param_scheduler=self.save_param_scheduler,
            meta=meta,
            by_epoch=self.by_epoch,
            backend_args=self.backend_args,
            **self.args,
        )
        self._place = None
        if is_main_process():
            write_atomically(Path(runner.work_dir) / POINTER, self.last_ckpt)

    def _remove_outdated(self) -> None:
        best = [getattr(self, 'best_ckpt_path', None), *getattr(self, 'best_ckpt_path_dict', {}).values()]
        if is_main_process():
            for path in set(self._outdated) - {self.last_ckpt, *best}:
                self._remove(path)
        self._outdated.clear()

    def _here(self, path: str | None) -> str | None:
        """The path in this run's folder, which may be a copy of the one that a checkpoint was written in."""
        return path and self._path(Path(path).name)

    def _path(self, name: str) -> str:
        return self.file_backend.join_path(self.out_dir, name)

    def _remove(self, path: str) -> None:
        if self._backend.isfile(path):
            self._backend.remove(path)
        elif self._backend.isdir(path):  # of DeepSpeed
            self._backend.rmtree(path)


class RemoveLater:
    """A file backend that only notes what is to be removed.

    Args:
        backend: does everything else.
        removed: list that takes the paths.
    """

    def __init__(self, backend: BaseStorageBackend, removed: list[str]) -> None:
        self._backend = backend
        self.remove = self.rmtree = removed.append

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)
