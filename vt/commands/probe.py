"""Command of ``tools/probe.py``: linear probe and nearest neighbours on a frozen model's features."""

import argparse
from pathlib import Path

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from vt.analysis.tables import print_table
from vt.apis.model_zoo import get_model, resolve_config
from vt.engine.run_record import describe_origin
from vt.errors import UserError
from vt.inference.features import HEAD, blocks_of, build_plain_training_set, extract_features
from vt.inference.test_set import build_test_set

from .outputs import write_json

SPLITS = dict(train=build_plain_training_set, test=build_test_set)
TEMPERATURE = 0.07  # of the neighbours' votes, as in Wu et al., "Unsupervised Feature Learning", 2018, and DINO
MOST_ITERATIONS = 1000

Split = tuple[np.ndarray, np.ndarray]  # features (S, C) and labels (S,)


def probe(args: argparse.Namespace) -> None:
    """Train on features of the training images, score those of the test images; write a table and ``probe.json``."""
    if args.neighbours < 1 or args.c <= 0 or args.batch_size < 1:
        raise UserError('--neighbours and --batch-size must be at least 1, --c more than 0')
    cfg = resolve_config(args.config, args.cfg_options)
    model = get_model(cfg, args.checkpoint)
    model.to('cuda' if torch.cuda.is_available() else 'cpu')
    layers = [HEAD] if args.layers is None else args.layers or [*blocks_of(model), HEAD]
    out = args.out or Path('work_dirs', Path(args.config).stem, 'probe')
    features: dict[str, dict[str, Split]] = {}
    for split, build in SPLITS.items():
        found, labels = extract_features(model, build(model.cfg), layers, args.batch_size, f'Features of {split}')
        features[split] = {layer: (values, labels) for layer, values in found.items()}
    rows = []
    for layer in layers:
        train, test = features['train'][layer], features['test'][layer]
        linear, parameters = score_linear(train, test, args.c)
        neighbours = score_neighbours(train, test, args.neighbours)
        rows.append(dict(layer=layer, knn=neighbours, linear=linear, parameters=parameters))
    images = {split: len(features[split][layers[0]][1]) for split in SPLITS}
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
    print_table(shown, title=f'{Path(args.config).stem}, frozen', notes=notes)
    print(f'written to {out / "probe.json"}')


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
