"""What a measurement runs: a model or a part of it, its inputs, and steps of inference and training.

Letters: N batch, H and W height and width of an image, T frames of a clip.
"""

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from docs.reports.complexity import has_neck, neck_inputs
from vt.analysis import speed
from vt.analysis.speed import Step
from vt.engine.counting import Complexity, count_complexity
from vt.errors import UserError

from .settings import Setting


class Workload(speed.Workload):
    """A model of OpenMMLab, a peer, a neck or a backbone, with random inputs.

    A neck gets random maps with the shapes and precision of the backbone's outputs, which require gradients.
    ``module`` is the measured module, ``inputs`` are images ``(N, 3, H, W)``, clips ``(N, 3, T, H, W)`` or a tuple of
    maps, ``options`` the keyword arguments of a call in inference.

    Raises:
        UserError: the model does not have the part.
    """

    def __init__(self, model: nn.Module, part: str, setting: Setting) -> None:
        if not has_part(model, part):
            raise UserError(f'{type(model).__name__} has no {part} to measure: remove --only {part}, or this model')
        super().__init__(model, setting)
        self.part = part
        self.module = model if part == 'whole' else getattr(model, part)
        self.options = dict(mode='tensor') if part == 'whole' else {}
        if part == 'neck':
            shape = setting.batch_size, 3, *setting.size
            maps = neck_inputs(copy.deepcopy(model).to('meta'), torch.empty(shape, device='meta'))
            self.inputs = tuple(setting.random(*x.shape).to(setting.tensor_dtype).requires_grad_() for x in maps)

    def count(self) -> Complexity:
        """Count multiply-adds of one image in inference, and parameters, on the meta device."""
        if self.part == 'whole':
            return super().count()
        one = [x[:1].detach().to('meta', torch.float32) for x in _as_tuple(self.inputs)]
        skeleton = copy.deepcopy(self.module).to('meta').requires_grad_(False)  # gradients bar views
        return count_complexity(skeleton, tuple(one) if self.part == 'neck' else one[0])

    def step(self, kind: str) -> Step:
        """Return a step of ``'inference'`` or ``'training'``, and set the module to that mode.

        The share of a part in a training step is forward and backward, for a neck also to its inputs.
        """
        if self.part == 'whole':
            return super().step(kind)
        self.module.train(kind == 'training')
        forward = self.setting.forward(self.module)
        if kind == 'inference':
            inputs = tuple(x.detach() for x in self.inputs) if self.part == 'neck' else self.inputs
            return torch.inference_mode()(lambda: forward(inputs))
        return self._part_step(forward)

    def _part_step(self, forward: Callable[..., Any]) -> Step:
        inputs = [x for x in _as_tuple(self.inputs) if x.requires_grad]
        variables = inputs + [parameter for parameter in self.module.parameters() if parameter.requires_grad]

        def outputs() -> list[Tensor]:
            return [out for out in _as_tuple(forward(self.inputs)) if out.requires_grad]  # without frozen stages

        gradients = [torch.randn_like(out) for out in outputs()]

        def step() -> None:
            torch.autograd.grad(outputs(), variables, gradients, allow_unused=True)

        return step


def has_part(model: nn.Module, part: str) -> bool:
    """Whether a model has a part; a neck must have parameters."""
    return has_neck(model) if part == 'neck' else part == 'whole' or hasattr(model, part)


def _as_tuple(tensors: Any) -> tuple[Tensor, ...]:
    return (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)
