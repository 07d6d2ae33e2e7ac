"""Logs of TensorBoard, Weights & Biases and MLflow, written in the background."""

import copy
import importlib
import logging
import os
import queue
import threading
from collections.abc import Callable
from typing import Any

from mmengine.dist import is_main_process
from mmengine.logging import MMLogger
from mmengine.registry import VISBACKENDS as PARTS
from mmengine.visualization.vis_backend import BaseVisBackend

from vt.engine.reporting import in_one_line
from vt.registry import VISBACKENDS

MOST = 10_000  # entries that wait for a server
WAIT = 10  # seconds for the rest at the end of a run


def _later(name: str) -> Callable[..., None]:
    def log(self: 'BackgroundVisBackend', *args: Any, **kwargs: Any) -> None:
        """Log something in the background, as the method of the other backend does."""
        self._call(name, *copy.deepcopy(args), **copy.deepcopy(kwargs))

    return log


class BackgroundVisBackend(BaseVisBackend):
    """Another backend of mmengine, called in a thread, so that a training neither waits for a server nor ends with it.

    An error of the backend is one warning. What a server does not take in time is lost.

    Args:
        save_dir: folder of its files.
        **options: options of the other backend, such as ``init_kwargs`` of mmengine's ``WandbVisBackend``.
    """

    kind = package = ''  # the other backend, and the module that it needs

    def __init__(self, save_dir: str, **options) -> None:
        super().__init__(save_dir)
        self.name = self.package.rpartition('.')[2]
        if is_main_process():
            importlib.import_module(self.package)  # not in the thread, while workers are forked
        self.backend = PARTS.build(dict(type=self.kind, save_dir=save_dir, **options))
        self._calls: queue.Queue = queue.Queue(MOST)
        self._thread: threading.Thread | None = None
        self._has_warned = False

    @property
    def experiment(self) -> Any:
        """What the other backend writes with."""
        return self.backend.experiment

    def _init_env(self) -> None:
        """Nothing: the other backend does it in the thread."""

    add_config, add_image, add_scalar, add_scalars = map(
        _later, ('add_config', 'add_image', 'add_scalar', 'add_scalars')
    )

    def close(self) -> None:
        """Wait a few seconds for the rest."""
        if self._thread is None:
            return
        self._call('close')
        self._thread.join(WAIT)
        if self._thread.is_alive():
            self._warn(f'no answer in {WAIT} s, and {self._calls.qsize() + 1} entries may be lost')
        self._thread = None

    def _call(self, method: str, *args: Any, **kwargs: Any) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=f'log={self.name}', daemon=True)
            self._thread.start()
        try:
            self._calls.put_nowait((method, args, kwargs))
        except queue.Full:
            self._warn('it is too slow, and entries are lost')

    def _run(self) -> None:
        """Call the backend until it is closed."""
        call: Callable = self._prepare
        args, kwargs = (), {}
        while True:
            try:
                call(*args, **kwargs)
            except Exception as error:
                self._warn(in_one_line(error)[:200])
            if call == self.backend.close:
                return
            name, args, kwargs = self._calls.get()
            call = getattr(self.backend, name)

    def _prepare(self) -> None:
        """Prepare the backend, in its thread."""

    def _warn(self, why: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            MMLogger.get_current_instance().log(logging.WARNING, f'log={self.name}: {why}; the training goes on')


@VISBACKENDS.register_module()
class TensorboardBackend(BackgroundVisBackend):
    """mmengine's ``TensorboardVisBackend`` in the background."""

    kind, package = 'TensorboardVisBackend', 'torch.utils.tensorboard'


@VISBACKENDS.register_module()
class WandbBackend(BackgroundVisBackend):
    """mmengine's ``WandbVisBackend`` in the background, with its options; offline if the server does not answer."""

    kind, package = 'WandbVisBackend', 'wandb'

    def __init__(self, save_dir: str, init_kwargs: dict | None = None, **options) -> None:
        self._init_kwargs = dict(init_kwargs or {})
        super().__init__(save_dir, init_kwargs=self._init_kwargs, **options)

    def _prepare(self) -> None:
        settings = importlib.import_module('wandb').setup().settings
        if self._init_kwargs.get('mode', settings.mode) in (None, 'online'):
            try:
                importlib.import_module('requests').head(settings.base_url, timeout=WAIT)
            except OSError:
                self._init_kwargs['mode'] = 'offline'  # else the process would wait for the server at its end
                self._warn(f'{settings.base_url} does not answer: logged offline, `wandb sync` sends it later')


@VISBACKENDS.register_module()
class MLflowBackend(BackgroundVisBackend):
    """mmengine's ``MLflowVisBackend`` in the background, with its options.

    The server is that of ``tracking_uri`` or of the variable ``MLFLOW_TRACKING_URI``; without, files are written.
    """

    kind, package = 'MLflowVisBackend', 'mlflow'

    def __init__(self, save_dir: str, tracking_uri: str | None = None, **options) -> None:
        os.environ.setdefault('MLFLOW_ALLOW_FILE_STORE', 'true')  # MLflow 3 refuses files without it
        super().__init__(save_dir, tracking_uri=tracking_uri or os.environ.get('MLFLOW_TRACKING_URI'), **options)
