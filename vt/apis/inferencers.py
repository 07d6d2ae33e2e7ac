"""Predictions on images and videos: MMPretrain's inferencer for models of VT.

It takes a model's name, config or network and a checkpoint that must fit, and images of any size. Where a model learned
from images in memory, such as the embedded digits, an image takes their size.
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

from vt.engine.image_hooks import as_strip, reads_bgr
from vt.engine.launch import is_segmentation
from vt.image_bounds import drawn_size
from vt.inference.inputs import ImageSource, SampleInferencer, Videos

from .model_zoo import Source, resolve_model

if TYPE_CHECKING:
    from .segmentation import SegmentationInferencer

READABLE = 256  # pixels of the shorter side


class ClassificationInferencer(SampleInferencer, ImageClassificationInferencer):
    """MMPretrain's inferencer of images: ``inferencer(image)`` gives the class, its name and all scores.

    Where images have several labels, ``inferencer.thresholds`` says from which score on a label is predicted.

    Args:
        model: a model's name, the path of a config, a config, or a network made by :func:`vt.apis.get_model`.
        pretrained: path or address of its checkpoint; True for published weights, None for arbitrary ones.
        device: where to compute; None for the CPU, or where the network is.
        classes: names, by default those of the checkpoint or of the data set.

    Raises:
        UserError: no such model; a checkpoint of another one, or none.
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
        self.pipeline = self.make_samples(self.config)
        self.visualizer = None
        self.classes = classes or self.model.dataset_meta.get('classes')
        self.has_several = isinstance(getattr(self.model, 'head', None), MultiLabelClsHead)
        self.thresholds: float | torch.Tensor | None = None  # of scores, one or one a class; None for the head's own

    def forward(self, inputs: dict, **options: Any) -> list[BaseDataElement]:
        """Predictions of a batch; of several labels an image those with a score of at least ``thresholds``."""
        predictions = super().forward(inputs, **options)
        if self.has_several and self.thresholds is not None:
            for each in predictions:
                limits = torch.as_tensor(self.thresholds, device=each.pred_score.device)
                each.set_pred_label((each.pred_score >= limits).nonzero()[:, 0])
        return predictions

    def postprocess(self, preds: list, visualization: list, return_datasamples: bool = False) -> list:
        """MMPretrain's results; of several labels ``pred_label``, ``pred_score`` and ``pred_class`` are lists."""
        results = super().postprocess(preds, visualization, return_datasamples)
        for result, each in zip(results, preds) if self.has_several and not return_datasamples else ():
            labels = each.pred_label.tolist()
            result |= dict(pred_label=labels, pred_score=each.pred_score[labels].tolist())
            result |= dict(pred_class=[self.classes[label] for label in labels]) if self.classes else {}
        return results

    def describe(self, prediction: BaseDataElement) -> dict[str, Any]:
        """All classes with their scores as ``predictions``, highest first; of several, whether ``predicted``."""
        scores, labels = prediction.pred_score.sort(descending=True)
        found = zip(labels.tolist(), scores.tolist())
        names = self.classes or [*map(str, range(len(labels)))]
        entries = [dict(label=label, name=names[label], score=score) for label, score in found]
        if self.has_several:
            chosen = {*prediction.pred_label.tolist()}
            entries = [entry | dict(predicted=entry['label'] in chosen) for entry in entries]
        return dict(predictions=entries)

    def draw(self, pixels: np.ndarray, prediction: BaseDataElement) -> np.ndarray:
        """An image, RGB, with its class and score written on it; a small one is enlarged, a large one made smaller."""
        visualizer = UniversalVisualizer()
        pixels = mmcv.imresize(pixels, drawn_size(pixels.shape[:2])[::-1])
        resize = READABLE if min(pixels.shape[:2]) < READABLE else None
        # Matplotlib sets what stands between two dollar signs as a formula.
        names = self.classes and [name.replace('$', r'\$') for name in self.classes]
        visualizer.visualize_cls(pixels, prediction, classes=names, draw_gt=False, resize=resize)
        return visualizer.get_image()


class VideoInferencer(ClassificationInferencer):
    """:class:`ClassificationInferencer` of video files; of each the test pipeline's clips and crops, averaged."""

    make_samples = Videos

    def pixels(self, video: ImageSource) -> np.ndarray:
        """The frames of a video's first clip as the model is given them, side by side, RGB."""
        strip = as_strip(self.pipeline(video)['inputs'])
        strip = strip.flip(0) if reads_bgr(self.config) else strip
        return np.ascontiguousarray(strip.permute(1, 2, 0).numpy())

    def visualize(self, ori_inputs: list, preds: list, show: bool = False, **options: Any) -> None:
        """Raise a NotImplementedError where drawings are asked for: ``draw(pixels(video), prediction)`` makes them."""
        if show or options.get('show_dir'):
            raise NotImplementedError('of videos use draw(pixels(video), prediction)')


def inferencer_of(
    model: Source | BaseModel,
    pretrained: str | PathLike | bool | None = True,
    device: str | torch.device | None = None,
) -> 'ClassificationInferencer | SegmentationInferencer':
    """The inferencer that a model needs; arguments as of :class:`ClassificationInferencer`."""
    model = resolve_model(model, pretrained, device)
    if is_segmentation(model.cfg):
        from .segmentation import SegmentationInferencer  # it imports MMSegmentation

        return SegmentationInferencer(model)
    num_frames = (model.cfg.model.get('backbone') or {}).get('num_frames')
    return (VideoInferencer if num_frames else ClassificationInferencer)(model)
