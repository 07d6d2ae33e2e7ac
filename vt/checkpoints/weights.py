"""Weights into a model: all of them, or at least some."""

from collections import OrderedDict
from pathlib import Path

from mmengine.model import BaseTTAModel, is_model_wrapper
from torch import Tensor, nn

from vt.errors import UserError

from .addresses import load_checkpoint

REMEDY = 'give the config that it was trained with'


def load_weights(
    model: nn.Module,
    checkpoint: str | Path | dict,
    owner: str = 'the model',
    remedy: str = REMEDY,
    name: str = 'the checkpoint',
) -> None:
    """Load every tensor of a model; nothing may lack or be left over.

    ``module.`` of a data-parallel model is taken off. Counters of batches may lack, as they do in old files.

    Args:
        model: built, with any weights; a wrapper of one will do.
        checkpoint: path or address of a checkpoint of mmengine or of a plain state dict; or what was read from one.
        owner, remedy: whose weights they are and what to do, for errors.
        name: of the file, for errors, where ``checkpoint`` was read from one.

    Raises:
        MissingFileError: there is no such file.
        OSError: it can't be read or fetched.
        UserError: names or shapes differ; or it is damaged, or asks for more than weights.
    """
    if not isinstance(checkpoint, dict):
        name = str(checkpoint)
        checkpoint = load_checkpoint(name, map_location='cpu')
    model, state = unwrap(model), state_of(checkpoint, name)
    try:
        missing, unexpected = model.load_state_dict(state, strict=False)
    except RuntimeError as error:
        raise UserError(f"{name} is not {owner}'s: {_differing_shape(model, state) or error}; {remedy}") from error
    missing = [tensor for tensor in missing if not tensor.endswith('num_batches_tracked')]
    for difference, names in (('lacks', missing), ('also holds', unexpected)):
        if names:
            raise UserError(
                f"{name} is not {owner}'s: of {len(model.state_dict())} tensors it {difference} {min(names)} "
                f'and {len(names) - 1} more; {remedy}'
            )


def _differing_shape(model: nn.Module, state: dict[str, Tensor]) -> str | None:
    """The first tensor of another shape, and how many there are; None if a part of the model knows of others only."""
    own = model.state_dict()
    names = [name for name in own if name in state and own[name].shape != state[name].shape]
    if not names:
        return None
    theirs, ours = tuple(state[names[0]].shape), tuple(own[names[0]].shape)
    return f'{names[0]} is {theirs}, the model needs {ours}, and {len(names) - 1} more differ'


def require_some_match(model: nn.Module, state: dict[str, Tensor], name: str) -> None:
    """Fine-tuning may take a part of a checkpoint, but not nothing of it.

    Args:
        model: whose weights they shall become; a wrapper of one will do.
        state: tensors by name, as :func:`state_of` gives them.
        name: of the file, for the error.

    Raises:
        UserError: no tensor has the name and the shape of one of the model's.
    """
    own = unwrap(model).state_dict()
    if not any(own[tensor].shape == state[tensor].shape for tensor in own.keys() & state.keys()):
        raise UserError(
            f'{name} holds none of the {len(own)} tensors of the model: its first is {min(state, default=None)}, '
            f"the model's {min(own, default=None)}; give a checkpoint of this model"
        )


def require_training_state(checkpoint: dict, name: str) -> None:
    """Tell weights alone from a checkpoint that training can go on from.

    Raises:
        UserError: it holds weights alone.
    """
    if not (has_place_in_training(checkpoint) and 'message_hub' in checkpoint and 'optimizer' in checkpoint):
        raise UserError(f'{name} holds no state of a training run: begin from its weights by load_from, not --resume')


def has_place_in_training(checkpoint: dict) -> bool:
    """Whether a checkpoint says at which epoch and iteration it was written."""
    meta = checkpoint.get('meta')
    return isinstance(meta, dict) and all(isinstance(meta.get(name), int) for name in ('epoch', 'iter'))


def state_of(checkpoint: dict, name: str = 'the checkpoint') -> dict[str, Tensor]:
    """The tensors of a checkpoint by name, without ``module.`` of a data-parallel model.

    Args:
        checkpoint: what was read from a file.
        name: of the file, for the error.

    Raises:
        UserError: there are none.
    """
    state = checkpoint.get('state_dict', checkpoint)
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
        model = model.module
    return model
