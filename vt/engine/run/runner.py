"""mmengine's runners with settings for speed, reproducible samples, and safe reading and writing of checkpoints."""

import copy
import io
import logging
from contextlib import AbstractContextManager, closing, redirect_stdout
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import joblib
import torch
from mmengine.config import Config
from mmengine.device import get_device
from mmengine.dist import is_main_process, master_only
from mmengine.hooks import Hook
from mmengine.logging import MMLogger
from mmengine.model import is_model_wrapper
from mmengine.optim import BaseOptimWrapper, OptimWrapper, OptimWrapperDict
from mmengine.runner import BaseLoop, IterBasedTrainLoop, Runner
from mmengine.runner.checkpoint import load_state_dict
from torch import nn
from torch.distributed.fsdp import FSDPModule
from torch.utils.data import DataLoader

from vt.checkpoints.inert import make_plain
from vt.checkpoints.loading import weights_only
from vt.checkpoints.reading import Checkpoint
from vt.checkpoints.weights import load_own_parts, unwrap
from vt.engine.config.data import Data, given
from vt.engine.config.parameter_rules import require_multiplied
from vt.engine.config.steps import autocast_dtype
from vt.engine.determinism import seeded_loader
from vt.engine.hooks.checkpoint import refuse_places
from vt.engine.hooks.console import ConsoleFilter, ConsoleHandler, TerminalHandler, clear, is_live_terminal
from vt.engine.reporting import error_context
from vt.engine.run.resumed_settings import refuse_other_classes
from vt.engine.run.sharding import ShardSettings, checkpoint_of, gather, like, shard_run
from vt.engine.run.work_directory import Start, start_of, use_work_directory
from vt.errors import UserError
from vt.files import atomic_write, parse_errors, write_atomically
from vt.logs import log_to
from vt.models.freezing import freeze
from vt.models.layer_depths import depths_in_model
from vt.models.optimize import optimize_for
from vt.models.recomputation import keep_statistics_in_backward
from vt.ops.token_products import choose_token_library
from vt.private_names import set_start
from vt.registry import HOOKS, RUNNERS

from .batch_size import find_left_out_samples
from .cuda_graphs import CudaGraphsHook, TrainGraphsHook, refuse_train_graphs
from .folding import FoldNormsHook
from .schedules import count_accumulation, end_with_run
from .speed_settings import SpeedSettings, compile_parts


