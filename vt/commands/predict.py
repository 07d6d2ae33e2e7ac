"""Predictions on files of a user's own, as ``tools/predict.py`` asks."""

import argparse
import glob
import os
import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import cv2
import mmcv
import numpy as np
import torch
from mmengine.dataset import pseudo_collate
from mmengine.structures import BaseDataElement
from rich.color import Color
from rich.console import Console
from rich.progress import track
from rich.style import Style
from rich.text import Text
from torch import Tensor

from vt.analysis.tables import print_table
from vt.apis.inferencers import VideoInferencer, inferencer_of
from vt.apis.model_zoo import require_weights, resolve_config
from vt.checkpoints.files import read_json, write_atomically
from vt.engine.errors import describe, in_one_line
from vt.engine.launch import is_segmentation, require_device
from vt.engine.output_paths import distinct_paths
from vt.errors import UserError
from vt.inference.inputs import in_batches
from vt.untrusted_text import printable
from vt.video.dataset import EXTENSIONS as VIDEOS

from .mask_files import encode_mask, mask_paths
from .outputs import check_output
from .result_file import ResultFile

IMAGES = ('.jpg', '.jpeg', '.png', '.bmp', '.ppm', '.tif', '.tiff', '.webp')
TERMINAL = 64  # columns of an image in the terminal
NAMED = 20  # files in the line at the end


def predict(args: argparse.Namespace) -> None:
    """Predict, print a table, and write results and figures on request.

    Raises:
        UserError: at the end, when all else is done: a file could not be read. Before: there are no files.
    """
    check_output(args.out, args.config, args.checkpoint)
    if args.out and args.out.suffix not in ('.json', '.csv'):
        raise UserError(f'--out {args.out}: results are written as .json or .csv')
    if args.batch_size < 1 or args.top_k < 1:
        raise UserError(f'--batch-size {args.batch_size} and --top-k {args.top_k} must be at least 1')
    given = args.device if args.device is not None else 'cuda' if torch.cuda.is_available() else 'cpu'
    device = require_device(given)
    cfg = resolve_config(args.config, args.cfg_options, quietly=False)
    checkpoint = require_weights(args.config, args.checkpoint)
    inferencer: Any = inferencer_of(cfg, checkpoint, device)
    if args.threshold is not None:
        if not getattr(inferencer, 'has_several', False):
            raise UserError('--threshold is for several labels an image; this model gives one class: leave it out')
        inferencer.thresholds = read_thresholds(args.threshold, inferencer.classes)
    is_video = isinstance(inferencer, VideoInferencer)
    files = find_files(args.inputs, VIDEOS if is_video else (*IMAGES, *inferencer.pipeline.suffixes))
    check_output(args.out, *files)
    check_paths(files, files, args.out_dir, '--out-dir')
    masks = mask_paths(files)
    if args.masks and not is_segmentation(cfg):
        raise UserError('--masks: the model is no segmentor, which predicts masks')
    for suffix in ('.png', '.tif'):
        check_paths(files, {file: path.with_suffix(suffix) for file, path in masks.items()}, args.masks, '--masks')
    skipped: dict[str, Exception] = {}
    rows = []
    with ResultFile(args.out) if args.out else nullcontext() as out:
        for file, prediction in track_predictions(inferencer, list(files), args.batch_size, skipped):
            image = draw(inferencer, file, prediction, skipped) if args.out_dir or args.show else None
            if file in skipped:
                continue
            if args.masks:
                labels, palette = prediction.pred_sem_seg.data[0].numpy(), inferencer.model.dataset_meta['palette']
                suffix, content = encode_mask(labels, palette, file)
                write_atomically((args.masks / masks[file]).with_suffix(suffix), content)
            result: dict[str, Any] = dict(file=file, **inferencer.describe(prediction))
            score = 'score' if 'score' in result['predictions'][0] else 'share'
            ranked = enumerate(result['predictions'])
            kept = [entry for rank, entry in ranked if rank < args.top_k or entry.get('predicted')]
            best = [f'{entry["name"]} {100 * entry[score]:.1f} %' for entry in kept if entry.get('predicted', True)]
            rows.append({'file': file, score: ', '.join(best) or 'no label'})
            if not is_segmentation(cfg):
                result['predictions'] = kept
            if out:
                out.add(result)
            if image is not None and args.out_dir:
                _, content = cv2.imencode('.png', image[..., ::-1])
                write_atomically(args.out_dir / files[file], content.tobytes())
            if image is not None and args.show:
                print(printable(file))
                show_in_terminal(image)
    if rows:
        print_table(rows, title=Path(args.config).stem)
        for written in filter(None, (args.out, args.out_dir, args.masks)):
            print(f'written to {written}')
    report_skipped(skipped, len(files))


