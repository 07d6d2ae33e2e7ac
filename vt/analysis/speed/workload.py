"""Workload of a benchmark: a model or a part of it, its inputs, and steps of inference and training.

Letters: N batch, H and W height and width of an image, T frames of a clip.
"""

import copy
from collections.abc import Callable
from typing import Any

import torch
from mmcv.cnn import fuse_conv_bn
from mmengine.structures import PixelData
from mmpretrain.structures import DataSample
from mmseg.structures import SegDataSample
from torch import Tensor, nn

from vt.engine.counting import Complexity, count_complexity, has_neck, neck_inputs
from vt.errors import UserError

from .measurement import PIXELS, Setting
from .timing import Step


class Workload:
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
        self.part, self.setting = part, setting
        self.module = model if part == 'whole' else getattr(model, part)
        self.options = dict(mode='tensor') if part == 'whole' else {}
        shape = setting.batch_size, 3, *setting.size
        if part == 'neck':
            maps = neck_inputs(copy.deepcopy(model).to('meta'), torch.empty(shape, device='meta'))
            self.inputs = tuple(setting.random(*x.shape).to(setting.tensor_dtype).requires_grad_() for x in maps)
        else:
            self.inputs = setting.random(*shape)

    def count(self) -> Complexity:
        """Count multiply-adds of one image in inference, and parameters, on the meta device."""
        one = [x[:1].detach().to('meta', torch.float32) for x in _as_tuple(self.inputs)]
        skeleton = copy.deepcopy(self.module).to('meta').requires_grad_(False)  # gradients bar views
        return count_complexity(skeleton, tuple(one) if self.part == 'neck' else one[0], **self.options)

    def step(self, kind: str) -> Step:
        """Return a step of ``'inference'`` or ``'training'``, and set the module to that mode."""
        self.module.train(kind == 'training')
        if kind == 'inference':
            # Fold in a copy, since training needs the normalisation.
            module = fuse_conv_bn(copy.deepcopy(self.module)) if self.setting.fuse_conv_bn else self.module
            forward = self._prepare(module)
            inputs = tuple(x.detach() for x in self.inputs) if self.part == 'neck' else self.inputs
            return torch.inference_mode()(lambda: forward(inputs, **self.options))
        forward = self._prepare(self.module)
        return self._model_step(forward) if self.part == 'whole' else self._part_step(forward)

    def _prepare(self, module: nn.Module) -> Callable[..., Any]:
        """Return the forward pass of the module in this setting."""
        compiles = self.setting.compile not in ('off', PIXELS)
        call = torch.compile(module, mode=self.setting.compile) if compiles else module

        def forward(*args: Any, **options: Any) -> Any:
            if compiles:
                torch.compiler.cudagraph_mark_step_begin()
            with self.setting.autocast():
                return call(*args, **options)

        return forward

    def _model_step(self, forward: Callable[..., Any]) -> Step:
        """Return a training step: forward, loss, backward and SGD update, with loss scaling in float16."""
        model, samples = self.module, _samples(self.module, self.inputs)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-6, momentum=0.9)
        scaler = torch.amp.GradScaler(self.inputs.device.type, enabled=self.setting.dtype == 'float16')

        def step() -> None:
            optimizer.zero_grad(set_to_none=True)
            loss, _ = model.parse_losses(forward(self.inputs, samples, mode='loss'))
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()

        return step

    def _part_step(self, forward: Callable[..., Any]) -> Step:
        """Return the share of a part in a training step: forward and backward, for a neck also to its inputs."""
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


def _samples(model: nn.Module, images: Tensor) -> list:
    """Return targets for the loss: a class per image, or per pixel for a segmentor."""
    if not hasattr(model, 'decode_head'):
        return [DataSample().set_gt_label(0).to(images.device) for _ in images]
    labels = torch.zeros(1, *images.shape[-2:], dtype=torch.long, device=images.device)
    return [SegDataSample(gt_sem_seg=PixelData(data=labels)) for _ in images]
