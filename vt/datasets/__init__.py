"""Embedded data sets: real digits, and tasks of relations drawn by their published procedures; nothing to download.

Fashion-MNIST from its files; and those of one's own: images with masks, tar shards, and what Hugging Face's library
``datasets`` reads.
"""

from typing import TYPE_CHECKING

from vt._libraries import import_on_demand

__all__ = [
    'PSVRT',
    'SVRT',
    'DigitScenes',
    'Digits',
    'FashionMNIST',
    'HuggingFaceDataset',
    'HuggingFaceSegDataset',
    'ImagesAndMasks',
    'LoadBands',
    'MovingDigits',
    'MultiLabelImages',
    'Pathfinder',
    'RelationalDigitScenes',
    'ShardedDataset',
    'SortOfCLEVR',
    'TwinDigits',
]

if TYPE_CHECKING:
    from .bands import LoadBands
    from .digit_scenes import DigitScenes, RelationalDigitScenes
    from .digits import Digits
    from .fashion_mnist import FashionMNIST
    from .hugging_face import HuggingFaceDataset
    from .hugging_face_masks import HuggingFaceSegDataset
    from .images_and_masks import ImagesAndMasks
    from .moving_digits import MovingDigits
    from .multi_label import MultiLabelImages
    from .pathfinder import Pathfinder
    from .same_different import PSVRT, SVRT
    from .shards import ShardedDataset
    from .sort_of_clevr import SortOfCLEVR
    from .twin_digits import TwinDigits
else:
    __getattr__, __dir__ = import_on_demand(__name__, __file__)
