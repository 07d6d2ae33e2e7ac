"""The trained classifier that a student learns from.

Letters: N batch, K classes; (m, s) mean and deviation of a normalisation.
"""

from copy import deepcopy
from pathlib import Path

import torch
from mmengine.model import BaseDataPreprocessor
from mmpretrain.models.classifiers import ImageClassifier
from mmpretrain.registry import MODELS as CLASSIFIERS
from torch import Tensor, nn
from torchvision.transforms import Resize

from vt.checkpoints.loading import weights_only
from vt.checkpoints.weights import load_weights
from vt.errors import MissingFileError, UserError

WHERE = 'model.teacher'


class Teacher(nn.Module):
    """A classifier that only predicts: in evaluation mode, without gradients.

    It is given the student's batch, with its augmentation and mixing. A teacher whose ``data_preprocessor`` names
    ``mean`` and ``std`` sees the batch normalised by them, in the channel order of its ``to_rgb``; one that names none
    sees what the student sees. (One that wants pixels from 0 to 255 names ``mean=[0, 0, 0], std=[1, 1, 1]``.)

    Args:
        classifier: config of a classifier: MMPretrain's, ours (``vt.``), or any timm model by ``TimmClassifier``.
        checkpoint: path or address of its weights. None where timm brings them (``pretrained=True`` or
            ``checkpoint_path=...`` in ``classifier``).
        size: images are resized to this size, of the shorter edge or (height, width), if it is not None.
        preprocessor: the student's.
        num_classes: K of the student; None is not compared.

    Raises:
        UserError: no weights; weights that differ from the model's in names or shapes; another number of classes.
        MissingFileError: ``checkpoint`` is not there.
        ImportError: the classifier needs a package that is not installed.
        OSError: weights could not be fetched.
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
            raise UserError(f'{WHERE} has no weights: set {WHERE}_checkpoint to their file')
        self.classifier = build_classifier(classifier, num_classes)
        if checkpoint is not None:
            load_teacher(self.classifier, checkpoint)
        own = self.classifier.data_preprocessor
        self.normalize = Renormalize(preprocessor, own) if hasattr(own, 'mean') else nn.Identity()
        self.resize = Resize(size, antialias=True) if size is not None else nn.Identity()
        self.requires_grad_(False)
        self.eval()

    @torch.no_grad()
    def forward(self, inputs: Tensor) -> Tensor:
        """The student's inputs ``(N, 3, height, width)`` to the teacher's logits ``(N, K)``."""
        return self.classifier(self.resize(self.normalize(inputs)))

    @torch.no_grad()
    def label_maps(self, inputs: Tensor) -> Tensor:
        """The student's inputs to probabilities of each pixel of the teacher's last map, ``(N, K, h, w)``.

        Raises:
            UserError: the teacher makes no map.
        """
        if not isinstance(self.classifier, ImageClassifier):
            raise UserError(f'{WHERE} is no ImageClassifier, whose backbone gives a map; set {WHERE} to one')
        *_, x = self.classifier.extract_feat(self.resize(self.normalize(inputs)), stage='backbone')
        if x.dim() != 4:
            raise UserError(f'{WHERE} gives no map of an image; set {WHERE} to one with a ResNet')
        pixels = x.movedim(1, -1)  # N, h, w, C
        labels = self.classifier.head((pixels.flatten(0, 2),)).softmax(dim=-1)
        return labels.unflatten(0, pixels.shape[:3]).movedim(-1, 1)


class Renormalize(nn.Module):
    """From one preprocessor's normalisation to another's: ``(x - m) / s`` to ``(x - m') / s'``.

    Args:
        source: the preprocessor that the inputs come from; without ``mean`` they are pixels.
        target: the preprocessor that they shall seem to come from.
    """

    def __init__(self, source: BaseDataPreprocessor, target: BaseDataPreprocessor) -> None:
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


def build_classifier(classifier: dict, num_classes: int | None) -> nn.Module:
    """Build a config's classifier; an unmet need of it is one line.

    Raises:
        UserError: it has another number of classes.
        ImportError: it needs a package that is not installed.
        OSError: weights that it brings itself could not be fetched.
    """
    try:
        with weights_only():  # timm loads them itself
            model = CLASSIFIERS.build(deepcopy(classifier))  # classifiers write defaults into their config
    except ImportError as error:
        hint = f"For timm: pip install -e '.[timm]'; or set another {WHERE}"
        raise ImportError(f'{WHERE} lacks a package: {error} {hint}') from error
    except OSError as error:
        raise OSError(f'weights of {WHERE} not fetched ({error}): set {WHERE}_checkpoint to their file') from error
    last = getattr(model, 'head', None) or getattr(model, 'model', None)  # timm's models know their classes themselves
    own = getattr(last, 'num_classes', None)
    if None not in (own, num_classes) and own != num_classes:
        raise UserError(f'{WHERE} has {own} classes, the student {num_classes}: they must be the same')
    return model


def load_teacher(classifier: nn.Module, checkpoint: str) -> None:
    """Load every tensor of a classifier; there may be no missing or unexpected keys.

    Args:
        classifier: built, with any weights.
        checkpoint: path or address of a checkpoint of mmengine, or of a plain state dict.

    Raises:
        MissingFileError: there is no such file.
        OSError: it can't be read or fetched.
        UserError: names or shapes differ; or it is damaged, or asks for more than weights.
    """
    if '://' not in checkpoint and not Path(checkpoint).is_file():
        raise MissingFileError(
            f'there is no {checkpoint} for {WHERE}: train the teacher first, or set {WHERE}_checkpoint to its weights'
        )
    load_weights(classifier, checkpoint, WHERE, f'set {WHERE} to the model that was trained')
