"""Command of ``vt predict``: predictions on a user's files."""

import argparse
import csv
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import cv2
import torch
from mmengine.dataset import pseudo_collate
from mmengine.structures import BaseDataElement
from rich.console import Console
from rich.progress import track
from torch import Tensor

from vt.analysis.tables import print_table, printable_cells
from vt.apis.inferencers import inferencer_of
from vt.apis.model_zoo import build, name_of, resolve_config
from vt.engine.config.steps import Run, RunOptions
from vt.engine.reporting import describe, in_one_line
from vt.engine.run.launch import default_device, require_device
from vt.engine.run.speed_settings import SpeedSettings
from vt.errors import UserError
from vt.files import NUMBER, read_json, write_atomically
from vt.hints import as_typed
from vt.inference.image_files import encode_mask
from vt.inference.inputs import MAX_THREADS, default_workers, in_batches, read_ahead
from vt.paths import check_output, check_paths, find_files, mask_paths
from vt.untrusted_text import composed, printable

NAMED = 20  # files listed in the final error


def predict(args: argparse.Namespace) -> None:
    """Predict, print a table, and write results, figures and masks on request; at the end name files not read."""
    check_arguments(args)
    inferencer = build_inferencer(args)
    files = find_files(args.inputs, inferencer.pipeline.suffixes)
    check_paths(files, files.values(), args.out_dir, '--out-dir')
    masks = mask_paths(files, args.masks, [args.out_dir / path for path in files.values()] if args.out_dir else [])
    check_output(args.out, *files)
    workers = default_workers() if args.workers is None else args.workers
    palette = inferencer.model.dataset_meta['palette'] if args.masks else ()
    skipped: dict[str, Exception] = {}
    rows = []
    with ResultFile(args.out) if args.out else nullcontext() as out:
        for file, found in predict_each(inferencer, list(files), args.batch_size, workers):
            try:
                if isinstance(found, Exception):
                    raise found
                image = inferencer.draw(inferencer.pixels(file), found) if args.out_dir else None
                mask = encode_mask(found.pred_sem_seg.data[0].numpy(), palette, file) if args.masks else None
            except Exception as error:  # of any type, such as of a side too long for Matplotlib
                skipped[file] = error
                reason = describe(error) or in_one_line(error)
                print(printable(f'skipped: {reason if file in reason else f"{file}: {reason}"}'), file=sys.stderr)
                continue
            if mask:
                write_atomically((args.masks / masks[file]).with_suffix(mask[0]), mask[1])
            few = {} if inferencer.predicts_maps else dict(top_k=args.top_k)
            result: dict[str, Any] = dict(file=file, **inferencer.describe(found, **few))
            rows.append(describe_row(result, args.top_k, inferencer.predicts_maps))
            if out:
                out.add(result)
            if image is not None:
                write_atomically(args.out_dir / files[file], cv2.imencode('.png', image[..., ::-1])[1].tobytes())
    if rows:
        print_table(rows, title=name_of(args.config))
        for written in filter(None, (args.out, args.out_dir, args.masks)):
            print(f'written to {written}')
    raise_skipped(skipped, len(files))


def check_arguments(args: argparse.Namespace) -> None:
    """Raise a UserError for invalid arguments, before the model is read."""
    if args.out and args.out.suffix not in ('.json', '.csv'):
        raise UserError(f'--out {args.out}: the name must end in .json or .csv')
    if args.batch_size < 1 or args.top_k < 1:
        raise UserError(f'--batch-size {args.batch_size} and --top-k {args.top_k} must be at least 1')
    if args.workers is not None and not 0 <= args.workers <= MAX_THREADS:
        raise UserError(f'--workers {args.workers} must be from 0 to {MAX_THREADS}')
    check_output(args.out, args.config, args.checkpoint)  # later with the files


def build_inferencer(args: argparse.Namespace) -> Any:
    """Return the inferencer of the model; raise a UserError for arguments that the model does not support."""
    cfg = resolve_config(args.config, args.cfg_options)
    if not args.inputs:
        whole = Path(args.config).is_dir()  # of a saved model, whose weights are in its folder, too
        words = f'{args.config} {args.config} {args.checkpoint}' if whole else f'{args.config} {args.checkpoint} INPUT'
        raise UserError(f'CONFIG, CHECKPOINT and INPUT are required: {as_typed(f"vt predict {words}")}')
    if args.amp:
        cfg.test_cfg = dict(cfg.get('test_cfg') or {}, fp16=True)
    run, device = Run(cfg, RunOptions(checkpoint=args.checkpoint)), require_device(args.device or default_device())
    inferencer: Any = inferencer_of(build(run, device))
    if args.masks and not inferencer.predicts_maps:
        raise UserError('--masks requires a segmentation model: remove --masks')
    SpeedSettings(**cfg.get('speed') or {}).set_process(device)
    if not inferencer.classes:
        print('warning: neither the config nor the checkpoint has class names: labels are numbers', file=sys.stderr)
    if args.threshold is not None:
        if not getattr(inferencer, 'has_several', False):
            raise UserError('--threshold requires a multi-label model, and this one has one label: remove --threshold')
        inferencer.thresholds = read_thresholds(args.threshold, inferencer.classes)
    return inferencer


