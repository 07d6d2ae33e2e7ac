"""Data sets as Hugging Face's library writes them, with images and masks that a seed makes."""

import cv2
import numpy as np
from datasets import ClassLabel, Dataset, DatasetDict, Features, Image, List

CLASSES, MASK_CLASSES = ['cat', 'dog', 'eel'], ['sea', 'cat', 'dog']
SPLITS = dict(train=range(12), validation=range(100, 108))


def make_image(seed):
    return np.random.default_rng(seed).integers(0, 256, (24, 30, 3), np.uint8)


def make_mask(seed):
    return np.random.default_rng(seed).integers(0, len(MASK_CLASSES), (24, 30), np.uint8)


def encode(image):
    return dict(bytes=cv2.imencode('.png', image)[1].tobytes(), path=None)


def make_rows(seeds):
    """Images and masks, a label that is the seed's rest, and a column whose features name the classes of masks."""
    names = List(ClassLabel(names=MASK_CLASSES))
    return Dataset.from_dict(
        dict(
            image=[encode(make_image(seed)) for seed in seeds],
            mask=[encode(make_mask(seed)) for seed in seeds],
            label=[seed % len(CLASSES) for seed in seeds],
            shown=[[0, 1] for _ in seeds],
        ),
        features=Features(image=Image(), mask=Image(), label=ClassLabel(names=CLASSES), shown=names),
    )


def make_splits():
    return DatasetDict({split: make_rows(seeds) for split, seeds in SPLITS.items()})
