"""Predictions on files of a user's own, as ``tools/predict.py`` asks."""

import argparse
import glob
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mmcv
import numpy as np
import torch
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.structures import BaseDataElement
from rich.color import Color
from rich.console import Console
from rich.progress import track
from rich.style import Style
from rich.text import Text

from vt.analysis.tables import print_table, write_csv
from vt.apis.inferencer_choice import inferencer_of
from vt.apis.inferencers import VideoInferencer, in_batches
from vt.apis.model_zoo import find_config, find_weights, is_folder, model_config
from vt.engine.config_files import enter_options, read_config, require_file
from vt.engine.launch import is_segmentation
from vt.errors import UserError
from vt.video.dataset import EXTENSIONS as VIDEOS

from .outputs import check_output, write_json

PICTURES = ('.jpg', '.jpeg', '.png', '.bmp', '.ppm', '.tif', '.tiff', '.webp')
TERMINAL = 64  # columns of a picture in the terminal


def predict(args: argparse.Namespace) -> None:
    """Predict, print a table, and write results and pictures on request.

    Raises:
        UserError: at the end, when all else is done: a file could not be read. Before: there are no files.
    """
    check_output(args.out, args.config, args.checkpoint)
    if args.out and args.out.suffix not in ('.json', '.csv'):
        raise UserError(f'--out {args.out}: results are written as .json or .csv')
    if args.batch_size < 1 or args.top_k < 1:
        raise UserError(f'--batch-size {args.batch_size} and --top-k {args.top_k} must be at least 1')
    cfg = read_model(args.config, args.cfg_options)
    checkpoint = find_weights(args.config, args.checkpoint)
    require_file(checkpoint, 'checkpoint')
    device = args.device or ('cuda' if torch.cuda.is_available() else 'cpu')
    inferencer = inferencer_of(cfg, checkpoint, device)
    is_video = isinstance(inferencer, VideoInferencer)
    files = find_files(args.inputs, VIDEOS if is_video else PICTURES)
    check_places(files, args.out_dir, args.out)
    unread: list[str] = []
    results = []
    for file, prediction in track_predictions(inferencer, list(files), args.batch_size, unread):
        results.append(dict(file=file, **inferencer.describe(prediction)))
        if not is_segmentation(cfg):
            del results[-1]['predictions'][args.top_k :]
        if args.out_dir or args.show:
            image = inferencer.draw(inferencer.pixels(file), prediction)
            if args.out_dir:
                mmcv.imwrite(image[..., ::-1], str(args.out_dir / files[file]))
            if args.show:
                print(file)
                show_in_terminal(image)
    report(results, Path(args.config).stem, args)
    if unread:
        raise UserError(f'{len(unread)} of {len(files)} files could not be read and were skipped: {", ".join(unread)}')


def read_model(name_or_config: str, options: dict[str, Any] | None) -> Config:
    """The config that is named: by its path, a model's name, or the folder of a saved model."""
    if not is_folder(name_or_config):
        path = name_or_config if name_or_config.endswith('.py') else str(find_config(name_or_config))
        return read_config(path, options)
    cfg = model_config(name_or_config)
    enter_options(cfg, options or {})
    return cfg


def find_files(inputs: list[str], extensions: tuple[str, ...]) -> dict[str, Path]:
    """Files that are named, that lie in a folder or below it, or that match a pattern; each with its picture's place.

    The place of one in a folder is as it lies there, of any other its name.

    Raises:
        UserError: a folder or a pattern gives no file of these extensions.
    """
    files: dict[str, Path] = {}
    for given in inputs:
        if Path(given).is_dir():
            found = {str(path): path.relative_to(given) for path in sorted(Path(given).rglob('*')) if path.is_file()}
            found = {path: place for path, place in found.items() if place.suffix.lower() in extensions}
        elif not Path(given).exists() and glob.has_magic(given):
            found = {path: Path(Path(path).name) for path in sorted(glob.glob(given, recursive=True))}
            found = {path: place for path, place in found.items() if place.suffix.lower() in extensions}
        else:
            found = {given: Path(Path(given).name)}
        if not found:
            raise UserError(f'{given} holds no file that ends in {", ".join(extensions)}')
        files |= found
    times = Counter(files.values())
    return {
        path: _as_png(place if times[place] == 1 else Path(*Path(path).absolute().parts[1:]))
        for path, place in files.items()
    }


def _as_png(place: Path) -> Path:
    return place if place.suffix == '.png' else place.with_name(f'{place.name}.png')


def check_places(files: dict[str, Path], out_dir: Path | None, out: Path | None) -> None:
    """Refuse to write over a file that is read, and a place for pictures that is no folder."""
    check_output(out, *files)
    if out_dir is not None and out_dir.exists() and not out_dir.is_dir():
        raise UserError(f'--out-dir {out_dir} is a file where a folder is needed')
    read = {Path(file).resolve() for file in files}
    for file, place in files.items() if out_dir else ():
        if (out_dir / place).resolve() in read:
            raise UserError(f'{file} would be written over: give another folder for the pictures')


def track_predictions(
    inferencer: Any, files: list[str], batch_size: int, unread: list[str]
) -> Iterator[tuple[str, BaseDataElement]]:
    """Each file that can be read with its prediction; the others go to ``unread``, and standard error says why."""
    console = Console(stderr=True)
    read: list[str] = []

    def samples() -> Iterator[dict]:
        for file in track(files, 'Predicting', console=console, disable=not sys.stderr.isatty()):
            try:
                sample = inferencer.pipeline(file)
            except UserError as error:
                unread.append(file)
                print(f'skipped: {error}', file=sys.stderr)
                continue
            read.append(file)
            yield sample

    done = 0
    for batch in in_batches(samples(), batch_size):
        for prediction in inferencer.forward(pseudo_collate(batch)):
            yield read[done], prediction.cpu()
            done += 1


def report(results: list[dict[str, Any]], name: str, args: argparse.Namespace) -> None:
    """Print a line a file, and write all of it if asked to."""
    if not results:
        return
    rows = []
    for result in results:
        score = 'score' if 'score' in result['predictions'][0] else 'share'
        texts = [f'{entry["name"]} {100 * entry[score]:.1f} %' for entry in result['predictions'][: args.top_k]]
        rows.append({'file': result['file'], score: ', '.join(texts)})
    print_table(rows, title=name)
    if args.out and args.out.suffix == '.json':
        write_json(results, args.out)
    elif args.out:
        write_csv(
            [dict(file=result['file'], **entry) for result in results for entry in result['predictions']], args.out
        )
    for written in (args.out, args.out_dir):
        if written:
            print(f'written to {written}')


def show_in_terminal(image: np.ndarray) -> None:
    """Print a picture, RGB: a character for two pixels, one above the other."""
    width = min(TERMINAL, image.shape[1])
    height = max(2, round(image.shape[0] * width / image.shape[1]) // 2 * 2)
    pixels = mmcv.imresize(image, (width, height), interpolation='area').tolist()
    console = Console(width=TERMINAL)
    for above, below in zip(pixels[::2], pixels[1::2]):
        colours = [(Color.from_rgb(*one), Color.from_rgb(*other)) for one, other in zip(above, below)]
        console.print(Text.assemble(*(('▀', Style(color=one, bgcolor=other)) for one, other in colours)))
