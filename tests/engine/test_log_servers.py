"""Logs of other tools are written in the background: no server holds a training up, or ends it."""

import threading
import time

import numpy as np
import pytest
from mmengine.config import Config
from mmengine.logging import MMLogger
from mmengine.registry import VISBACKENDS
from mmengine.visualization.vis_backend import BaseVisBackend

from vt.engine.config import short_names
from vt.engine.config.short_names import apply_short_names
from vt.engine.run import log_servers
from vt.engine.run.log_servers import BackgroundVisBackend
from vt.errors import UserError


@VISBACKENDS.register_module('SmallServer', force=True)
class Server(BaseVisBackend):
    """A backend that keeps what it is told; it waits at ``stuck``, and fails at ``broken``."""

    def __init__(self, save_dir):
        super().__init__(save_dir)
        self.got, self.go, self.threads = [], threading.Event(), set()

    def _init_env(self):
        """Nothing."""

    experiment = None

    def _take(self, *args, **kwargs):
        self.threads.add(threading.get_ident())
        if args[0] == 'stuck':
            self.go.wait(20)
        if args[0] == 'broken':
            raise ConnectionError('no answer')
        self.got.append(args)

    add_config = add_graph = add_image = add_scalar = add_scalars = _take

    def close(self):
        self.got.append('closed')


class Background(BackgroundVisBackend):
    """The backend above, in the background."""

    kind, package = 'SmallServer', 'json'


@pytest.fixture
def warnings(monkeypatch):
    found = []
    monkeypatch.setattr(
        MMLogger.get_current_instance(), 'log', lambda level, text, **_: found.extend([text] * (level >= 30))
    )
    return found


def test_all_entries_come_in_order_in_one_other_thread(tmp_path, warnings):
    log = Background(str(tmp_path))
    log.add_config(Config(dict(a=1)))
    for step in range(100):
        log.add_scalars({'loss': step}, step)
    log.add_scalar('lr', 0.1, 3)
    log.add_image('image', np.zeros((2, 2, 3), np.uint8))
    log.close()
    server = log.backend
    assert [args[0] for args in server.got[1:101]] == [{'loss': step} for step in range(100)]
    assert server.got[0][0].to_dict() == dict(a=1)
    assert server.got[-1] == 'closed'
    assert len(server.threads) == 1
    assert threading.get_ident() not in server.threads
    assert warnings == []
    log.add_scalar('again', 1)  # such as a test after the training
    log.close()
    assert [args[0] for args in server.got[-2:-1]] == ['again']


def test_errors_are_one_warning(tmp_path, warnings):
    log = Background(str(tmp_path))
    for _ in range(3):
        log.add_scalar('broken', 1)
    log.add_scalar('loss', 1)
    log.close()
    assert warnings == ['log=json: no answer; the training goes on']
    assert [args[0] for args in log.backend.got[:-1]] == ['loss']


def test_a_server_that_does_not_answer_holds_nothing_up(tmp_path, warnings, monkeypatch):
    monkeypatch.setattr(log_servers, 'MOST', 10)
    monkeypatch.setattr(log_servers, 'WAIT', 0.1)
    log = Background(str(tmp_path))
    before = time.monotonic()
    log.add_scalar('stuck', 1)
    for _ in range(50):
        log.add_scalar('loss', 1)
    log.close()
    assert time.monotonic() - before < 2
    assert warnings == ['log=json: it is too slow, and entries are lost; the training goes on']
    log.backend.go.set()


def test_short_names_of_logs(monkeypatch):
    monkeypatch.setattr(short_names, 'find_spec', lambda name: None if name == 'mlflow' else name)
    cfg = Config(dict(log=['tensorboard', 'wandb'], visualizer=dict(type='Visualizer')))
    apply_short_names(cfg, dict(log=['tensorboard', 'wandb']))
    kinds = [backend.type for backend in cfg.visualizer.vis_backends]
    assert kinds == ['LocalVisBackend', 'vt.TensorboardBackend', 'vt.WandbBackend']
    with pytest.raises(UserError, match='log=mlflow requires the package mlflow: pip install mlflow'):
        apply_short_names(Config(dict(log='mlflow')), dict(log='mlflow'))
