"""mmengine's runner, with settings for speed, samples that are functions of the seed, and safe, whole checkpoints."""

from pathlib import Path
from typing import Any

import torch
from mmengine.dist import is_main_process
from mmengine.hooks import Hook
from mmengine.logging import MMLogger
from mmengine.optim import OptimWrapper
from mmengine.runner import BaseLoop, EpochBasedTrainLoop, FlexibleRunner, Runner
from torch import nn
from torch.utils.data import DataLoader

from vt.checkpoints.files import replacing
from vt.checkpoints.loading import weights_only
from vt.checkpoints.plain import make_plain
from vt.engine.interruption.seeds import seeded_loader
from vt.errors import UserError
from vt.registry import HOOKS, RUNNERS

from .speed_settings import SpeedSettings, require_compiler, to_channels_last


class OwnRunner:
    """What both runners share.

    Samples are drawn by seed and place, see :mod:`vt.engine.interruption.seeds`. Every checkpoint that a part of the
    run reads is read weights-only. Those that it writes hold tensors, numbers and text alone, and are whole or not
    there.
    """

    _dropped: frozenset[str] = frozenset()

    def train(self) -> nn.Module:
        with weights_only():
            return super().train()

    def val(self) -> dict:
        with weights_only():
            return super().val()

    def test(self) -> dict:
        with weights_only():
            return super().test()

    def load_checkpoint(self, filename: str, *args, **kwargs) -> dict | None:
        """Load weights; no code of the file runs."""
        with weights_only():
            return super().load_checkpoint(filename, *args, **kwargs)

    def resume(self, filename: str, *args, **kwargs) -> None:
        """Go on from a checkpoint; no code of the file runs."""
        with weights_only():
            super().resume(filename, *args, **kwargs)

    def save_checkpoint(self, out_dir: str, filename: str, *args, **kwargs) -> None:
        """Save; at every moment either the old file or the new one is there, whole. All processes call it."""
        path = Path(out_dir, filename)
        if '://' in str(out_dir):  # an object store, which does so itself
            super().save_checkpoint(out_dir, filename, *args, **kwargs)
        elif not is_main_process():  # it may hold a part of what is saved
            super().save_checkpoint(str(path.parent), path.name, *args, **kwargs)
        else:
            with replacing(path) as part:
                super().save_checkpoint(str(part.parent), part.name, *args, **kwargs)

    def call_hook(self, fn_name: str, **kwargs) -> None:
        """Call all hooks; what they have entered in a checkpoint becomes numbers last."""
        super().call_hook(fn_name, **kwargs)
        if fn_name == 'before_save_checkpoint':
            self._make_plain(kwargs['checkpoint'])

    def _make_plain(self, checkpoint: dict[str, Any]) -> None:
        dropped = make_plain(checkpoint)
        if dropped - self._dropped:
            self.logger.warning(f'Not saved, since it is neither numbers nor text: {", ".join(sorted(dropped))}')
            self._dropped = frozenset(dropped)

    def build_dataloader(
        self, dataloader: DataLoader | dict, seed: int | None = None, diff_rank_seed: bool = False
    ) -> DataLoader:
        if isinstance(dataloader, dict):
            dataloader = seeded_loader(dataloader, seed)
        return super().build_dataloader(dataloader, seed, diff_rank_seed)


@RUNNERS.register_module(name='FlexibleRunner')
class VTFlexibleRunner(OwnRunner, FlexibleRunner):
    """mmengine's runner for strategies such as FSDP."""


