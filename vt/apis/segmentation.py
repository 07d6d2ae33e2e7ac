"""Inferencer of segmentors, built on MMSegmentation's."""

from os import PathLike
from typing import Any

import mmcv
import numpy as np
import torch
from mmengine.dataset import pseudo_collate
from mmengine.model import BaseModel
from mmengine.structures import BaseDataElement, PixelData
from mmseg.apis import MMSegInferencer
from mmseg.structures import SegDataSample
from mmseg.visualization import SegLocalVisualizer
from torch.nn.functional import interpolate

from vt.image_bounds import check_scores, drawn_size
from vt.inference.inputs import SampleInferencer, Samples
from vt.models.sliding_windows import LargeImageSegmentor

from .model_zoo import Source, resolve_model

OPACITY = 0.6  # of segments


class SegmentationInferencer(SampleInferencer, MMSegInferencer):
    """MMSegmentation's inferencer: ``inferencer(image)['predictions']`` is the label map, of the size of the image.

    Args:
        model: name of a model, path of a config, config, or network of :func:`vt.apis.get_model`.
        pretrained: path or address of the checkpoint; True for published weights, None for random ones.
        device: device of the model; None for a GPU if there is one, or the device of a given network.
        classes: class names; by default those of the checkpoint or of the data set.
        show_progress: whether to show a progress bar.
    """

    predicts_maps = True
    visualizer: SegLocalVisualizer

    def __init__(
        self,
        model: Source | BaseModel,
        pretrained: str | PathLike | bool | None = True,
        device: str | torch.device | None = None,
        classes: list[str] | None = None,
        show_progress: bool = False,
    ) -> None:
        self.model = resolve_model(model, pretrained, device)  # MMSegmentation's own __init__ would build it once more
        self.cfg, self.pipeline, self.collate_fn = self.model.cfg, Samples(self.model.cfg), pseudo_collate
        self.visualizer, self.show_progress = SegLocalVisualizer(alpha=OPACITY), show_progress
        self.num_visualized_imgs = self.num_pred_imgs = 0
        meta = self.model.dataset_meta
        meta['classes'] = classes or meta.get('classes') or [*map(str, range(self.model.decode_head.num_classes))]
        if len(meta.get('palette', ())) < len(meta['classes']):
            meta['palette'] = distinct_colours(len(meta['classes']))
        self.classes = meta['classes']

    def forward(self, inputs: Any, **options: Any) -> list[BaseDataElement]:
        """Return the predictions of a batch; raise a UserError if scores of an image would take many gigabytes."""
        for sample in [] if isinstance(self.model, LargeImageSegmentor) else inputs['data_samples']:
            check_scores(sample.ori_shape, len(self.classes), sample.get('img_path') or 'the image')
        return super().forward(inputs, **options)

    def describe(self, prediction: BaseDataElement) -> dict[str, Any]:
        """Return height and width, and ``predictions``: the share of each class in the image, largest first."""
        labels = prediction.pred_sem_seg.data
        counts = torch.bincount(labels.flatten().int(), minlength=len(self.classes)) / labels.numel()
        shares, order = counts.sort(descending=True, stable=True)
        found = [
            dict(label=label, name=self.classes[label], share=share)
            for label, share in zip(order.tolist(), shares.tolist())
            if share > 0
        ]
        return dict(height=labels.shape[-2], width=labels.shape[-1], predictions=found)

    def draw(self, pixels: np.ndarray, prediction: BaseDataElement) -> np.ndarray:
        """Return an RGB image with its segments and their names drawn over it; large images are reduced."""
        visualizer, meta = self.visualizer, self.model.dataset_meta
        visualizer.set_dataset_meta(meta['classes'], meta['palette'])
        labels = prediction.pred_sem_seg.data  # 1, H, W
        size = drawn_size(labels.shape[1:])
        labels = interpolate(labels[None].float(), size, mode='nearest-exact')[0].long()
        shown = SegDataSample(pred_sem_seg=PixelData(data=labels))
        visualizer.add_datasample('prediction', mmcv.imresize(pixels, size[::-1]), shown, draw_gt=False)
        return visualizer.get_image()


def distinct_colours(number: int) -> list[list[int]]:
    """Return this number of RGB colours, always the same: hues at golden angles."""
    hues = [round(index * 137.508 / 2) % 180 for index in range(number)]
    hsv = np.array([[[hue, 200, 230] for hue in hues]], np.uint8)
    return mmcv.hsv2bgr(hsv)[0][:, ::-1].tolist()
