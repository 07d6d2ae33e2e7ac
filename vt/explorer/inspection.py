"""Prediction of a model for one image, and the attention of its tokens.

Letters: h heads, L tokens, H and W size of a map, Q queries, K keys.
"""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from torch import Tensor, nn

from vt.analysis.figures import shrink
from vt.apis import ClassificationInferencer, SegmentationInferencer
from vt.datasets.bands import as_rgb, read_bands
from vt.engine.config.parts import preparation_of
from vt.engine.hooks.visualization import visible
from vt.image_bounds import check_image_size
from vt.inference.inputs import model_input, read_image
from vt.inference.test_set import build_test_set, name_class, spread_over_classes
from vt.models import AttentionTokenizer, Record, record_attention

THUMBNAIL = 160  # pixels of the longer side


@dataclass
class ShownImage:
    """An image of the page.

    Attributes:
        caption: class or file name.
        source: path of a file, or a BGR image ``(height, width, 3)`` uint8.
        thumbnail: small RGB image, ``(height, width, 3)`` uint8.
    """

    caption: str
    source: str | np.ndarray
    thumbnail: np.ndarray


@dataclass
class Module:
    """Attention of the parts of one module for one image; None for parts that it does not have.

    Attributes:
        maps: attention of each token over the pixels, ``(h, L, H, W)``.
        relation: attention between tokens, ``(h, Q, K)``.
        reads: attention of each pixel over the tokens, ``(h, L, H, W)``.
    """

    maps: Tensor | None = None
    relation: Tensor | None = None
    reads: Tensor | None = None

    @property
    def heads(self) -> range:
        """Heads that can be shown, from 1, of the part that has the most; 0 is the mean over heads."""
        parts = [each for each in (self.maps, self.relation, self.reads) if each is not None]
        number = max(map(len, parts))
        return range(number + 1 if number > 1 else 1)


@dataclass
class Inspection:
    """Prediction and attention of a model for one image.

    Attributes:
        image: input of the network without normalisation, RGB in 0 to 1, ``(3, height, width)``.
        predictions: class names with their score, or share of the pixels, highest first.
        overlay: image with the predicted segments overlaid, RGB, ``(height, width, 3)`` uint8; None for classifiers.
        modules: modules by name, in the order of the network.
    """

    image: Tensor
    predictions: list[dict]
    overlay: np.ndarray | None
    modules: dict[str, Module]


@torch.no_grad()
def inspect_image(
    inferencer: ClassificationInferencer | SegmentationInferencer, source: str | np.ndarray
) -> Inspection:
    """Predict for an image, a path or BGR ``(height, width, 3)`` uint8, and record the attention of the model."""
    model, sample = inferencer.model, inferencer.pipeline(source)
    image, inputs = model_input(model, sample, inferencer.pipeline.prepared.is_bgr)
    with record_attention(model) as records:
        (prediction,) = inferencer.forward(pseudo_collate([sample]))
        if inferencer.predicts_maps:  # the prediction may use sliding windows
            model(inputs, mode='tensor')
    overlay = None
    if inferencer.predicts_maps:
        pixels = (255 * image).byte().permute(1, 2, 0)[: sample['inputs'].shape[-2], : sample['inputs'].shape[-1]]
        overlay = inferencer.draw(np.ascontiguousarray(pixels.numpy()), prediction.cpu())
    predictions = inferencer.describe(prediction)['predictions']
    return Inspection(image, predictions, overlay, find_modules(model, records))


def find_modules(model: nn.Module, records: dict[str, Record]) -> dict[str, Module]:
    """Group the records of a forward pass of one image into modules: one per tokenizer, and one per other part.

    The module of a tokenizer includes the relation that takes its tokens and the projector, or fuser, that writes them
    back. Parts with window attention are left out.
    """
    modules, taken = {}, set()
    for owner, names in tokenizers_by_owner(model).items():
        for name in names:
            writers = [name.replace('tokenizer', writer) for writer in ('projector', 'fuser')]
            parts = dict(maps=[name], relation=[f'{owner}.relation'.removeprefix('.')], reads=writers)
            found = {kind: each for kind, places in parts.items() for each in places[::-1] if each in records}
            modules[name] = Module(**{kind: records[each].attention[0].cpu() for kind, each in found.items()})
            taken |= {*found.values()}
    order = [name for name, _ in model.named_modules() if name in records]
    for name in order:
        if name not in taken and len(records[name].attention) == 1:
            modules[name] = _as_module(records[name], model.get_submodule(name))
    return dict(sorted(modules.items(), key=lambda item: order.index(item[0])))


def tokenizers_by_owner(model: nn.Module) -> dict[str, list[str]]:
    """Names of the tokenizers with attention, by the name of the module whose ``relation`` takes their tokens."""
    parts = dict(model.named_modules())
    owners: dict[str, list[str]] = {}
    for name in [name for name, part in parts.items() if isinstance(part, AttentionTokenizer)]:
        owner = name.rpartition('.')[0]
        while owner and not hasattr(parts[owner], 'relation'):
            owner = owner.rpartition('.')[0]
        owners.setdefault(owner, []).append(name)
    return owners


def _as_module(record: Record, part: nn.Module) -> Module:
    """Make a module of a part without a tokenizer; attention over tokens of a grid also gives maps."""
    attention, size = record.attention[0].cpu(), record.size
    if attention.ndim == 4:
        return Module(**{'maps' if record.output.ndim == 3 else 'reads': attention})
    if size is None:
        return Module(relation=attention)
    grid, out = (getattr(part, side)(size) if hasattr(part, side) else size for side in ('key_size', 'out_size'))
    num_class_tokens = record.output.shape[1] - math.prod(out)
    if num_class_tokens < 0 or attention.shape[-1] != num_class_tokens + math.prod(grid):
        return Module(relation=attention)
    return Module(maps=attention[..., num_class_tokens:].unflatten(-1, grid), relation=attention)


def pick_from_test_set(cfg: Config, number: int) -> list[ShownImage]:
    """Select ``number`` images of a config's test set, spread over its classes; without one there is a UserError."""
    dataset = build_test_set(cfg)
    samples = [dataset[index] for index in spread_over_classes(dataset, number)]
    images = []
    for index, sample in enumerate(samples, 1):
        image, annotation = sample['inputs'], sample['data_samples']
        pixels = visible(image, preparation_of(cfg).is_bgr)
        path = annotation.get('img_path')
        known = 'gt_label' in annotation and dataset.metainfo.get('classes')
        caption = name_class(annotation.gt_label, known) if known else f'test image {index}'
        is_file = path is not None and Path(path).is_file()
        images.append(
            ShownImage(caption, path if is_file else np.ascontiguousarray(pixels[..., ::-1]), shrink(pixels, THUMBNAIL))
        )
    return images


def open_image(path: str) -> ShownImage:
    """Open an image of the user, or raise a UserError or OSError; its size is checked before it is decoded."""
    is_usual = check_image_size(path)
    pixels = read_image(path)[..., ::-1] if is_usual else as_rgb(read_bands(Path(path).read_bytes(), path))
    return ShownImage(Path(path).name, path, shrink(pixels, THUMBNAIL))