@RUNNERS.register_module()
class VTRunner(Runner):
    """A runner that makes the settings of the config key ``speed`` and names them in one line of the log.

    See :class:`vt.engine.run.speed_settings.SpeedSettings`. ``vt train`` and ``vt test`` use it by themselves;
    other tools of OpenMMLab do with ``runner_type = 'vt.VTRunner'``. The key ``fsdp`` shards the model in training, see
    :class:`vt.engine.run.sharding.ShardSettings`.

    Samples depend only on the seed and their position, see :mod:`vt.engine.determinism`. All checkpoints are
    read weights-only. Written checkpoints contain only tensors, numbers and text, and are never partial.
    """

    given: Config | None = None  # the config as it was before the start of the training was entered
    held: Checkpoint | None = None  # what the training continues, where it was read already
    is_repeatable = False  # whether the command line of this process began the run
    data: Data | None = None  # data sets that are built already
    _dropped: frozenset[str] = frozenset()
    _is_built = False
    _has_begun = False

    def __init__(self, *args, auto_scale_lr: dict | None = None, optim_wrapper: Any = None, **kwargs) -> None:
        scaling = count_accumulation(auto_scale_lr, optim_wrapper)
        cfg = kwargs.get('cfg') or {}
        with error_context('building the run', cfg.to_dict() if isinstance(cfg, Config) else cfg):
            super().__init__(*args, **dict(kwargs, auto_scale_lr=scaling, optim_wrapper=optim_wrapper))
        self._is_built = True
        self.logger.info(f'Environment, config and hooks are in the log: {self.logger.log_file}')

    def call_hook(self, fn_name: str, **kwargs) -> None:
        """Call all hooks, then reduce a checkpoint to tensors, numbers and text, whatever hooks added to it."""
        checkpoint = kwargs['checkpoint'] if fn_name == 'before_save_checkpoint' else None
        self._has_begun |= fn_name in ('before_train_epoch', 'before_val_epoch', 'before_test_epoch')
        if fn_name == 'after_load_checkpoint' and self.cfg.get('resume'):  # before hooks compare the weights of heads
            refuse_other_classes(kwargs['checkpoint'], self.train_dataloader.dataset)
        super().call_hook(fn_name, **kwargs)
        for note in self.data.notes if fn_name == 'before_run' and self.data else ():
            self.logger.info(note)
        if fn_name == 'before_train':
            self._write_config(self.work_dir)
        if fn_name == 'before_train_epoch' and not self.cfg.get('compile'):  # compiled graphs count batches once
            keep_statistics_in_backward(self.optim_wrapper, self.model)
        dropped = make_plain(checkpoint) if checkpoint else set()
        if dropped - self._dropped:
            self.logger.warning(f'Not saved, because they are neither numbers nor text: {", ".join(sorted(dropped))}')
            self._dropped = frozenset(dropped)

    def dump_config(self) -> None:
        """Write nothing yet: a training writes its config when it begins, a test beside its log."""

    @master_only
    def _write_config(self, folder: str) -> None:
        cfg = self.given or self.cfg
        name = cfg.get('config_name') or Path(cfg.filename or self.timestamp).stem
        write_atomically(Path(folder, f'{name}.py'), cfg.pretty_text)

    def build_dataloader(self, dataloader: DataLoader | dict, seed: int | None = None, *args, **kwargs) -> DataLoader:
        if isinstance(dataloader, dict):
            workers = min(dataloader.get('num_workers', 0), joblib.cpu_count())
            dataloader = dict(dataloader, num_workers=workers)
            if isinstance(dataset := dataloader.get('dataset'), dict):
                self.data = self.data or Data(self.cfg)
                dataloader['dataset'] = given(self.data.load_for_run(dataset))
            dataloader = seeded_loader(dataloader, seed)
        return super().build_dataloader(dataloader, seed, *args, **kwargs)

    def setup_env(self, env_cfg: dict) -> None:
        """Set up allocator, threads and precision of the process before mmengine sets threads and builds anything."""
        self.speed = SpeedSettings(**self.cfg.get('speed') or {})
        self.test_graphs = CudaGraphsHook()
        self.sharding = None if self.cfg.get('fsdp') is None else ShardSettings(**self.cfg.fsdp)
        if self.sharding and (self.speed.compile or self.cfg.get('compile')):
            raise UserError('compile is not tested with fsdp: remove one of them')
        self.process_speed = self.speed.set_process()
        deterministic = self.cfg.get('randomness', {}).get('deterministic')
        library = choose_token_library('blas' if deterministic or self.sharding else self.speed.token_products)
        self.speed = replace(self.speed, token_products=library)
        if torch.cuda.is_available():
            torch.set_float32_matmul_precision('highest' if deterministic else self.speed.matmul_precision)
            torch.set_autocast_dtype('cuda', autocast_dtype(self.cfg) or torch.get_autocast_dtype('cuda'))
        # Gradients of cuDNN's attention can be not finite (pytorch/pytorch#196678), as those of CSWin-T on an H100.
        torch.backends.cuda.enable_cudnn_sdp(False)
        super().setup_env(env_cfg)

    def build_logger(self, *args, **kwargs) -> MMLogger:
        """Build a logger; each process writes its own file ``*_rank<N>.log``, and only the main process prints."""
        logger = super().build_logger(*args, distributed=True, **kwargs)
        for index, handler in enumerate(logger.handlers):
            if type(handler) is logging.StreamHandler:  # not those of files
                is_live = is_main_process() and is_live_terminal(handler.stream)
                logger.handlers[index] = TerminalHandler(handler) if is_live else ConsoleHandler(handler)
                self._console = ConsoleFilter(self, logger.handlers[index])
                logger.handlers[index].addFilter(self._is_needed)
        log_to(logger)
        return logger

    def _is_needed(self, record: logging.LogRecord) -> bool:
        """Return whether to print a message: none about environment, config and hooks."""
        is_own = self._is_built and not record.getMessage().endswith(self.experiment_name)
        return (is_own or record.levelno > logging.INFO) and self._console.is_needed(record)

    def build_model(self, model: nn.Module | dict) -> nn.Module:
        """Build the model and choose its implementations before it is wrapped for DDP."""
        with weights_only():  # parts may load weights, such as a teacher's
            model = super().build_model(model)
        if self.cfg.get('freeze'):
            freeze(model, self.cfg['freeze'])
        speed = self.speed
        optimize_for(model, get_device(), speed.channels_last, speed.token_products, is_sharded=bool(self.sharding))
        self._compile(model)
        return model

    def build_optim_wrapper(self, optim_wrapper: Any) -> OptimWrapper | OptimWrapperDict:
        """Build the optimizer wrapper; for rates that decay by layers, a model that does not count its layers does."""
        given = optim_wrapper if isinstance(optim_wrapper, dict) else {}
        if given.get('type', 'OptimWrapper') == 'OptimWrapper' and (keys := given.keys() & {'dtype', 'loss_scale'}):
            raise UserError(f'optim_wrapper.{min(keys)} has no effect without mixed precision: add --amp, or remove it')
        if isinstance(given.get('optimizer'), dict):
            require_multiplied(given)
        if str(given.get('constructor')).endswith('LearningRateDecayOptimWrapperConstructor'):
            model = unwrap(self.model)
            try:
                model.get_layer_depth('backbone.')
            except (AttributeError, NotImplementedError):
                model.get_layer_depth = depths_in_model(model.backbone)
        return super().build_optim_wrapper(optim_wrapper)

    def wrap_model(self, model_wrapper_cfg: dict | None, model: nn.Module) -> nn.Module:
        """The model for several processes; with ``fsdp`` or ``speed.train_graphs`` later, in a training or test."""
        if self.distributed and self.sharding:
            return model
        waits = self.distributed and self.speed.train_graphs
        return model.to(get_device()) if waits else super().wrap_model(model_wrapper_cfg, model)

    def wrap(self) -> None:
        """Wrap the model for several processes, unless it is wrapped or sharded."""
        if self.distributed and not is_model_wrapper(self.model) and not isinstance(self.model, FSDPModule):
            self.model = super().wrap_model(self.cfg.get('model_wrapper_cfg'), self.model)

    def load_or_resume(self) -> None:
        """Load what the config names; with ``fsdp`` shard then what is trained."""
        trains = isinstance(self.optim_wrapper, BaseOptimWrapper)
        if trains and not (self.iter or self.cfg.get('load_from') or self.cfg.get('resume')):
            load_own_parts(self.model)
        super().load_or_resume()
        if trains and self.sharding and not isinstance(self.model, FSDPModule):
            shard_run(self, self.sharding)

    def load_checkpoint(self, filename: str, *args, **kwargs) -> dict:
        """Load weights; a checkpoint that the choice of the start has read is not read again."""
        held, self.held = self.held, None
        if held is None:
            with weights_only(), redirect_stdout(io.StringIO()):  # mmengine prints the name of its reader
                return super().load_checkpoint(filename, *args, **kwargs)
        self.call_hook('after_load_checkpoint', checkpoint=held.content)
        load_state_dict(unwrap(self.model), held.content['state_dict'])
        self.logger.info(f'Load checkpoint from {filename}')
        return held.content

    def save_checkpoint(self, out_dir: str, filename: str, *args, **kwargs) -> None:
        """Save; at every moment either the old file or the new one is there, whole. All processes call it."""
        checkpoint = None
        if isinstance(self.model, FSDPModule):
            checkpoint = checkpoint_of(self, kwargs['meta'], kwargs['save_optimizer'], kwargs['save_param_scheduler'])
            self.call_hook('before_save_checkpoint', checkpoint=checkpoint)
            checkpoint = gather(checkpoint)
        if is_main_process():
            with atomic_write(Path(out_dir, filename)) as part:
                if checkpoint is None:
                    super().save_checkpoint(str(part.parent), part.name, *args, **kwargs)
                else:
                    torch.save(checkpoint, part)

    def _compile(self, model: nn.Module) -> None:
        if self.speed.compile:
            compile_parts(model, self.speed.compile if isinstance(self.speed.compile, dict) else {})

    def build_train_loop(self, loop: BaseLoop | dict) -> BaseLoop:
        """Build the training loop; an epoch without a batch is a UserError."""
        loop = super().build_train_loop(loop)
        if warning := find_left_out_samples(loop.dataloader):
            self.logger.warning(warning)
        return loop

    def build_param_scheduler(self, scheduler: Any) -> Any:
        """Build schedules; those in epochs that are converted to iterations end with a run by iterations, too."""
        if isinstance(self.train_loop, IterBasedTrainLoop):
            scheduler = end_with_run(scheduler, Fraction(self.max_iters, len(self.train_dataloader)))
        return super().build_param_scheduler(scheduler)

    def train(self) -> nn.Module:
        """Train in a work directory of this run alone, which ``vt train`` has entered before: :meth:`start_from`."""
        if self.given is not None:
            return self._train()
        with use_work_directory(self.work_dir, start_of(self.cfg)) as start:
            self.start_from(start)
            return self._train()

    def start_from(self, start: Start, new_schedule: bool = False) -> None:
        """Enter where the training starts."""
        self.given, self.held = copy.deepcopy(self.cfg), start.held
        self.cfg.resume = start.checkpoint is not None
        self.cfg.load_from = start.checkpoint or self.cfg.get('load_from')
        self.cfg.new_schedule = new_schedule or self.cfg.get('new_schedule', False)
        set_start(self, self.cfg.resume, self.cfg.load_from)
        for note in start.notes:
            self.logger.warning(note)

    def _train(self) -> nn.Module:
        if self.speed.cuda_graphs:
            raise UserError('speed.cuda_graphs is only for tests: remove it for training')
        if self.speed.train_graphs:
            refuse_train_graphs(self)
            self._register_once(TrainGraphsHook())
        refuse_places(self.hooks, self.work_dir)
        wrapper = self.cfg.get('optim_wrapper') or {}
        self._log_speed((wrapper.get('dtype') or 'on') if 'Amp' in str(wrapper.get('type')) else None)
        always = self.cfg.get('env_cfg', {}).get('cudnn_benchmark')
        if self.speed.cudnn_benchmark and torch.cuda.is_available() and not always and not self.deterministic:
            self._register_once(CudnnBenchmarkHook())
        with weights_only(), self._preparing('training'):
            try:
                return super().train()
            finally:
                clear(self.logger)

    def test(self) -> dict:
        self.wrap()
        self._write_config(self.log_dir)
        half = bool(self.cfg.get('test_cfg', {}).get('fp16'))
        self._log_speed(torch.get_autocast_dtype('cuda' if torch.cuda.is_available() else 'cpu') if half else None)
        is_sharded = isinstance(self.model, FSDPModule)
        if self.speed.fold_norms and not self.deterministic and not is_sharded:
            self._register_once(FoldNormsHook(self._compile))
        if self.speed.cuda_graphs:
            self._register_once(self.test_graphs)
        with weights_only(), self._preparing('test'), closing(self.test_graphs):
            return super().test()

    def _preparing(self, what: str) -> AbstractContextManager:
        """Return a context that names the part in which a run fails before its first iteration."""
        return error_context(f'preparing the {what}', self.cfg.to_dict(), self.model, unless=lambda: self._has_begun)

    def _register_once(self, hook: Hook) -> None:
        if not any(isinstance(other, type(hook)) for other in self.hooks):  # left from an earlier test
            self.register_hook(hook)

    def _log_speed(self, amp: Any) -> None:
        settings = asdict(self.speed)
        if torch.cuda.is_available():
            settings['matmul_precision'] = torch.get_float32_matmul_precision()
        named = ', '.join(f'{name}={value}' for name, value in settings.items())
        amp = str(amp or 'off').removeprefix('torch.')
        self.logger.info(f'Speed: {self.process_speed}; --amp {amp}; --cfg-options speed: {named}')

    def resume(self, filename: str, *args, **kwargs) -> None:
        """Resume, data errors in one line, and give the optimizer's state the memory layout of its weights."""
        if self.sharding:
            kwargs['map_location'] = 'cpu'  # where the weights are until they are sharded
        with weights_only(), parse_errors(filename):
            super().resume(filename, *args, **kwargs)
        if isinstance(self.optim_wrapper, OptimWrapper):
            for parameter, state in self.optim_wrapper.optimizer.state.items():
                state.update({name: like(parameter, value) for name, value in state.items()})


@HOOKS.register_module()
class CudnnBenchmarkHook(Hook):
    """Use cuDNN's benchmark mode in training, but not in validation, where image sizes vary."""

    def before_train(self, runner: Runner) -> None:
        torch.backends.cudnn.benchmark = True

    def before_val(self, runner: Runner) -> None:
        torch.backends.cudnn.benchmark = False

    after_val, before_test = before_train, before_val
