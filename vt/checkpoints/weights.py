"""Weights into a model: all of them, or at least some; mmengine only warns, and goes on with arbitrary ones."""

from collections import OrderedDict
from pathlib import Path

from mmengine.hooks import Hook
from mmengine.model import BaseTTAModel, is_model_wrapper
from mmengine.runner import Runner
from torch import Tensor, nn

from vt.errors import UserError
from vt.registry import HOOKS
from vt.untrusted_text import printable

from .reading import load_checkpoint

# Where a file keeps the tensors: mmengine and timm; the authors of DeiT and Swin; those of SlowFast.
STATES = ('state_dict', 'model', 'model_state')


def load_weights(
    model: nn.Module,
    checkpoint: str | Path | dict,
    owner: str = 'the model',
    remedy: str = 'give the config that it was trained with',
    name: str = 'the checkpoint',
) -> None:
    """Load every tensor of a model; there may be no missing or unexpected keys.

    ``module.`` of a data-parallel model is taken off. Counters of batches may be missing, as they are in old files.

    Args:
        model: built, with any weights; a wrapper of one will do.
        checkpoint: path or address of a checkpoint of mmengine or of a plain state dict; or what was read from one.
        owner, remedy, name: whose weights they are, what to do, and the file's name, for errors.

    Raises:
        UserError: names or shapes differ; or the file can't be read, is damaged, or asks for more than weights.
    """
    if not isinstance(checkpoint, dict):
        name = str(checkpoint)
        checkpoint = load_checkpoint(name, map_location='cpu')
    model, state = unwrap(model), state_of(checkpoint, name)
    own = model.state_dict()
    try:
        missing, unexpected = model.load_state_dict(state, strict=False)
    except RuntimeError as error:
        shapes = [(key, tuple(state[key].shape), tuple(own[key].shape)) for key in own if key in state]
        differing = [f'{key} is {theirs}, the model needs {ours}' for key, theirs, ours in shapes if theirs != ours]
        reason = f'{differing[0]}, and {len(differing) - 1} more differ' if differing else printable(error, 300)
        raise UserError(f"{name} is not {owner}'s: {reason}; {remedy}") from error
    missing = [key for key in missing if not key.endswith('num_batches_tracked')]
    for difference, names in (('lacks', missing), ('also holds', unexpected)):
        if names:
            reason = f'of {len(own)} tensors it {difference} {printable(min(names), 120)} and {len(names) - 1} more'
            raise UserError(f"{name} is not {owner}'s: {reason}; {remedy}")


def require_some_match(model: nn.Module, state: dict[str, Tensor], name: str) -> None:
    """Raise a UserError unless a tensor has the name and the shape of one of the model's; ``name`` is the file's."""
    own = unwrap(model).state_dict()
    if not any(own[tensor].shape == state[tensor].shape for tensor in own.keys() & state.keys()):
        first = f"its first is {printable(min(state, default=None), 120)}, the model's {min(own, default=None)}"
        raise UserError(f'{name} holds none of the {len(own)} tensors of the model: {first}; give a checkpoint of it')


def state_of(checkpoint: dict, name: str = 'the checkpoint') -> dict[str, Tensor]:
    """The tensors by name, without ``module.`` of a data-parallel model; a UserError, naming the file, if none is."""
    state = next((checkpoint[key] for key in STATES if isinstance(checkpoint.get(key), dict)), checkpoint)
    items = state.items() if isinstance(state, dict) else ()
    tensors = [(str(key).removeprefix('module.'), value) for key, value in items if isinstance(value, Tensor)]
    if not tensors:
        raise UserError(f'{name} holds no weights by name: give a checkpoint, or a state dict')
    named = OrderedDict(tensors)
    named._metadata = getattr(state, '_metadata', OrderedDict())  # versions of modules
    return named


def unwrap(model: nn.Module) -> nn.Module:
    """The model itself, below wrappers for distribution or test-time augmentation."""
    while is_model_wrapper(model) or isinstance(model, BaseTTAModel):
        model = model.get_submodule('module')
    return model


@HOOKS.register_module()
class WeightsMatchHook(Hook):
    """Stop where a checkpoint is not the model's.

    To go on with training, and to test, there may be no missing or unexpected keys; to begin from the weights of
    another task, at least one must fit.

    Args:
        whole: ask for every tensor whatever the checkpoint is for.
    """

    priority = 'VERY_HIGH'

    def __init__(self, whole: bool = False) -> None:
        self.whole = whole

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        if not isinstance(runner, Runner):
            return  # a strategy such as FSDP compares the parts that it loads itself
        name, resumes = str(runner.cfg.get('load_from') or 'the checkpoint'), runner.cfg.get('resume')
        if resumes and not {'meta', 'message_hub', 'optimizer'} <= checkpoint.keys():
            advice = 'begin from its weights by load_from, not --resume'
            raise UserError(f'{name} holds no state of a training run: {advice}')
        state = state_of(checkpoint, name)
        checkpoint.setdefault('state_dict', state)  # other hooks need it
        if self.whole or resumes:
            load_weights(runner.model, checkpoint, name=name)
        else:
            require_some_match(runner.model, state, name)
            checkpoint['state_dict'] = _fitting(runner, state, name)
            if checkpoint.pop('ema_state_dict', None):  # EMAHook would go on with the other task's
                runner.logger.info(f'{name}: its averages (EMA) are loaded, and the weights they are of left out')


def _fitting(runner: Runner, state: OrderedDict[str, Tensor], name: str) -> OrderedDict[str, Tensor]:
    """What of a checkpoint has the shapes of the model, for every part of the run that loads it, averages too."""
    own = unwrap(runner.model).state_dict()
    left = [key for key, tensor in state.items() if key in own and own[key].shape != tensor.shape]
    if left:
        names = printable(', '.join(left[:3]), 200) + (f' and {len(left) - 3} more' if len(left) > 3 else '')
        runner.logger.warning(f'{name}: left out, since the model has other shapes: {names}')
    fitting = OrderedDict((key, tensor) for key, tensor in state.items() if key not in left)
    fitting._metadata = state._metadata
    return fitting
