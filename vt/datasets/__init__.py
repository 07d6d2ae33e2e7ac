"""Data sets that need no download (handwritten digits, and scenes and videos of them), and readers for your own data.

The readers load images with masks, images with several labels, Fashion-MNIST, and data sets of Hugging Face's
library ``datasets``.
"""

from typing import TYPE_CHECKING

from vt._libraries import import_on_demand

__all__ = [
    'CocoMasks',
    'DigitScenes',
    'Digits',
    'FashionMNIST',
    'HeldOut',
    'HuggingFaceDataset',
    'HuggingFaceSegDataset',
    'ImageTable',
    'ImagesAndMasks',
    'LoadBands',
    'LoadCocoMasks',
    'LoadColourMasks',
    'MovingDigits',
    'MultiLabelImages',
]

if TYPE_CHECKING:
    from .bands import LoadBands
    from .coco_annotations import LoadCocoMasks
    from .coco_masks import CocoMasks
    from .colour_masks import LoadColourMasks
    from .digit_scenes import DigitScenes
    from .digits import Digits
    from .fashion_mnist import FashionMNIST
    from .held_out import HeldOut
    from .hugging_face import HuggingFaceDataset
    from .hugging_face_masks import HuggingFaceSegDataset
    from .image_tables import ImageTable
    from .images_and_masks import ImagesAndMasks
    from .moving_digits import MovingDigits
    from .multi_label import MultiLabelImages
else:
    __getattr__, __dir__ = import_on_demand(__name__, __file__)
