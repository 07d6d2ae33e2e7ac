"""A step of a pipeline that makes the loss NaN where an image's name says so."""

import numpy as np
from mmcv.transforms import BaseTransform
from mmengine.registry import TRANSFORMS


@TRANSFORMS.register_module()
class Spoil(BaseTransform):
    def transform(self, results):
        if 'spoilt' in results['img_path']:
            results['img'] = np.full_like(results['img'], np.nan, dtype=np.float32)
        return results
