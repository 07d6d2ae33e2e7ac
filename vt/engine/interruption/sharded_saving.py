"""Checkpoints of sharded runs: each process writes its shards while training continues."""

import os
import shutil
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path

from mmengine.dist import is_main_process
from mmengine.runner import Runner
from torch import distributed
from torch.distributed import checkpoint as dcp
from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions

from vt.checkpoints.files import replacing
from vt.checkpoints.sharded import split, write_rest
from vt.errors import FileError


class ShardedSaver:
    """Writer of one checkpoint at a time, which gets its name when it is complete on disk.

    All processes call its methods together. Shards are written to ``.<name>.part``, so that a run that is killed while
    writing keeps its last complete checkpoint.

    Args:
        asynchronous: :meth:`write` returns after copying the tensors to CPU memory.
        timeout: number of seconds that a process waits for others.

    Attributes:
        group: process group of all processes, on CPUs.
    """

    def __init__(self, asynchronous: bool, timeout: float) -> None:
        self._asynchronous = asynchronous
        # A separate group, because the thread's messages must not mix with those of the run; PyTorch requires CPUs.
        self.group = distributed.new_group(backend='gloo', timeout=timedelta(seconds=timeout))
        self._stager = DefaultStager(StagingOptions(False, False, False, False))  # plain copies, made immediately
        self._thread = ThreadPoolExecutor(1)
        self._pending: Future | None = None
        self._written: dict[Path, int] = {}

    def write(self, path: Path, checkpoint: dict) -> None:
        """Save this process's part of a checkpoint; a second one of an iteration replaces only what is not sharded."""
        self.wait()
        path, shards = Path(os.path.abspath(path)), {}
        rest, iteration = split(checkpoint, shards), checkpoint['meta']['iter']
        if self._written.get(path) == iteration:
            if is_main_process():
                write_rest(path, rest)
            return
        self._written[path] = iteration
        part = path.with_name(f'.{path.name}.part')
        if is_main_process():
            remove = os.unlink if part.is_symlink() else partial(shutil.rmtree, ignore_errors=True)
            remove(part)  # left by a run that was killed
        writer = dcp.HuggingFaceStorageWriter(str(part), save_distributed=True)
        writing = dcp.async_save(shards, storage_writer=writer, process_group=self.group, async_stager=self._stager)
        self._pending = self._thread.submit(self._finish, writing, part, path, rest)
        if not self._asynchronous:
            self.wait()

    def then(self, action: Callable[[], None]) -> None:
        """Call ``action`` after the current checkpoint is written; not if writing fails."""
        if self._pending is None:
            action()
        else:
            self._pending = self._thread.submit(lambda before: (before.result(), action()), self._pending)

    def wait(self) -> None:
        """Wait until the current checkpoint is written.

        Raises:
            FileError: it could not be written.
        """
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()

    def _finish(self, writing: Future, shards: Path, path: Path, rest: dict) -> None:
        try:
            writing.result()
        except (OSError, dcp.CheckpointException) as error:
            raise FileError(f'{path} could not be written ({str(error).splitlines()[-1]}): free space there') from error
        if is_main_process():
            with replacing(path) as part:
                shards.rename(part)
                write_rest(part, rest)
                with suppress(FileNotFoundError):  # a folder cannot replace another one
                    path.rename(part.with_name('before'))


def checkpoint_of(runner: Runner, meta: dict, save_optimizer: bool, save_param_scheduler: bool) -> dict:
    """Return the checkpoint that mmengine's runner saves, in each process with its shards of the tensors."""
    meta = dict(meta, cfg=runner.cfg.pretty_text, seed=runner.seed, experiment_name=runner.experiment_name)
    if hasattr(runner.train_dataloader.dataset, 'metainfo'):
        meta['dataset_meta'] = runner.train_dataloader.dataset.metainfo
    checkpoint = dict(meta=meta, state_dict=runner.model.state_dict(), message_hub=runner.message_hub.state_dict())
    if save_optimizer:
        checkpoint['optimizer'] = runner.optim_wrapper.state_dict()
    if save_param_scheduler and runner.param_schedulers is not None:
        checkpoint['param_schedulers'] = [scheduler.state_dict() for scheduler in runner.param_schedulers]
    return checkpoint
