"""Features of a frozen classifier: one vector per image, from the input of the head or from any layer.

Letters: S samples, N batch, L tokens, C channels of a layer.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.model import BaseModel
from mmengine.registry import DATASETS
from rich.progress import track
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from vt.engine.preparation import preparation_of
from vt.engine.prepare import leaves
from vt.errors import UserError

from .test_set import in_scope

HEAD = 'before the head'  # name of the head's input
BLOCKS = re.compile(r'backbone\.(.*\.)?(blocks|layers?|layer\d+|stages\.\d+)\.\d+')
CLASS_TOKENS = ('class_tokens', 'cls_token', 'class_token')  # names of the attribute
REPEATING = ('RepeatDataset', 'ClassBalancedDataset')


def blocks_of(model: nn.Module) -> list[str]:
    """Return the names of a backbone's blocks, in order; a stage without a list of blocks counts as one."""
    found: list[str] = []
    for name, _ in model.named_modules():
        if BLOCKS.fullmatch(name) and not any(name.startswith(f'{outer}.') for outer in found):
            found.append(name)
    return found


def build_plain_training_set(cfg: Config) -> Dataset:
    """Build the training set of a config without repetition and augmentation, with the test pipeline."""
    dataset, steps = deepcopy((cfg.get('train_dataloader') or {}).get('dataset')), preparation_of(cfg).steps
    if not (dataset and steps):
        raise UserError('training images need train_dataloader and test_dataloader, and the config lacks one of them')
    while str(dataset.get('type')).split('.')[-1] in REPEATING:
        dataset = dataset['dataset']
    for leaf in leaves(dataset):
        leaf['pipeline'] = [*steps]
    with in_scope(cfg):
        return DATASETS.build(dataset)


@torch.no_grad()
def extract_features(
    model: BaseModel, dataset: Dataset, layers: Sequence[str], batch_size: int, title: str = ''
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Compute the features of each layer.

    The features of a map are its mean over positions; of tokens their class token or, without one, their mean. Several
    outputs are concatenated, several views of a video are averaged.

    Args:
        model: a classifier in evaluation mode, as of :func:`vt.apis.get_model`.
        dataset: data set of samples for the model.
        layers: names of parts, or ``HEAD``.
        batch_size: images per batch.
        title: title of the progress bar.

    Returns:
        Features ``(S, C)`` of each layer, float32, and labels ``(S,)``.

    Raises:
        UserError: the model is not a classifier, images do not have one label each, or a layer has no features.
    """
    if not hasattr(model, 'extract_feat') or not hasattr(model, 'head'):
        raise UserError(f'features need a classifier, and {type(model).__name__} is none')
    loader = DataLoader(dataset, batch_size, collate_fn=pseudo_collate)
    found: dict[str, list[np.ndarray]] = {layer: [] for layer in layers}
    labels = []
    with _recorded(model, [layer for layer in layers if layer != HEAD]) as outputs:
        for batch in track(loader, title or 'Features', disable=not title):
            data = model.data_preprocessor(batch, False)
            if any('gt_label' not in sample or sample.gt_label.numel() != 1 for sample in data['data_samples']):
                raise UserError('features need images with one label each')
            labels += [int(sample.gt_label) for sample in data['data_samples']]
            inputs = data['inputs']
            views = inputs.shape[1] if inputs.ndim == 6 else 1
            outputs[HEAD] = model.extract_feat(inputs.flatten(0, 1) if views > 1 else inputs)
            for layer, rows in found.items():
                vectors = _vectors(outputs[layer], layer, _has_class_token(model, layer))  # N views, C
                rows.append(vectors.unflatten(0, (-1, views)).mean(1).float().cpu().numpy())
    return {layer: np.concatenate(rows) for layer, rows in found.items()}, np.array(labels)


@contextmanager
def _recorded(model: nn.Module, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Provide a dict of the outputs of parts of a model, by name, updated in each forward pass."""
    parts, outputs = dict(model.named_modules()), {}
    if missing := [name for name in names if name not in parts]:
        raise UserError(f'the model has no layer {missing[0]!r}; its blocks are {", ".join(blocks_of(model))}')

    def keep(name: str) -> Any:
        return lambda part, inputs, output: outputs.update({name: output})

    handles = [parts[name].register_forward_hook(keep(name)) for name in names]
    try:
        yield outputs
    finally:
        for handle in handles:
            handle.remove()


def _vectors(output: Any, layer: str, has_class_token: bool) -> Tensor:
    """Return a layer's output as ``(N, C)``."""
    if isinstance(output, (tuple, list)) and output:
        # The last of several stages; a stage with several kinds of tokens returns a list.
        last = output[-1] if layer == HEAD else output[0]
        parts = last if isinstance(last, (tuple, list)) else [last]
        return torch.cat([_vectors(part, layer, has_class_token) for part in parts], dim=1)
    if not isinstance(output, Tensor) or output.ndim < 2:
        raise UserError(f'layer {layer!r} returns a {type(output).__name__}, not features: give the name of a block')
    if output.ndim == 3:  # N, L, C
        return output[:, 0] if has_class_token else output.mean(1)
    return output.flatten(2).mean(2) if output.ndim > 3 else output


def _has_class_token(model: nn.Module, layer: str) -> bool:
    """Return whether a module that contains the layer has a class token."""
    parts = layer.split('.')
    owners = [model.get_submodule('.'.join(parts[:end])) for end in range(len(parts))] if layer != HEAD else []
    return any(isinstance(getattr(owner, name, None), Tensor) for owner in owners for name in CLASS_TOKENS)