def describe_row(result: dict[str, Any], top_k: int, of_maps: bool) -> dict[str, str]:
    """Return a described prediction as a row of the table."""
    score = 'share' if of_maps else 'score'
    shown = result['predictions'][:top_k] if of_maps else result['predictions']
    best = [f'{entry["name"]} {100 * entry[score]:.1f} %' for entry in shown if entry.get('predicted', True)]
    return {'file': result['file'], score: ', '.join(best) or 'no label'}


def raise_skipped(skipped: dict[str, Exception], number: int) -> None:
    """Raise a UserError with the names of skipped files, or the first unexpected error if there was no prediction."""
    unforeseen = [error for error in skipped.values() if not isinstance(error, UserError)]
    if unforeseen and len(skipped) == number:
        raise unforeseen[0]
    if skipped:
        named = ', '.join([*skipped][:NAMED]) + (' ...' if len(skipped) > NAMED else '')
        raise UserError(f'{len(skipped)} of {number} files could not be read and were skipped: {named}')


def read_thresholds(given: str, classes: Sequence[str] | None) -> float | Tensor:
    """Return a number from 0 to 1, or the threshold with the highest F1 of each class in a ``report.json``.

    Anything else, also a report of other classes, is a UserError.
    """
    with suppress(ValueError):
        if 0 <= (number := float(given)) <= 1:
            return number
    hint = f'{as_typed("vt test --report FOLDER")} writes it for a multi-label model'
    if not given.endswith('.json'):
        raise UserError(f'--threshold {given} must be a number from 0 to 1, or a report.json; {hint}')
    shape = dict(per_class=[dict(name=str, best_threshold=NUMBER)])
    rows = read_json(Path(given), hint, keys=['per_class'], shape=shape)['per_class']
    found = {composed(row['name']): row['best_threshold'] for row in rows if {'name', 'best_threshold'} <= row.keys()}
    names = [composed(str(name)) for name in classes or found]
    if missing := [name for name in names if name not in found]:
        raise UserError(f'--threshold {given} has no best_threshold for class {missing[0]!r}; {hint}')
    return torch.tensor([0.5 if found[name] is None else found[name] for name in names])


def predict_each(
    inferencer: Any, files: list[str], batch_size: int, workers: int
) -> Iterator[tuple[str, BaseDataElement | Exception]]:
    """Yield each file with its prediction, or with the error if it cannot be read or predicted."""

    def read(file: str) -> dict | UserError:
        try:
            return inferencer.pipeline(file)
        except UserError as error:
            return error

    tracked = track(files, 'Predicting', console=Console(stderr=True), disable=not sys.stderr.isatty())
    for batch in in_batches(zip(tracked, read_ahead(read, files, workers, batch_size)), batch_size):
        yield from predict_batch(inferencer, batch)


def predict_batch(
    inferencer: Any, batch: Sequence[tuple[str, Any]]
) -> Iterator[tuple[str, BaseDataElement | Exception]]:
    """Yield the predictions of files and samples; if a batch fails, as of images of several sizes, file by file."""
    files, samples = zip(*batch)
    try:
        if isinstance(samples[0], Exception):
            raise samples[0]
        predictions = [prediction.cpu() for prediction in inferencer.forward(pseudo_collate(samples))]
    except Exception as error:  # of any type: other files may be predicted
        if len(batch) == 1:
            yield files[0], error
        else:
            for pair in batch:
                yield from predict_batch(inferencer, [pair])
    else:
        yield from zip(files, predictions)


class ResultFile:
    """Context manager that writes each result to ``<out>.part`` at once, and renames this file to ``out`` at the end.

    ``out`` ends in ``.json`` or ``.csv``. If the process is interrupted or killed, the file keeps the results so far: a
    complete CSV, or a JSON list without its last bracket. Without results ``out`` is not written.
    """

    def __init__(self, out: Path) -> None:
        self.out = Path(os.path.realpath(out))  # symbolic links are kept
        self.part = self.out.with_name(f'{self.out.name}.part')
        self.file: TextIOWrapper | None = None  # results of a killed process stay until there are new ones

    def __enter__(self) -> 'ResultFile':
        self.out.parent.mkdir(parents=True, exist_ok=True)
        return self

    def add(self, result: dict[str, Any]) -> None:
        """Write a result, a dict with ``file`` and ``predictions``."""
        is_first = self.file is None
        if self.file is None:
            self.file = self.part.open('w', encoding='utf-8', newline='')
        if self.out.suffix == '.json':
            self.file.write(('[\n' if is_first else ',\n') + json.dumps(result, indent=2))
        else:
            rows = [dict(file=result['file'], **entry) for entry in result['predictions']]
            writer = csv.DictWriter(self.file, list(rows[0]))
            if is_first:
                writer.writeheader()
            writer.writerows(map(printable_cells, rows))
        self.file.flush()

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        if self.file is None:
            return
        with self.file:
            if kind is not None:
                print(printable(f'the results so far are in {self.part}'), file=sys.stderr)
                return
            self.file.write('\n]\n' if self.out.suffix == '.json' else '')
            self.file.flush()
            os.fsync(self.file.fileno())
            self.part.replace(self.out)
