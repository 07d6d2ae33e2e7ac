"""Command of ``vt probe``: linear probe and nearest neighbours on a frozen classifier's features.

Features are one vector per image, from the input of the head or from any layer.

Letters: S samples, N batch, L tokens, C channels of a layer.
"""

import argparse
import re
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmengine.dataset import pseudo_collate
from rich.progress import track
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from vt.analysis.tables import print_table
from vt.apis.model_zoo import get_model, name_of, resolve_config
from vt.engine.config.pretrained import TIMM
from vt.engine.run.launch import default_device
from vt.engine.run.record import describe_origin
from vt.errors import UserError
from vt.files import write_json
from vt.inference.test_set import build_plain_training_set, build_test_set

HEAD = 'before the head'  # name of the head's input
BLOCKS = re.compile(r'backbone\.(.*\.)?(blocks|layers?|layer\d+|stages\.\d+)\.\d+')
CLASS_TOKENS = ('class_tokens', 'cls_token', 'class_token')  # names of the attribute
SPLIT_BUILDERS = dict(train=build_plain_training_set, test=build_test_set)
TEMPERATURE = 0.07  # of the neighbours' votes, as in Wu et al., "Unsupervised Feature Learning", 2018, and DINO
MOST_ITERATIONS = 1000

Split = tuple[np.ndarray, np.ndarray]  # features (S, C) and labels (S,)


def probe(args: argparse.Namespace) -> None:
    """Train on features of the training images, score those of the test images; write a table and ``probe.json``."""
    if args.neighbours < 1 or args.c <= 0 or args.batch_size < 1:
        raise UserError('--neighbours and --batch-size must be at least 1, --c more than 0')
    unused = dict(head=dict(num_classes=1)) if args.config.startswith(TIMM) else {}  # a file may have any classes
    model = get_model(
        resolve_config(args.config, args.cfg_options), args.checkpoint, args.device or default_device(), **unused
    )
    layers = [HEAD] if args.layers is None else args.layers or [*blocks_of(model), HEAD]
    out = args.out or Path('work_dirs', name_of(args.config), 'probe')
    features: dict[str, dict[str, Split]] = {}
    for split, build in SPLIT_BUILDERS.items():
        found, labels = extract_features(model, build(model.cfg), layers, args.batch_size, f'Features of {split}')
        features[split] = {layer: (values, labels) for layer, values in found.items()}
    rows = []
    for layer in layers:
        train, test = features['train'][layer], features['test'][layer]
        linear, parameters = score_linear(train, test, args.c)
        neighbours = score_neighbours(train, test, args.neighbours)
        rows.append(dict(layer=layer, knn=neighbours, linear=linear, parameters=parameters))
    images = {split: len(features[split][layers[0]][1]) for split in SPLIT_BUILDERS}
    record = dict(config=args.config, checkpoint=args.checkpoint, images=images, neighbours=args.neighbours, c=args.c)
    origin = describe_origin(next(model.parameters()).device)
    write_json(origin | record | dict(layers=rows), out / 'probe.json')
    shown = [
        {
            'layer': row['layer'],
            'kNN top-1 (%)': f'{row["knn"]:.2f}',
            'linear top-1 (%)': f'{row["linear"]:.2f}',
            'parameters trained': f'{row["parameters"]:,}',
        }
        for row in rows
    ]
    notes = [f'{images["train"]:,} training and {images["test"]:,} test images']
    print_table(shown, title=f'{name_of(args.config)}, frozen', notes=notes)
    print(f'written to {out / "probe.json"}')


def blocks_of(model: nn.Module) -> list[str]:
    """Return the names of a backbone's blocks, in order; a stage without a list of blocks counts as one."""
    found: list[str] = []
    for name, _ in model.named_modules():
        if BLOCKS.fullmatch(name) and not any(name.startswith(f'{outer}.') for outer in found):
            found.append(name)
    return found


@torch.no_grad()
def extract_features(
    model: Any, dataset: Dataset, layers: Sequence[str], batch_size: int, title: str = 'Features'
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Compute the features ``(S, C)`` of each layer, float32, and the labels ``(S,)``, of a data set and a classifier.

    The features of a map are its mean over positions; of tokens their class token or, without one, their mean. Several
    outputs are concatenated, several views of a video are averaged. A layer is the name of a part, or ``HEAD``.

    Raises:
        UserError: the model is not a classifier, images do not have one label each, or a layer has no features.
    """
    if not hasattr(model, 'extract_feat') or not hasattr(model, 'head'):
        raise UserError(f'a probe requires a classifier, and {type(model).__name__} is not one')
    parts, outputs = dict(model.named_modules()), {}
    if missing := [layer for layer in layers if layer != HEAD and layer not in parts]:
        raise UserError(f'the model has no layer {missing[0]!r}; its blocks are {", ".join(blocks_of(model))}')
    found: dict[str, list[np.ndarray]] = {layer: [] for layer in layers}
    labels = []
    with ExitStack() as hooks:
        for layer in layers:
            if layer != HEAD:
                hooks.enter_context(parts[layer].register_forward_hook(partial(_keep, outputs, layer)))
        for batch in track(DataLoader(dataset, batch_size, collate_fn=pseudo_collate), title):
            data = model.data_preprocessor(batch, False)
            if any('gt_label' not in sample or sample.gt_label.numel() != 1 for sample in data['data_samples']):
                raise UserError('a probe requires images with one label each')
            labels += [int(sample.gt_label) for sample in data['data_samples']]
            inputs = data['inputs']
            views = inputs.shape[1] if inputs.ndim == 6 else 1
            outputs[HEAD] = model.extract_feat(inputs.flatten(0, 1) if views > 1 else inputs)
            for layer, rows in found.items():
                vectors = _vectors(outputs[layer], layer, _has_class_token(model, layer))  # N views, C
                rows.append(vectors.unflatten(0, (-1, views)).mean(1).float().cpu().numpy())
    return {layer: np.concatenate(rows) for layer, rows in found.items()}, np.array(labels)


def _keep(outputs: dict[str, Any], layer: str, part: nn.Module, inputs: Any, output: Any) -> None:
    outputs[layer] = output


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


def score_linear(train: Split, test: Split, c: float = 1.0) -> tuple[float, int]:
    """Top-1 in percent of a logistic regression on features of unit variance, and how many parameters it has.

    ``c`` is the inverse of its L2 penalty, as scikit-learn's.
    """
    probe = make_pipeline(StandardScaler(), LogisticRegression(C=c, max_iter=MOST_ITERATIONS)).fit(*train)
    return 100 * float(probe.score(*test)), int(probe[-1].coef_.size + probe[-1].intercept_.size)


def score_neighbours(train: Split, test: Split, k: int = 20) -> float:
    """Top-1 in percent of the k training images of the highest cosine, each with the vote ``exp(cosine / 0.07)``."""
    votes = KNeighborsClassifier(
        min(k, len(train[1])), metric='cosine', weights=lambda distances: np.exp(-distances / TEMPERATURE)
    )
    return 100 * float(votes.fit(*train).score(*test))
