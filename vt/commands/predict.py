"""Command of ``tools/predict.py``: predictions on a user's files."""

import argparse
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import cv2
import torch
from mmengine.dataset import pseudo_collate
from mmengine.structures import BaseDataElement
from rich.console import Console
from rich.progress import track
from torch import Tensor

from vt.analysis.tables import print_table
from vt.apis.inferencers import VideoInferencer, inferencer_of
from vt.apis.model_zoo import resolve_config
from vt.engine.errors import describe, in_one_line
from vt.engine.launch import is_segmentation, require_device
from vt.engine.speed_settings import SpeedSettings
from vt.errors import UserError
from vt.files import read_json, write_atomically
from vt.image_bounds import EXTENSIONS as IMAGES
from vt.inference.image_files import check_paths, encode_mask, find_files, mask_paths
from vt.inference.inputs import MAX_THREADS, default_workers, in_batches, read_ahead
from vt.untrusted_text import composed, printable
from vt.video.dataset import EXTENSIONS as VIDEOS

from .outputs import check_output
from .result_file import ResultFile

NAMED = 20  # files listed in the final error


def predict(args: argparse.Namespace) -> None:
    """Predict, print a table, and write results, figures and masks on request.

    Raises:
        UserError: wrong arguments, no files; or, at the end, files that could not be read.
    """
    check_output(args.out, args.config, args.checkpoint)
    if args.out and args.out.suffix not in ('.json', '.csv'):
        raise UserError(f'--out {args.out}: results are written as .json or .csv')
    if args.batch_size < 1 or args.top_k < 1:
        raise UserError(f'--batch-size {args.batch_size} and --top-k {args.top_k} must be at least 1')
    workers = default_workers() if args.workers is None else args.workers
    if not 0 <= workers <= MAX_THREADS:
        raise UserError(f'--workers {workers} must be from 0 to {MAX_THREADS}')
    given = args.device if args.device is not None else 'cuda' if torch.cuda.is_available() else 'cpu'
    device = require_device(given)
    cfg = resolve_config(args.config, args.cfg_options)
    if args.amp:
        cfg.test_cfg = dict(cfg.get('test_cfg') or {}, fp16=True)
    inferencer: Any = inferencer_of(cfg, args.checkpoint, device)
    SpeedSettings(**cfg.get('speed') or {}).set_process(device)
    if not inferencer.classes:
        print('warning: neither the config nor the checkpoint has class names: labels are numbers', file=sys.stderr)
    if args.threshold is not None:
        if not getattr(inferencer, 'has_several', False):
            raise UserError('--threshold is for several labels per image; this model has one label: leave it out')
        inferencer.thresholds = read_thresholds(args.threshold, inferencer.classes)
    is_video = isinstance(inferencer, VideoInferencer)
    files = find_files(args.inputs, VIDEOS if is_video else (*IMAGES, *inferencer.pipeline.suffixes))
    check_output(args.out, *files)
    check_paths(files, files.values(), args.out_dir, '--out-dir')
    figures = [args.out_dir / path for path in files.values()] if args.out_dir else []
    masks = mask_paths(files, args.masks, figures)
    if args.masks and not is_segmentation(cfg):
        raise UserError('--masks needs a segmentor, and the model is none: leave it out')
    skipped: dict[str, Exception] = {}
    rows = []
    with ResultFile(args.out) if args.out else nullcontext() as out:
        for file, prediction in track_predictions(inferencer, list(files), args.batch_size, workers, skipped):
            image = mask = None
            try:
                if args.out_dir:
                    image = inferencer.draw(inferencer.pixels(file), prediction)
                if args.masks:
                    labels, palette = prediction.pred_sem_seg.data[0].numpy(), inferencer.model.dataset_meta['palette']
                    mask = encode_mask(labels, palette, file)
            except Exception as error:  # such as a side too long for Matplotlib
                skip(file, error, skipped)
                continue
            if mask:
                write_atomically((args.masks / masks[file]).with_suffix(mask[0]), mask[1])
            few = {} if is_segmentation(cfg) else dict(top_k=args.top_k)
            result: dict[str, Any] = dict(file=file, **inferencer.describe(prediction, **few))
            score = 'share' if is_segmentation(cfg) else 'score'
            shown = result['predictions'] if few else result['predictions'][: args.top_k]
            best = [f'{entry["name"]} {100 * entry[score]:.1f} %' for entry in shown if entry.get('predicted', True)]
            rows.append({'file': file, score: ', '.join(best) or 'no label'})
            if out:
                out.add(result)
            if image is not None:
                _, content = cv2.imencode('.png', image[..., ::-1])
                write_atomically(args.out_dir / files[file], content.tobytes())
    if rows:
        print_table(rows, title=Path(args.config).stem)
        for written in filter(None, (args.out, args.out_dir, args.masks)):
            print(f'written to {written}')
    report_skipped(skipped, len(files))


