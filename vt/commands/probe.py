"""Command of ``tools/probe.py``: linear probe and nearest neighbours on a frozen model's features."""

import argparse
import time
from pathlib import Path

import torch

from vt.analysis.probing import Split, score_linear, score_neighbours
from vt.analysis.tables import print_table
from vt.apis.model_zoo import get_model, resolve_config
from vt.engine.run_record import describe_origin
from vt.errors import UserError
from vt.inference.features import HEAD, blocks_of, build_plain_training_set, extract_features
from vt.inference.test_set import build_test_set

from .outputs import write_json

SPLITS = dict(train=build_plain_training_set, test=build_test_set)


def probe(args: argparse.Namespace) -> None:
    """Train on features of the training images, score those of the test images; write a table and ``probe.json``."""
    if args.neighbours < 1 or args.c <= 0 or args.batch_size < 1:
        raise UserError('--neighbours and --batch-size must be at least 1, --c more than 0')
    cfg = resolve_config(args.config, args.cfg_options)
    model = get_model(cfg, args.checkpoint)
    model.to('cuda' if torch.cuda.is_available() else 'cpu')
    layers = [HEAD] if args.layers is None else args.layers or [*blocks_of(model), HEAD]
    out = args.out or Path('work_dirs', Path(args.config).stem, 'probe')
    begin = time.perf_counter()
    features: dict[str, dict[str, Split]] = {}
    for split, build in SPLITS.items():
        found, labels = extract_features(model, build(model.cfg), layers, args.batch_size, f'Features of {split}')
        features[split] = {layer: (values, labels) for layer, values in found.items()}
    seconds = time.perf_counter() - begin
    rows = []
    for layer in layers:
        train, test = features['train'][layer], features['test'][layer]
        begin = time.perf_counter()
        neighbours = score_neighbours(train, test, args.neighbours)
        middle = time.perf_counter()
        linear, parameters = score_linear(train, test, args.c)
        times = dict(knn_seconds=middle - begin, linear_seconds=time.perf_counter() - middle)
        rows.append(dict(layer=layer, knn=neighbours, linear=linear, parameters=parameters, **times))
    images = {split: len(features[split][layers[0]][1]) for split in SPLITS}
    record = dict(config=args.config, checkpoint=args.checkpoint, images=images, neighbours=args.neighbours, c=args.c)
    record |= dict(feature_seconds=seconds, layers=rows)
    device = next(model.parameters()).device
    write_json(describe_origin(device) | record, out / 'probe.json')
    shown = [
        {
            'layer': row['layer'],
            'kNN top-1 (%)': f'{row["knn"]:.2f}',
            'linear top-1 (%)': f'{row["linear"]:.2f}',
            'parameters trained': f'{row["parameters"]:,}',
            'kNN, linear (s)': f'{row["knn_seconds"]:.1f}, {row["linear_seconds"]:.1f}',
        }
        for row in rows
    ]
    notes = [f'{images["train"]:,} training and {images["test"]:,} test images; features in {seconds:.1f} s']
    print_table(shown, title=f'{Path(args.config).stem}, frozen', notes=notes)
    print(f'written to {out / "probe.json"}')
