"""Inferencers of images and videos, built on MMPretrain's.

They take the name of a model, a config or a network, a checkpoint that must fit, and images of any size. For models of
data sets in memory, such as the embedded digits, images are resized to the size of the data set.
"""

from os import PathLike
from typing import TYPE_CHECKING, Any

import mmcv
import numpy as np
import torch
from mmengine.model import BaseModel
from mmengine.structures import BaseDataElement
from mmpretrain.apis import ImageClassificationInferencer
from mmpretrain.models import MultiLabelClsHead
from mmpretrain.visualization import UniversalVisualizer

from vt.engine.config.parts import is_segmentation
from vt.engine.hooks.visualization import as_strip
from vt.image_bounds import drawn_size
from vt.inference.inputs import ImageSource, SampleInferencer, Samples

from .model_zoo import Source, resolve_model

if TYPE_CHECKING:
    from .segmentation import SegmentationInferencer

READABLE = 256  # pixels of the shorter side


class ClassificationInferencer(SampleInferencer, ImageClassificationInferencer):
    """MMPretrain's inferencer of images: ``inferencer(image)`` returns the class, its name and all scores.

    For several labels per image, ``inferencer.thresholds`` is the score from which a label is predicted.

    Args:
        model: name of a model, path of a config, config, or network of :func:`vt.apis.get_model`.
        pretrained: path or address of the checkpoint; True for published weights, None for random ones.
        device: device of the model; None for a GPU if there is one, or the device of a given network.
        classes: class names; by default those of the checkpoint or of the data set.

    Raises:
        UserError: an unknown model, or a checkpoint that is missing or does not fit.
    """

    def __init__(
        self,
        model: Source | BaseModel,
        pretrained: str | PathLike | bool | None = True,
        device: str | torch.device | None = None,
        classes: list[str] | None = None,
    ) -> None:
        self.model = resolve_model(model, pretrained, device)  # MMPretrain's own __init__ would build it once more
        self.config = self.model.cfg
        self.pipeline = Samples(self.config)
        self.visualizer = None
        self.classes = classes or self.model.dataset_meta.get('classes')
        self.has_several = isinstance(getattr(self.model, 'head', None), MultiLabelClsHead)
        self.thresholds: float | torch.Tensor | None = None  # one, or one per class; None for the head's own

    def forward(self, inputs: Any, **options: Any) -> list[BaseDataElement]:
        """Return the predictions of a batch; of several labels those with a score of at least ``thresholds``."""
        predictions = super().forward(inputs, **options)
        if self.has_several and self.thresholds is not None:
            for each in predictions:
                limits = torch.as_tensor(self.thresholds, device=each.pred_score.device)
                each.set_pred_label((each.pred_score >= limits).nonzero()[:, 0])
        return predictions

    def postprocess(self, preds: Any, visualization: Any, return_datasamples: bool = False) -> Any:
        """Return MMPretrain's results; with several labels ``pred_label``, ``pred_score``, ``pred_class`` are lists."""
        results = super().postprocess(preds, visualization, return_datasamples)
        for result, each in zip(results, preds) if self.has_several and not return_datasamples else ():
            labels = each.pred_label.tolist()
            result |= dict(pred_label=labels, pred_score=each.pred_score[labels].tolist())
            result |= dict(pred_class=[self.classes[label] for label in labels]) if self.classes else {}
        return results

    def describe(self, prediction: BaseDataElement, top_k: int | None = None) -> dict[str, Any]:
        """Return ``predictions``: classes with their scores, highest first; with several labels ``predicted``.

        ``top_k`` is the number of classes, besides predicted ones; None for all.
        """
        scores, labels = prediction.pred_score.sort(descending=True)
        chosen = {*prediction.pred_label.tolist()} if self.has_several else {}
        entries = []
        for rank, (label, score) in enumerate(zip(labels.tolist(), scores.tolist())):
            if top_k is None or rank < top_k or label in chosen:
                name = self.classes[label] if self.classes else str(label)
                entry = dict(label=label, name=name, score=score)
                entries.append(entry | dict(predicted=label in chosen) if self.has_several else entry)
        return dict(predictions=entries)

    def draw(self, pixels: np.ndarray, prediction: BaseDataElement) -> np.ndarray:
        """Return an RGB image with its class and score; small images are enlarged, large ones reduced."""
        visualizer = UniversalVisualizer()
        shown: Any = mmcv.imresize(pixels, drawn_size(pixels.shape[:2])[::-1])
        resize = READABLE if min(shown.shape[:2]) < READABLE else None
        # Matplotlib renders text between two dollar signs as a formula.
        names = self.classes and [name.replace('$', r'\$') for name in self.classes]
        visualizer.visualize_cls(shown, prediction, classes=names, draw_gt=False, resize=resize)
        return visualizer.get_image()


class VideoInferencer(ClassificationInferencer):
    """:class:`ClassificationInferencer` of video files, averaged over the clips and crops of the test pipeline."""

    def pixels(self, source: ImageSource) -> np.ndarray:
        """Return the frames of a video's first clip, as the model receives them, side by side, RGB."""
        strip = as_strip(self.pipeline(source)['inputs'])
        strip = strip.flip(0) if self.pipeline.prepared.is_bgr else strip
        return np.ascontiguousarray(strip.permute(1, 2, 0).numpy())


def inferencer_of(
    model: Source | BaseModel,
    pretrained: str | PathLike | bool | None = True,
    device: str | torch.device | None = None,
) -> 'ClassificationInferencer | SegmentationInferencer':
    """Return the inferencer for a model, with arguments of :class:`ClassificationInferencer`."""
    model: Any = resolve_model(model, pretrained, device)
    if is_segmentation(model.cfg):
        from .segmentation import SegmentationInferencer  # it imports MMSegmentation

        return SegmentationInferencer(model)
    backbone = model.cfg.model.get('backbone')
    is_of_videos = isinstance(backbone, dict) and backbone.get('num_frames')
    return (VideoInferencer if is_of_videos else ClassificationInferencer)(model)