def read_thresholds(given: str, classes: Sequence[str] | None) -> float | Tensor:
    """Return a number from 0 to 1, or the threshold with the highest F1 of each class in a ``report.json``.

    Raises:
        UserError: neither a number nor a report, or a report of other classes.
    """
    with suppress(ValueError):
        if 0 <= (number := float(given)) <= 1:
            return number
    if not given.endswith('.json'):
        raise UserError(
            f'--threshold {given} must be a number from 0 to 1, or the report.json of tools/test.py --report'
        )
    hint = 'tools/test.py --report FOLDER of a model of several labels writes it'
    rows = read_json(Path(given), hint, keys=['per_class'])['per_class']
    found = {composed(row['name']): row['best_threshold'] for row in rows if 'best_threshold' in row}
    names = [composed(str(name)) for name in classes or found]
    if missing := [name for name in names if name not in found]:
        raise UserError(f'--threshold {given} has no best_threshold of the class {missing[0]!r}; {hint}')
    return torch.tensor([0.5 if found[name] is None else found[name] for name in names])


def track_predictions(
    inferencer: Any, files: list[str], batch_size: int, workers: int, skipped: dict[str, Exception]
) -> Iterator[tuple[str, BaseDataElement]]:
    """Yield each file with its prediction; add those that cannot be read or predicted to ``skipped``."""
    console = Console(stderr=True)
    read: deque[str] = deque()

    def read_sample(file: str) -> dict | UserError:
        try:
            return inferencer.pipeline(file)
        except UserError as error:
            return error

    def samples() -> Iterator[dict]:
        tracked = track(files, 'Predicting', console=console, disable=not sys.stderr.isatty())
        for file, sample in zip(tracked, read_ahead(read_sample, files, workers, batch_size)):
            if isinstance(sample, UserError):
                skip(file, sample, skipped)
            else:
                read.append(file)
                yield sample

    for batch in in_batches(samples(), batch_size):
        yield from predict_batch(inferencer, [read.popleft() for _ in batch], batch, skipped)


def predict_batch(
    inferencer: Any, files: list[str], samples: list[dict], skipped: dict[str, Exception]
) -> Iterator[tuple[str, BaseDataElement]]:
    """Yield predictions as :func:`track_predictions`; if a batch fails, as of images of several sizes, file by file."""
    try:
        predictions = [prediction.cpu() for prediction in inferencer.forward(pseudo_collate(samples))]
    except Exception as error:  # of any type: other files may be predicted
        if len(files) == 1:
            skip(files[0], error, skipped)
        else:
            for file, sample in zip(files, samples):
                yield from predict_batch(inferencer, [file], [sample], skipped)
    else:
        yield from zip(files, predictions)


def skip(file: str, error: Exception, skipped: dict[str, Exception]) -> None:
    """Add a file to ``skipped`` and print the reason."""
    skipped[file] = error
    reason = describe(error) or in_one_line(error)
    print(printable(f'skipped: {reason if file in reason else f"{file}: {reason}"}'), file=sys.stderr)


def report_skipped(skipped: dict[str, Exception], number: int) -> None:
    """Raise a UserError that lists skipped files; if all failed with unexpected errors, raise the first one."""
    unforeseen = [error for error in skipped.values() if not isinstance(error, UserError)]
    if unforeseen and len(skipped) == number:
        raise unforeseen[0]
    if skipped:
        named = ', '.join([*skipped][:NAMED]) + (' ...' if len(skipped) > NAMED else '')
        raise UserError(f'{len(skipped)} of {number} files could not be read and were skipped: {named}')
