"""Build the runner and the model of a config, on GPUs or on a CPU."""

import os
from collections.abc import Collection
from functools import partial
from typing import Any

import torch
from mmengine.config import Config
from mmengine.dist import get_world_size
from mmengine.model import BaseModule, revert_sync_batchnorm
from mmengine.registry import MODELS, RUNNERS
from mmengine.runner import Runner

from vt.checkpoints.weights import PRETRAINED, load_init_cfg
from vt.engine.config.parts import check_image_channels
from vt.engine.config.steps import Run, complete
from vt.errors import UserError
from vt.private_names import without_init_log
from vt.registry import build

from .runner import VTRunner

# Attributes of parts whose ``init_weights`` reads or fetches weights: of mmengine, HuggingFaceBackbone and teachers.
FETCHED = ('init_cfg', 'pretrained', 'teacher_cfg')


def build_runner(cfg: Config, amp: bool = False) -> VTRunner:
    """Build the runner of a config: :class:`vt.VTRunner`, or the subclass of it that ``runner_type`` names.

    It takes the steps of :func:`vt.engine.config.steps.config_steps`, as ``vt train`` does. Its ``train()`` neither
    checks the samples of the data nor writes ``training.json``. In one process SyncBN is replaced by BN, and the log
    says so.

    Args:
        cfg: config, which is not changed; that of the runner has the default hooks and settings, too.
        amp: train in mixed precision, see :func:`vt.engine.config.steps.choose_dtype`.

    Raises:
        UserError: ``runner_type`` is another class, the optimizer is sharded without the key ``fsdp``, or as from
            :func:`vt.engine.config.parts.check_image_channels`.
    """
    return build_prepared(complete(cfg, amp))


def build_prepared(run: Run) -> VTRunner:
    """Build the runner of a run of :func:`vt.engine.config.steps.prepare`, as :func:`build_runner`."""
    cfg = run.cfg
    check_image_channels(cfg)
    named = cfg.get('runner_type') or Runner
    kind = RUNNERS.get(named) if isinstance(named, str) else named
    kind = VTRunner if kind is Runner else kind
    if not (isinstance(kind, type) and issubclass(kind, VTRunner)):
        raise UserError(f'runner_type={named} is neither vt.VTRunner nor a subclass of it: remove runner_type')
    if 'ZeroRedundancyOptimizer' in str((cfg.get('optim_wrapper') or {}).get('optimizer')):
        raise UserError('optim_wrapper.optimizer: ZeroRedundancyOptimizer is not supported: use the config key fsdp')
    asks_sync_bn = cfg.get('sync_bn') or 'SyncBN' in str(cfg.model)
    if cfg.get('randomness', {}).get('deterministic'):
        os.environ.setdefault('CUBLAS_WORKSPACE_CONFIG', ':4096:8')  # PyTorch requires it for deterministic cuBLAS
    runner: Any = kind.from_cfg(cfg)
    runner.data = run.data
    for note in run.notes:
        runner.logger.info(note)
    if asks_sync_bn and get_world_size() == 1:
        runner.logger.info('SyncBN is replaced by BN, because there is one process.')
    return runner


def build_model(cfg: Config) -> Any:
    """Build the model of a config without a runner, for one process; its weights are not initialised."""
    if 'data_preprocessor' in cfg:
        cfg.model.setdefault('data_preprocessor', cfg.data_preprocessor)  # as mmengine's runner does
    model = dict(cfg.model)
    if (model.get('train_cfg') or {}).get('augments'):  # else MMPretrain sets it with a line in the log
        model['data_preprocessor'] = dict(model.get('data_preprocessor') or {}, to_onehot=True)
    return revert_sync_batchnorm(build(MODELS, model, cfg.get('default_scope')))


def default_device() -> torch.device:
    """Return the accelerator of this machine (a GPU, or Apple's MPS) if there is one, else the CPU."""
    return torch.accelerator.current_accelerator(check_available=True) or torch.device('cpu')


def require_device(device: str | torch.device | None) -> torch.device:
    """Return a device, the CPU for None, or raise a UserError if it cannot be used on this machine."""
    try:
        found = torch.device('cpu' if device is None else device)
        torch.zeros(1, device=found).item()
    except (RuntimeError, AssertionError, ImportError) as error:
        message = f"device '{device}' cannot be used: PyTorch does not find it on this machine; use cpu"
        raise UserError(message) from error
    return found


def draw_weights(model: Any, files: Collection[str] = ()) -> None:
    """Initialise a model's weights as its config says, without mmengine's log line for each tensor.

    Weights that are read from files are loaded only if an ``init_cfg`` names one of ``files``; all others that a config
    names, and teachers, are left to :meth:`init_weights`, which initialises all weights again.
    """
    for part in model.modules():
        if isinstance(part, BaseModule):
            vars(part)['init_weights'] = partial(_begin, part, files)
    with without_init_log(model):
        model.init_weights()
    for part in model.modules():
        if isinstance(part, BaseModule):
            vars(part).pop('init_weights', None)
            part.is_init = False


def _begin(part: Any, files: Collection[str]) -> None:
    """Initialise a part, with the file in its ``init_cfg`` alone, and only if it is one of ``files``."""
    kept = {name: vars(part)[name] for name in FETCHED if name in vars(part)}
    steps = [part.init_cfg] if isinstance(part.init_cfg, dict) else part.init_cfg or []
    named = [step for step in steps if step['type'] in PRETRAINED]
    asked = [step for step in named if str(step['checkpoint']) in files]
    vars(part).update({name: value for name, value in dict.fromkeys(kept).items() if kept[name] not in files})
    if not named or (asked and getattr(part, 'loads_itself', False)):
        part.init_cfg, asked = kept['init_cfg'], []
    elif len(named) < len(steps):
        part.init_cfg = [step for step in steps if step not in named]
    type(part).init_weights(part)
    vars(part).update(kept)
    for step in asked:
        load_init_cfg(part, step)
