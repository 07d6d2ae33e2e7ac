"""Preprocessing of clips, and averaging of the scores of several views of a video.

Letters: see :mod:`vt.video`.
"""

from collections.abc import Callable
from functools import partial

import torch
from mmpretrain.models import ClsDataPreprocessor, ImageClassifier
from mmpretrain.structures import DataSample
from torch import Tensor

from vt.registry import MODELS


@MODELS.register_module()
class ClipPreprocessor(ClsDataPreprocessor):
    """MMPretrain's data preprocessor for classification, on clips: RGB, normalisation, labels, Mixup and CutMix.

    Samples are ``(C, T, H, W)`` or ``(V, C, T, H, W)``, batches ``(N, C, T, H, W)`` or ``(N, V, C, T, H, W)``. CutMix
    uses one rectangle for all frames. MMPretrain's preprocessor for videos does not support mixing of labels.

    Args:
        mean, std: mean and standard deviation of each channel, for pixels from 0 to 255; None for no normalisation.
        batch_augments: config of Mixup and CutMix; None for none.
        **kwargs: other options of :class:`mmpretrain.models.ClsDataPreprocessor`, such as ``to_rgb`` and
            ``num_classes``.
    """

    def __init__(
        self,
        mean: list[float] | None = None,
        std: list[float] | None = None,
        batch_augments: dict | None = None,
        **kwargs,
    ) -> None:
        super().__init__(mean, std, batch_augments=batch_augments, **kwargs)
        if mean is not None:
            self.mean, self.std = self.mean[..., None], self.std[..., None]  # C, 1, 1, 1
        if self.batch_augments is not None:
            self.batch_augments = partial(_mix_clips, self.batch_augments)

    def forward(self, data: dict, training: bool = False) -> dict:
        """Preprocess a batch of clips of one size for the model."""
        clips = data['inputs'] if isinstance(data['inputs'], Tensor) else torch.stack([*data['inputs']])
        prepared = super().forward(dict(data, inputs=clips.flatten(0, -5)), training)
        return prepared | dict(inputs=prepared['inputs'].unflatten(0, clips.shape[:-4]))


def _mix_clips(augment: Callable, clips: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
    """Mix clips ``(N, C, T, H, W)`` as images with C T channels."""
    mixed, scores = augment(clips.flatten(1, 2), scores)
    return mixed.unflatten(1, clips.shape[1:3]), scores


@MODELS.register_module()
class VideoClassifier(ImageClassifier):
    """MMPretrain's image classifier for videos: predictions are the average probabilities of all views of a video.

    The backbone must support ``(N, C, T, H, W)``; any neck and head work. Several views are computed as one batch
    of N V clips.

    Args:
        *args, **kwargs: options of :class:`mmpretrain.models.ImageClassifier`: ``backbone``, ``neck``, ``head``,
            ``pretrained``, ``train_cfg``, ``data_preprocessor`` and ``init_cfg``.
    """

    def predict(self, inputs: Tensor, data_samples: list[DataSample] | None = None, **kwargs) -> list[DataSample]:
        """Predict scores and labels of ``(N, C, T, H, W)``, or ``(N, V, C, T, H, W)``."""
        if inputs.ndim == 5:
            return super().predict(inputs, data_samples, **kwargs)
        predictions = super().predict(inputs.flatten(0, 1), None, **kwargs)  # N V
        views = torch.stack([each.pred_score for each in predictions]).unflatten(0, inputs.shape[:2])  # N, V, classes
        samples = data_samples or [DataSample() for _ in views]
        for sample, score in zip(samples, views.mean(1)):
            sample.set_pred_score(score).set_pred_label(score.argmax(0, keepdim=True))
        return samples
