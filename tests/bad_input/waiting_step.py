"""Parts of a pipeline and of a model that stop at an image."""

import time
from pathlib import Path

from mmcv.transforms import BaseTransform
from mmengine.registry import MODELS, TRANSFORMS
from mmpretrain.models import ClsDataPreprocessor


@TRANSFORMS.register_module()
class Wait(BaseTransform):
    """Make the file ``waits`` and go no further at the image of a name."""

    def __init__(self, at):
        self.at = at

    def transform(self, results):
        if results.get('img_path', '').endswith(self.at):
            Path('waits').touch()
            time.sleep(1000)
        return results


@MODELS.register_module()
class Failing(ClsDataPreprocessor):
    """Fail at every image."""

    def forward(self, data, training=False):
        raise RuntimeError('this preprocessor is of no use')