def read_thresholds(given: str, classes: Sequence[str] | None) -> float | Tensor:
    """A number from 0 to 1, or of the ``report.json`` of a test each class's threshold of the highest F1.

    Raises:
        UserError: it is neither, or a report of other classes.
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
    found = {row['name']: row['best_threshold'] for row in rows if 'best_threshold' in row}
    names = [*map(str, classes or found)]
    if missing := [name for name in names if name not in found]:
        raise UserError(f'--threshold {given} has no best_threshold of the class {missing[0]!r}; {hint}')
    return torch.tensor([0.5 if found[name] is None else found[name] for name in names])


def find_files(inputs: list[str], extensions: tuple[str, ...]) -> dict[str, Path]:
    """Files that are named, that lie in a folder or below it, or that match a pattern; each with its figure's path.

    That of one in a folder is its path below the folder, of any other its name; of equal ones the whole path. Each
    file comes once, whichever way it is given.

    Raises:
        UserError: a folder or a pattern gives no file of these extensions.
    """
    files: dict[str, tuple[str, Path]] = {}  # by their whole paths
    for given in inputs:
        if os.path.isdir(given):
            found = {str(path): path.relative_to(given) for path in sorted(Path(given).rglob('*')) if path.is_file()}
        elif not os.path.exists(given) and glob.has_magic(given):
            found = {path: Path(Path(path).name) for path in sorted(glob.glob(given, recursive=True))}
        else:
            files.setdefault(os.path.abspath(given), (given, Path(Path(given).name)))
            continue
        found = {path: own for path, own in found.items() if own.suffix.lower() in extensions}
        if not found:
            raise UserError(f'{given} holds no file that ends in {", ".join(extensions)}')
        for path, own in found.items():
            files.setdefault(os.path.abspath(path), (path, own))
    times = Counter(own for _, own in files.values())
    wished = {path: own if times[own] == 1 else Path(whole) for whole, (path, own) in files.items()}
    return distinct_paths(wished)


def check_paths(files: Iterable[str], written: dict[str, Path], folder: Path | None, option: str) -> None:
    """Refuse a folder of an option that is none, and to write over a file that is read."""
    if folder is None:
        return
    if folder.exists() and not folder.is_dir():
        raise UserError(f'{option} {folder} is a file where a folder is needed')
    read = {Path(file).resolve() for file in files}
    for file, path in written.items():
        if (folder / path).resolve() in read:
            raise UserError(f'{file} would be written over: give another folder than {option} {folder}')


def track_predictions(
    inferencer: Any, files: list[str], batch_size: int, skipped: dict[str, Exception]
) -> Iterator[tuple[str, BaseDataElement]]:
    """Each file with its prediction; those that can't be read or predicted go to ``skipped`` with the reason."""
    console = Console(stderr=True)
    read: deque[str] = deque()

    def samples() -> Iterator[dict]:
        for file in track(files, 'Predicting', console=console, disable=not sys.stderr.isatty()):
            try:
                sample = inferencer.pipeline(file)
            except UserError as error:
                skip(file, error, skipped)
                continue
            read.append(file)
            yield sample

    for batch in in_batches(samples(), batch_size):
        yield from predict_batch(inferencer, [read.popleft() for _ in batch], batch, skipped)


def predict_batch(
    inferencer: Any, files: list[str], samples: list[dict], skipped: dict[str, Exception]
) -> Iterator[tuple[str, BaseDataElement]]:
    """As :func:`track_predictions`; a batch that can't be predicted is predicted file by file."""
    try:
        predictions = [prediction.cpu() for prediction in inferencer.forward(pseudo_collate(samples))]
    except Exception as error:  # of any type: the files that follow may be better
        if len(files) == 1:
            skip(files[0], error, skipped)
        else:
            for file, sample in zip(files, samples):
                yield from predict_batch(inferencer, [file], [sample], skipped)
    else:
        yield from zip(files, predictions)


def draw(inferencer: Any, file: str, prediction: BaseDataElement, skipped: dict[str, Exception]) -> np.ndarray | None:
    """A file with its prediction, RGB; None, and the file in ``skipped``, where it can't be drawn."""
    try:
        return inferencer.draw(inferencer.pixels(file), prediction)
    except Exception as error:  # such as a side too long for Matplotlib
        return skip(file, error, skipped)


def skip(file: str, error: Exception, skipped: dict[str, Exception]) -> None:
    """Note that a file is left out, and say why."""
    skipped[file] = error
    reason = describe(error) or in_one_line(error)
    print(printable(f'skipped: {reason if file in reason else f"{file}: {reason}"}'), file=sys.stderr)


def report_skipped(skipped: dict[str, Exception], number: int) -> None:
    """Raise a UserError that names the files that were skipped; what befell every file is raised as it was."""
    unforeseen = [error for error in skipped.values() if not isinstance(error, UserError)]
    if unforeseen and len(skipped) == number:
        raise unforeseen[0]
    if skipped:
        names, more = list(skipped)[:NAMED], len(skipped) - NAMED
        named = ', '.join(names) + (f', and {more} more, named above' if more > 0 else '')
        raise UserError(f'{len(skipped)} of {number} files could not be read and were skipped: {named}')


def show_in_terminal(image: np.ndarray) -> None:
    """Print an image, RGB: a character for two pixels, one above the other."""
    width = min(TERMINAL, image.shape[1])
    height = max(2, round(image.shape[0] * width / image.shape[1]) // 2 * 2)
    pixels = mmcv.imresize(image, (width, height), interpolation='area').tolist()
    console = Console(width=TERMINAL)
    for above, below in zip(pixels[::2], pixels[1::2]):
        colours = [(Color.from_rgb(*one), Color.from_rgb(*other)) for one, other in zip(above, below)]
        console.print(Text.assemble(*(('▀', Style(color=one, bgcolor=other)) for one, other in colours)))