@RUNNERS.register_module()
class VTRunner(OwnRunner, Runner):
    """A runner that makes the settings of the config key ``speed`` and names them in one line of the log.

    See :class:`vt.engine.speed_settings.SpeedSettings`. Samples are augmented by their place, see
    :mod:`vt.engine.interruption.seeds`. Everything else is mmengine's. ``tools/train.py`` and ``tools/test.py`` use it
    by themselves; other tools of OpenMMLab do with ``runner_type = 'vt.VTRunner'``.
    """

    def setup_env(self, env_cfg: dict) -> None:
        """Set up the process before mmengine does, which sets threads too; nothing is built yet."""
        self.speed = SpeedSettings(**self.cfg.get('speed', {}))
        if self.speed.compile and not self.cfg.get('compile'):
            require_compiler()
            self.cfg.compile = True
        self.process_speed = self.speed.set_process()
        super().setup_env(env_cfg)

    def build_logger(self, *args, **kwargs) -> MMLogger:
        """Each of several processes writes a log of its own, ``*_rank<N>.log``; the main one alone prints too."""
        return super().build_logger(*args, distributed=True, **kwargs)

    def build_model(self, model: nn.Module | dict) -> nn.Module:
        """The model, in channels_last before it is wrapped for DDP."""
        with weights_only():  # it may have some of its own to read, such as a teacher's
            model = super().build_model(model)
        if self.speed.channels_last:
            to_channels_last(model)
        return model

    def _init_model_weights(self) -> None:
        """Parts that a model builds with its weights, such as a teacher, take the layout too."""
        super()._init_model_weights()
        if self.speed.channels_last:
            to_channels_last(self.model)

    def register_hooks(self, default_hooks: dict | None = None, custom_hooks: list | None = None) -> None:
        super().register_hooks(default_hooks, custom_hooks)
        if self._tries_convolutions():
            self.register_hook(CudnnBenchmarkHook())

    def _tries_convolutions(self) -> bool:
        always = self.cfg.get('env_cfg', {}).get('cudnn_benchmark')
        return self.speed.cudnn_benchmark and torch.cuda.is_available() and not always and not self.deterministic

    def build_train_loop(self, loop: BaseLoop | dict) -> BaseLoop:
        """The loop, whose epochs have at least one batch.

        Raises:
            UserError: they have none.
        """
        loop = super().build_train_loop(loop)
        if isinstance(loop, EpochBasedTrainLoop) and len(loop.dataloader) == 0:
            raise UserError(
                'an epoch has no batch: train_dataloader.dataset holds fewer samples than '
                'train_dataloader.batch_size, and drop_last leaves an incomplete batch out'
            )
        return loop

    def train(self) -> nn.Module:
        wrapper = self.optim_wrapper if isinstance(self.optim_wrapper, dict) else {}
        self._log_speed('Amp' in str(wrapper.get('type')), self._tries_convolutions())
        return super().train()

    def test(self) -> dict:
        """Test; mmengine compiles the step of training alone."""
        self._log_speed(bool(self.cfg.get('test_cfg', {}).get('fp16')), trying=False)
        self._maybe_compile('test_step')
        return super().test()

    def _log_speed(self, amp: bool, trying: bool) -> None:
        trying = trying or torch.backends.cudnn.benchmark
        parts = [
            f'channels_last {_on(self.speed.channels_last)}',
            self.process_speed,
            f'cudnn.benchmark {_on(trying)}' if torch.cuda.is_available() else 'cudnn.benchmark off (CPU)',
            f'AMP {_on(amp)} (--amp)',
            f'compile {_on(bool(self.cfg.get("compile")))} (--compile)',
        ]
        self.logger.info(f'Speed: {"; ".join(parts)}. Change with --cfg-options speed.NAME=VALUE')

    def resume(self, filename: str, *args, **kwargs) -> None:
        """Resume; averages of gradients take the layout of their weights.

        A checkpoint keeps the layout of the run that wrote it, and PyTorch's fused optimizers mix up numbers of tensors
        that differ in it.
        """
        super().resume(filename, *args, **kwargs)
        if isinstance(self.optim_wrapper, OptimWrapper):
            match_layouts(self.optim_wrapper.optimizer)


def match_layouts(optimizer: torch.optim.Optimizer) -> None:
    """Give every tensor of an optimizer's state that has its parameter's shape the same strides."""
    for parameter, state in optimizer.state.items():
        for name, value in (state or {}).items():  # None is what another process keeps, with ZeRO
            if isinstance(value, torch.Tensor) and value.shape == parameter.shape:
                state[name] = torch.empty_like(parameter, dtype=value.dtype).copy_(value)


@HOOKS.register_module()
class CudnnBenchmarkHook(Hook):
    """cuDNN tries its convolutions once for each size of images: on while training, off while sizes vary."""

    def before_train(self, runner: Runner) -> None:
        torch.backends.cudnn.benchmark = True

    def before_val(self, runner: Runner) -> None:
        torch.backends.cudnn.benchmark = False

    def after_val(self, runner: Runner) -> None:
        torch.backends.cudnn.benchmark = True

    def before_test(self, runner: Runner) -> None:
        torch.backends.cudnn.benchmark = False


def _on(setting: bool) -> str:
    return 'on' if setting else 'off'
