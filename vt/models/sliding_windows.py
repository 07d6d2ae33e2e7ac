"""Segmentation of large images by sliding windows, in memory that grows with an image's width alone.

Legend: K classes, H and W rows and columns of the image, h and w those of a window.
"""

from collections.abc import Sequence
from typing import Any

import torch
from mmengine.structures import PixelData
from mmseg.models import EncoderDecoder
from mmseg.structures import SegDataSample
from torch import Tensor
from torch.nn.functional import interpolate

from vt.errors import UserError
from vt.image_bounds import check_scores
from vt.registry import MODELS


@MODELS.register_module()
class LargeImageSegmentor(EncoderDecoder):
    """MMSegmentation's ``EncoderDecoder``, whose tests and predictions hold the scores of one row of windows.

    Labels are those of ``EncoderDecoder`` with ``mode='slide'``, which holds the scores of the whole image: the class
    scores of windows are averaged where they overlap. Predictions have labels and no ``seg_logits``. Those of an image
    that the pipeline resizes are enlarged or reduced to its own size, each pixel as the nearest one.

    Args:
        test_cfg: ``dict(mode='slide', crop_size=(h, w), stride=(rows, columns))``: the size of a window, as that of the
            training's crops, and the distance between windows, which overlap where it is smaller.
        **options: of ``EncoderDecoder``; training is the same.

    Raises:
        UserError: ``test_cfg`` is another one; an image is flipped; its width times the number of classes is too large.
    """

    def __init__(self, *, test_cfg: dict[str, Any], **options: Any) -> None:
        super().__init__(test_cfg=test_cfg, **options)
        pairs = [test_cfg.get(key) for key in ('crop_size', 'stride')]
        good = all(isinstance(pair, (list, tuple)) and [*map(type, pair)] == [int, int] for pair in pairs)
        if test_cfg.get('mode') != 'slide' or not good or any(not 0 < s <= side for side, s in zip(*pairs)):
            reason = "must have mode='slide', crop_size=(h, w) and a stride of at most h and w"
            raise UserError(f'LargeImageSegmentor: test_cfg={dict(test_cfg)} {reason}')
        self.window, self.stride = pairs

    def predict(self, inputs: Tensor, data_samples: Sequence[SegDataSample] | None = None) -> list[SegDataSample]:
        """Enter ``pred_sem_seg``, labels ``(1, H, W)`` on the CPU, into the samples of images ``(N, C, H, W)``."""
        samples: Any = [SegDataSample() for _ in inputs] if data_samples is None else data_samples
        for image, sample in zip(inputs, samples):
            if sample.get('flip'):
                raise UserError('LargeImageSegmentor does not support flipped images (test-time augmentation)')
            left, right, top, bottom = sample.get('img_padding_size') or sample.get('padding_size') or [0] * 4
            labels = self.label(image, sample.get('img_path') or 'the image')
            labels = labels[None, top : len(labels) - bottom, left : labels.shape[1] - right]
            size = sample.get('ori_shape', labels.shape[1:])
            if tuple(size) != labels.shape[1:]:
                labels = interpolate(labels[None].float(), size, mode='nearest-exact')[0].int()
            sample.set_data(dict(pred_sem_seg=PixelData(data=labels)))
        return samples

    def label(self, image: Tensor, name: str = 'the image') -> Tensor:
        """Labels, int32, ``(H, W)``, on the CPU, of a normalised image ``(C, H, W)``; ``name`` is for errors."""
        rows, columns = (_starts(*each) for each in zip(image.shape[1:], self.window, self.stride))
        height, width = (min(each) for each in zip(image.shape[1:], self.window))
        held = height, image.shape[2]
        check_scores(held, self.out_channels, f'a row of windows of {name}', 'use a smaller crop_size')
        labels = torch.empty(image.shape[1:], dtype=torch.int32)  # H, W
        # Scores and numbers of windows of the rows from the upper edge of a window to its lower one.
        precise = torch.promote_types(image.dtype, torch.float32)
        scores = image.new_zeros(self.out_channels, *held, dtype=precise)  # K, h, W
        counts = image.new_zeros(held)
        for row, end in zip(rows, [*rows[1:], image.shape[1]]):
            for left in columns:
                window = image[None, :, row : row + height, left : left + width]
                scores[:, :, left : left + width] += self.encode_decode(window, [dict(img_shape=window.shape[2:])])[0]
                counts[:, left : left + width] += 1
            done = end - row  # rows that no further window covers
            means = scores[:, :done] / counts[:done]
            labels[row:end] = means.argmax(dim=0) if len(means) > 1 else means[0].sigmoid() > self.decode_head.threshold
            scores, counts = (each.roll(-done, dims=-2) for each in (scores, counts))
            scores[:, height - done :] = counts[height - done :] = 0
        return labels


def _starts(size: int, side: int, stride: int) -> list[int]:
    """Where windows begin along a side of an image; the last one ends where the image ends."""
    number = max(size - side + stride - 1, 0) // stride + 1
    return [max(min(index * stride, size - side), 0) for index in range(number)]
