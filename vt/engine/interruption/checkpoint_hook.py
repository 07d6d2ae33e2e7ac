"""mmengine's checkpoint hook, which removes an old checkpoint only after the new one is complete."""

import re
from functools import partial
from pathlib import Path

import torch
from mmengine.dist import all_reduce, all_reduce_params, is_main_process
from mmengine.hooks import CheckpointHook as PlainCheckpointHook
from mmengine.optim import OptimWrapper
from mmengine.runner import Runner
from torch.distributed.fsdp import FSDPModule

from vt.checkpoints.files import POINTER, REST, write_atomically
from vt.engine.checks.losses import why_not_save
from vt.engine.console import unprinted
from vt.errors import UserError
from vt.registry import HOOKS

INTERRUPTED = 'interrupted_iter_'


@HOOKS.register_module()
class CheckpointHook(PlainCheckpointHook):
    """mmengine's hook with its arguments, and six differences.

    - A checkpoint, also the best one, is removed after its replacement has been written.
    - A resumed run finds the checkpoints to replace by the names that this hook gives in the folder. What a checkpoint
      says about files has no effect, and links are never removed or followed.
    - ``last_checkpoint`` is written atomically.
    - Before a checkpoint is written, accumulated gradients are averaged over processes.
    - Nothing is written while weights or loss are not finite.
    - A run that stops early saves its last weights.
    """

    def before_train(self, runner: Runner) -> None:
        with unprinted():  # mmengine warns of its own file client
            super().before_train(runner)
        runner.logger.info(f'Checkpoints will be saved to {self.out_dir}.')
        if getattr(runner, 'saver', None) and (self.published_keys or '://' in self.out_dir):
            raise UserError('checkpoints in shards have no published_keys, and go to a folder: see tools/publish.py')
        self._saved = runner.iter
        self._outdated: list[str] = []
        self.best_ckpt_path, self.best_ckpt_path_dict = None, dict.fromkeys(self.save_best or ())
        if runner.iter and '://' not in self.out_dir:
            self._find_own(runner)

    def _find_own(self, runner: Runner) -> None:
        """Go on with the checkpoints that this hook has written up to the one that the run resumes from."""
        done = runner.epoch if self.by_epoch else runner.iter
        steps, interrupted = self._own(done), self._own(runner.iter, template=f'{INTERRUPTED}{{}}.pth')
        self.last_ckpt = interrupted.get(runner.iter) or steps.get(done)
        self._outdated += interrupted.values()
        if self.max_keep_ckpts > 0:
            self.keep_ckpt_ids.extend(self._newest(steps, self.max_keep_ckpts))
        scored = [name.removeprefix('val/') for name in runner.message_hub.log_scalars if name.startswith('val/')]
        for key in self.key_indicators if self.save_best else ():
            names = [re.escape(name.replace('/', '_')) for name in (scored if key == 'auto' else [key])]
            bests = self._own(done, prefix=f'best_({"|".join(names)})_')
            best = next((bests[step] for step in self._newest(bests, 1)), None)
            if len(self.key_indicators) == 1:
                self.best_ckpt_path = best
            else:
                self.best_ckpt_path_dict[key] = best

    def _own(self, last: int, prefix: str = '', template: str | None = None) -> dict[int, str]:
        """Return step and path of the checkpoints with a name that this hook gives, up to step ``last``."""
        found = {}
        for path in Path(self.out_dir).glob('*'):
            for step in map(int, re.findall(r'\d+', path.name)):
                name = re.escape((template or self.filename_tmpl).format(step))
                if step <= last and re.fullmatch(prefix + name, path.name) and _is_checkpoint(path):
                    found[step] = self._here(path.name)
        return dict(sorted(found.items()))

    def _newest(self, found: dict[int, str], most: int) -> list[int]:
        """Return the last ``most`` steps, and note what a run that was killed had no time to remove.

        That is one checkpoint. More were kept on purpose, by another setting: they stay.
        """
        steps = [*found]
        if len(steps) > most + 1:
            return []
        self._outdated += [found[step] for step in steps[:-most]]
        return steps[-most:]

    def after_train(self, runner: Runner) -> None:
        """Save what a run that stopped early has trained since its last checkpoint."""
        if self.save_last and runner.train_loop.stop_training and self._saved != runner.iter:
            done = runner.epoch if self.by_epoch else runner.iter
            self._save_step(runner, done, dict(epoch=runner.epoch, iter=runner.iter))
        finish_saving(runner)
        super().after_train(runner)

    def save_interrupted(self, runner: Runner) -> str:
        """Save after the current iteration, anywhere in an epoch; the next checkpoint replaces this one.

        Returns:
            Path of the newest checkpoint: this one, unless weights or loss are not finite.
        """
        step = runner.iter + 1
        if _may_save(runner):
            self._save(runner, f'{INTERRUPTED}{step}.pth', dict(epoch=runner.epoch, iter=step))
            finish_saving(runner)
        return self.last_ckpt

    def after_train_epoch(self, runner: Runner) -> None:
        is_last = self.save_last and self.is_last_train_epoch(runner)
        if self.by_epoch and (is_last or self.every_n_epochs(runner, self.interval, self.save_begin)):
            self._save_step(runner, runner.epoch + 1, dict(epoch=runner.epoch + 1, iter=runner.iter))

    def after_train_iter(self, runner: Runner, *args, **kwargs) -> None:
        is_last = self.save_last and self.is_last_train_iter(runner)
        if not self.by_epoch and (is_last or self.every_n_train_iters(runner, self.interval, self.save_begin)):
            self._save_step(runner, runner.iter + 1, dict(epoch=runner.epoch, iter=runner.iter + 1))

    def after_val_epoch(self, runner: Runner, metrics: dict) -> None:
        """Save the best checkpoint, then the last one again, which records the best one's name and the validation."""
        runner.message_hub.update_info('last_validation', runner.iter)
        if not _may_save(runner):
            return
        last, bests = self.last_ckpt, self._bests()
        # With None mmengine does not write the last one, nor removes the best one before it writes a better one.
        self.last_ckpt = self.best_ckpt_path = None
        self.best_ckpt_path_dict = dict.fromkeys(self.best_ckpt_path_dict)
        super().after_val_epoch(runner, metrics)
        better = {key: path for key, path in self._bests().items() if path}
        self._outdated += [path for key, path in bests.items() if path and key in better]
        bests |= better
        self.last_ckpt, self.best_ckpt_path, self.best_ckpt_path_dict = last, bests.pop(None), bests
        if last and better:
            meta = dict(epoch=runner.epoch, iter=runner.iter)
            self._save_step(runner, meta['epoch' if self.by_epoch else 'iter'], meta)

    def _bests(self) -> dict[str | None, str | None]:
        """Return the paths of the best checkpoints by their scores, by None of a single score."""
        return {None: self.best_ckpt_path, **self.best_ckpt_path_dict}

    def _save_step(self, runner: Runner, step: int, meta: dict) -> None:
        if not _may_save(runner):
            return
        if self.max_keep_ckpts > 0 and step not in self.keep_ckpt_ids:
            if len(self.keep_ckpt_ids) == self.max_keep_ckpts:
                self._outdated.append(self._here(self.filename_tmpl.format(self.keep_ckpt_ids.popleft())))
            self.keep_ckpt_ids.append(step)
        if self._saved != meta['iter']:  # once, also if the validation is added
            runner.logger.info(f'Saving checkpoint at {step} {"epochs" if self.by_epoch else "iterations"}')
        self._save(runner, self.filename_tmpl.format(step), meta)

    def _save(self, runner: Runner, name: str, meta: dict) -> None:
        average_gradients(runner)
        if self.last_ckpt and Path(self.last_ckpt).name.startswith(INTERRUPTED):
            self._outdated.append(self.last_ckpt)
        self.last_ckpt, self._saved = self._here(name), meta['iter']
        runner.message_hub.update_info('last_ckpt', self.last_ckpt)
        parts = dict(save_optimizer=self.save_optimizer, save_param_scheduler=self.save_param_scheduler, **self.args)
        options = dict(meta=meta, by_epoch=self.by_epoch, backend_args=self.backend_args)
        runner.save_checkpoint(self.out_dir, name, self.file_client_args, **parts, **options)
        finish = partial(self._finish, Path(runner.work_dir) / POINTER, self.last_ckpt, self._take_outdated())
        saver = getattr(runner, 'saver', None)
        finish() if saver is None else saver.then(finish)

    def _finish(self, pointer: Path, newest: str, outdated: set[str]) -> None:
        if is_main_process():
            write_atomically(pointer, newest)
        self._remove_files(outdated)

    def _take_outdated(self) -> set[str]:
        outdated = {*self._outdated} - {self.last_ckpt, self.best_ckpt_path, *self.best_ckpt_path_dict.values()}
        self._outdated.clear()
        return outdated

    def _remove_files(self, paths: set[str]) -> None:
        for path in paths if is_main_process() else ():
            if '://' not in path and not _is_checkpoint(Path(path)):
                continue
            if self.file_backend.isfile(path):
                self.file_backend.remove(path)
            else:
                self.file_backend.rmtree(path)

    def _here(self, name: str) -> str:
        """Return the path of a checkpoint in the folder of this run."""
        return self.file_backend.join_path(self.out_dir, name)


def _is_checkpoint(path: Path) -> bool:
    """Whether a path is a file, or the folder of a checkpoint in shards; a link is neither."""
    return not path.is_symlink() and (path.is_file() or (path / REST).is_file())


def _may_save(runner: Runner) -> bool:
    reason = why_not_save(runner)
    if reason:
        runner.logger.warning(f'No checkpoint is written: {reason}')
    return not reason


def finish_saving(runner: Runner) -> None:
    """Wait until what is saved in the background is there."""
    if saver := getattr(runner, 'saver', None):
        saver.wait()


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
