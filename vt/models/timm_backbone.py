"""Classifiers of timm, by their names: all of a model but its classifier, which is our head."""

import re
from collections.abc import Sequence
from typing import Any

from mmengine.model import BaseModule
from torch import Tensor, nn

from vt.checkpoints.weight_sources import similar_in_timm
from vt.errors import UserError
from vt.registry import MODELS


@MODELS.register_module()
class TimmBackbone(BaseModule):
    """A classifier of timm without its last layer: images to the vectors that its classifier gets.

    ::

        backbone=dict(type='vt.TimmBackbone', model_name='resnet18.a1_in1k'), head=dict(in_channels=512)

    Files with timm's names of tensors load into a model with this backbone and a ``LinearClsHead``. For maps of timm's
    models see MMPretrain's ``TIMMBackbone``.

    Args:
        model_name: name of the model in timm, with or without the tag of its weights.
        in_channels: of an image.
        options: further arguments of ``timm.create_model``, such as ``dict(drop_path_rate=0.1)``.
        init_cfg: as in mmengine.

    Attributes:
        num_features: number of channels of the vectors.

    Raises:
        UserError: timm has no such model, or the model has no classifier of one layer.
    """

    def __init__(
        self,
        model_name: str,
        in_channels: int = 3,
        options: dict | None = None,
        init_cfg: dict | Sequence[dict] | None = None,
    ) -> None:
        super().__init__(init_cfg)
        import timm  # optional: pip install timm

        try:
            self.model: Any = timm.create_model(model_name, in_chans=in_channels, **(options or {}))
        except (RuntimeError, TypeError, ValueError) as error:
            words = [' '.join(str(error).split())[:160], similar_in_timm(model_name)]
            raise UserError(f'TimmBackbone: {model_name}: {": ".join(filter(None, words))}') from error
        self.classifier = self.model.pretrained_cfg.get('classifier')
        if not isinstance(self.classifier, str):  # of two layers in a distilled model
            raise UserError(f'TimmBackbone: the classifier of {model_name} must be one layer, not {self.classifier}')
        last: Any = self.model.get_submodule(self.classifier)
        self.num_features: int = last.weight.shape[1] if hasattr(last, 'weight') else self.model.num_features
        self.model.set_submodule(self.classifier, nn.Identity())

    @property
    def own_names(self) -> tuple[tuple[str, str], ...]:
        """Patterns of timm's names of tensors, and what replaces them in a model with this backbone and our head."""
        classifier = re.escape(self.classifier)
        return (rf'^(?!{classifier}\.)', 'model.'), (rf'^{classifier}\.', 'head.fc.')

    def forward(self, x: Tensor) -> tuple[Tensor]:
        """Images ``(N, in_channels, height, width)`` to a tuple of one ``(N, num_features)``."""
        return (self.model(x),)
