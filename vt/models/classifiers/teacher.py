"""The trained teacher of knowledge distillation.

Letters: N batch, K classes; m and s, mean and standard deviation of a normalisation.
"""

from typing import Any

import torch
from mmengine.model import BaseDataPreprocessor
from mmpretrain.registry import MODELS as CLASSIFIERS
from torch import Tensor, nn
from torchvision.transforms import Resize

from vt.checkpoints.weights import load_weights
from vt.errors import UserError
from vt.registry import build

WHERE = 'model.teacher'


class Teacher(nn.Module):
    """A frozen classifier in evaluation mode.

    It predicts on the student's batch, including augmentation and mixing. If its ``data_preprocessor`` sets ``mean``
    and ``std``, the batch is converted to that normalisation and to the channel order of its ``to_rgb``; otherwise it
    gets the same input as the student. (For pixels from 0 to 255 set ``mean=[0, 0, 0], std=[1, 1, 1]``.)

    Args:
        classifier: config of a classifier: of MMPretrain, of this package (``vt.``), or of timm (``TimmClassifier``).
        checkpoint: path or URL of its weights; None if timm loads them (``pretrained=True`` or ``checkpoint_path=...``
            in ``classifier``).
        size: size to which images are resized, of the shorter edge or (height, width); None for no resizing.
        preprocessor: data preprocessor of the student.
        num_classes: K of the student; None skips the comparison.

    Raises:
        UserError: there are no weights, their names or shapes do not match the model, the file is damaged or contains
            other objects than weights, or K differs.
        OSError: the file can't be read or downloaded.
    """

    def __init__(
        self,
        classifier: dict,
        checkpoint: str | None,
        size: int | tuple[int, int] | None,
        preprocessor: BaseDataPreprocessor,
        num_classes: int | None,
    ) -> None:
        super().__init__()
        if checkpoint is None and not (classifier.get('pretrained') is True or classifier.get('checkpoint_path')):
            raise UserError(f'{WHERE} has no weights: set {WHERE}_checkpoint to a checkpoint')
        self.classifier = build_classifier(classifier, num_classes)
        if checkpoint is not None:
            load_weights(self.classifier, checkpoint, owner=WHERE)
        own = self.classifier.data_preprocessor
        self.normalize = Renormalize(preprocessor, own) if hasattr(own, 'mean') else nn.Identity()
        self.resize = Resize(size, antialias=True) if size is not None else nn.Identity()
        self.requires_grad_(False)
        self.eval()

    @torch.no_grad()
    def forward(self, inputs: Tensor) -> Tensor:
        """Inputs of the student ``(N, 3, height, width)`` to logits of the teacher ``(N, K)``."""
        return self.classifier(self.resize(self.normalize(inputs)))

    @torch.no_grad()
    def label_maps(self, inputs: Tensor) -> Tensor:
        """Compute class probabilities at each pixel of the teacher's last feature map.

        Args:
            inputs: inputs of the student, ``(N, 3, height, width)``.

        Returns:
            Probabilities, ``(N, K, h, w)``.
        """
        *_, x = self.classifier.extract_feat(self.resize(self.normalize(inputs)), stage='backbone')
        pixels = x.movedim(1, -1)  # N, h, w, C
        labels = self.classifier.head((pixels.flatten(0, 2),)).softmax(dim=-1)
        return labels.unflatten(0, pixels.shape[:3]).movedim(-1, 1)


class Renormalize(nn.Module):
    """Convert inputs from one preprocessor's normalisation to another's: ``(x - m) / s`` to ``(x - m') / s'``.

    Args:
        source: preprocessor of the inputs; without ``mean`` they are pixels.
        target: preprocessor whose normalisation and channel order the output has.
    """

    scale: Tensor
    shift: Tensor

    def __init__(self, source: BaseDataPreprocessor, target: Any) -> None:
        super().__init__()
        mean = getattr(source, 'mean', torch.zeros(1, 1, 1))
        std = getattr(source, 'std', torch.ones(1, 1, 1))
        flips = getattr(source, 'to_rgb', False) != target.to_rgb
        if flips:
            mean, std = mean.flip(0), std.flip(0)
        self.channel_order = [2, 1, 0] if flips else slice(None)
        target_mean, target_std = target.mean.to(mean.device), target.std.to(mean.device)
        self.register_buffer('scale', std / target_std)
        self.register_buffer('shift', (mean - target_mean) / target_std)

    def forward(self, x: Tensor) -> Tensor:
        return x[:, self.channel_order] * self.scale + self.shift


def build_classifier(classifier: dict, num_classes: int | None) -> Any:
    """Build the classifier of a config.

    Raises:
        UserError: it has another number of classes than ``num_classes``.
    """
    file = classifier.get('checkpoint_path')  # timm would run code in it
    options = {key: value for key, value in classifier.items() if key != 'checkpoint_path'}
    model = build(CLASSIFIERS, options, 'mmpretrain')
    if file:
        load_weights(model.model, file, owner=WHERE)
    last = getattr(model, 'head', None) or getattr(model, 'model', None)  # timm's models have num_classes themselves
    own = getattr(last, 'num_classes', None)
    if None not in (own, num_classes) and own != num_classes:
        raise UserError(f'{WHERE} has {own} classes, but the student has {num_classes}: they must be equal')
    return model
