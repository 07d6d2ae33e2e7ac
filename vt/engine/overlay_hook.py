"""Pictures of predicted segments."""

from collections.abc import Sequence
from pathlib import Path

import cv2
from mmengine.hooks import Hook
from mmengine.runner import Runner
from mmengine.visualization import Visualizer
from mmseg.structures import SegDataSample

from vt.registry import HOOKS


@HOOKS.register_module()
class OverlayHook(Hook):
    """Write each test image with its labels (left, where there are any) and its prediction (right) laid over it.

    MMSegmentation's hook reads every image from its file again; this one draws on the image that the model was given,
    so that data sets made in memory have pictures too.

    Args:
        enable: draw; ``tools/test.py --show-dir`` turns it on.
        out_dir: directory of the pictures; each has its image's name, as PNG.
        interval: draw one in so many batches.
        with_labels: write the names of the classes on their segments.
    """

    def __init__(
        self, enable: bool = False, out_dir: str = 'pictures', interval: int = 1, with_labels: bool = True
    ) -> None:
        self.enable = enable
        self.out_dir = Path(out_dir)
        self.interval = interval
        self.with_labels = with_labels

    def after_test_iter(
        self, runner: Runner, batch_idx: int, data_batch: dict, outputs: Sequence[SegDataSample]
    ) -> None:
        if not self.enable or not self.every_n_inner_iters(batch_idx, self.interval):
            return
        visualizer = Visualizer.get_current_instance()
        for image, sample in zip(data_batch['inputs'], outputs):
            height, width = sample.pred_sem_seg.shape
            pixels = cv2.resize(image.permute(1, 2, 0).numpy(), (width, height))[..., ::-1]  # read as BGR
            visualizer.add_datasample(
                'prediction',
                pixels,
                sample,
                out_file=str(self.out_dir / f'{Path(sample.img_path).stem}.png'),
                with_labels=self.with_labels,
            )
