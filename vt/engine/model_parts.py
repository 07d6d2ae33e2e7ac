"""The parts of a model that take its time, backbone and neck, and how they are compiled."""

from typing import Any

from torch import nn

from vt.checkpoints.weights import unwrap
from vt.errors import UserError


def compile_parts(model: nn.Module, options: dict[str, Any] | None = None) -> None:
    """Compile a model's backbone and neck in place, each at its next call; names and weights stay as they are.

    The rest of a step, such as the loss, the optimizer and what is written to the log, breaks graphs and stays eager.
    A neck without parameters, such as an average over pixels, does too. A copy of the model is not compiled.

    Args:
        model: may be wrapped.
        options: of :func:`torch.compile`.

    Raises:
        UserError: the model has no backbone.
    """
    model = unwrap(model)
    if not isinstance(getattr(model, 'backbone', None), nn.Module):
        raise UserError(f'speed.compile is for a backbone and a neck, {type(model).__name__} has none: leave it out')
    for part in (model.backbone, getattr(model, 'neck', None)):
        if part is not None and any(True for _ in part.parameters()):
            part.compile(**options or {})
