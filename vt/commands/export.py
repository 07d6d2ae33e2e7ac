"""Command of ``vt export``: a model for other runtimes, and a script that predicts with it, each if it agrees."""

import argparse
import logging
import os
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.evaluator import Evaluator
from mmengine.registry import DefaultScope
from mmengine.runner import Runner
from mmpretrain.models import MultiLabelClsHead
from rich.progress import track
from torch import Tensor
from torch.nn.functional import interpolate
from torch.utils.data import Dataset, Subset

from vt.analysis.speed import time_interleaved
from vt.analysis.tables import print_table
from vt.apis.inferencers import inferencer_of
from vt.apis.model_zoo import build, name_of, resolve_config
from vt.engine.config.parts import preparation_of
from vt.engine.config.steps import Run, RunOptions
from vt.engine.reporting import describe, in_one_line
from vt.engine.run.record import describe_device, write_measured
from vt.engine.run.speed_settings import use_threads
from vt.errors import UserError
from vt.files import PACKAGE, write_atomically, write_json
from vt.inference.inputs import Samples
from vt.inference.test_set import build_plain_training_set, build_test_set, spread_evenly
from vt.paths import check_output
from vt.serialization import predict_exported
from vt.serialization.export import (
    SUFFIXES,
    Forward,
    Network,
    answered_by,
    encode,
    export_program,
    largest_difference,
    run_onnx,
)

BATCHES = (1, 2, 5)
LARGER = (32, 64)  # pixels added to height and width for the second size
STRIDE = 32  # multiple of image sides that every model supports
CALIBRATION = 128  # images to calibrate int8
# Modules that the script consists of, each behind those that it imports.
SCRIPT = ('errors', 'untrusted_text', 'files', 'paths', 'image_bounds', 'inference/image_files')
SCRIPT += ('serialization/predict_exported',)


def export(args: argparse.Namespace) -> list[Path]:
    """Compare each format with the model on real inputs, and return the files of those that agree, which are written.

    On request their speed is measured.

    For a format that differs, or int8 that loses too much, there is a UserError at the end; it is not written.
    """
    formats = choose_formats(args.formats)
    check_output(args.out, args.config, args.checkpoint)
    use_threads()
    os.environ.setdefault('ORT_DISABLE_TELEMETRY', '1')  # reports to Microsoft, from the runtime's import on
    logging.getLogger('onnxscript').setLevel(logging.WARNING)
    cfg, name = resolve_config(args.config, args.cfg_options), name_of(args.config)
    run = Run(cfg, RunOptions(checkpoint=args.checkpoint))
    model = build(run)
    network, inputs = Network(model), [*read_inputs(model, args.inputs, build_test_set, max(BATCHES))]
    images = torch.cat([one for one in inputs if one.shape == inputs[0].shape])
    images = images.repeat(-(-max(BATCHES) // len(images)), *[1] * (images.ndim - 1))
    others = [] if args.fixed_size else resized(images)
    program = export_program(network, images[:2], others[:1])
    if program.reason:
        print(f'the image size is fixed, {describe_size(images)}, because of: {program.reason}')
    cases = [images[:number] for number in BATCHES] + (others if program.open_size else [])
    fitting = read_calibration(model, args.calibrate, images, program.open_size) if 'int8' in formats else []
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # about names of dynamic sizes
        # All before the scores, which take longer: a package may be missing.
        encoded = {kind: encode(kind, program, fitting) for kind in formats}
    own = {} if args.accuracy is None else score(model, args.accuracy)
    rows = []
    for kind, (contents, forward) in encoded.items():
        differences = {describe_size(case): largest_difference(forward, network, case) for case in cases}
        worst = max(differences, key=differences.__getitem__)
        row = dict(format=kind, file=f'{name}{next(iter(contents))}', difference=differences[worst], at=worst)
        if own:
            row |= score(model, args.accuracy, forward) | dict(model_score=own['score'])
        rows.append(row)
    refused = {row['format']: reason for row in rows if (reason := why_refused(row, args))}
    runs = {kind: forward for kind, (_, forward) in encoded.items() if kind not in refused}
    files = {f'{name}{suffix}': content for kind in runs for suffix, content in encoded[kind][0].items()}
    for file, content in files.items():
        write_atomically(args.out_dir / file, content)
    if runs:
        about = describe_inputs(model, images.shape[1:], program.open_size)
        if {'onnx', 'int8'} & runs.keys():
            about |= write_script(model, about, run_onnx(program.onnx), args.out_dir)
        write_json(about, args.out_dir / f'{name}.json')
        print(f'written to {args.out_dir}')
    if args.benchmark:
        enter_times(rows, runs, network, images[:1])
    print_table([describe_row(row) for row in rows], title=f'{name}, compared with the model itself')
    if 'int8' in runs and not own:
        print('int8 is approximate: add --accuracy to measure its score')
    sizes = dict(size=describe_size(images[:1]), open_size=program.open_size, reason=program.reason)
    write_measured(args.out, config=args.config, **sizes, **own, results=rows)
    if refused:
        raise UserError(f'not written: {"; ".join(refused.values())}')
    return [args.out_dir / file for file in files]


def choose_formats(names: list[str]) -> list[str]:
    """Return the formats to write; UserError for an unknown one."""
    if unknown := [name for name in names if name not in SUFFIXES]:
        raise UserError(f'{unknown[0]} is not a format: choose {", ".join(SUFFIXES)}')
    return names or ['program', 'onnx']


def read_calibration(model: Any, files: list[Path], images: Tensor, open_size: bool) -> list[Tensor]:
    """Return the inputs to calibrate int8, without an open size only those of the size of ``images``."""
    inputs = read_inputs(model, files, build_plain_training_set, CALIBRATION)
    fitting = [one for one in inputs if open_size or one.shape[1:] == images.shape[1:]]
    if not fitting:
        size = describe_size(images)
        raise UserError(f'no calibration image has the size {size}: give images of this size with --calibrate')
    return fitting


def why_refused(row: dict[str, Any], args: argparse.Namespace) -> str | None:
    """Return why a format is not written: its outputs or, for int8, its score differ too much; else None."""
    kind, difference = row['format'], f'{row["difference"]:.2g} at {row["at"]}'
    if kind != 'int8' and row['difference'] > args.tolerance:
        return f'{kind} differs by {difference}, more than --tolerance {args.tolerance} of the largest output'
    if not np.isfinite(row['difference']):
        return f'{kind} gives NaN or infinite outputs at {row["at"]}'
    lost = row.get('model_score', 0) - row.get('score', 0)
    if kind == 'int8' and not lost <= args.max_accuracy_drop:  # also NaN
        return f'{kind} loses {lost:.2f} of {row["metric"]}, more than --max-accuracy-drop {args.max_accuracy_drop}'
    return None


def read_inputs(model: Any, files: list[Path], dataset: Callable[[Config], Dataset], number: int) -> Iterator[Tensor]:
    """Yield normalised inputs ``(1, 3, H, W)`` or ``(1, 3, T, H, W)``, of a video its first view.

    They are those of files or, without any, ``number`` samples of the data set that ``dataset`` builds for the config.
    """
    if files:
        samples = map(Samples(model.cfg), files)
    else:
        built = dataset(model.cfg)
        samples = (built[index] for index in spread_evenly(built, number))
    for sample in samples:
        inputs = model.data_preprocessor(pseudo_collate([sample]), False)['inputs']
        yield inputs.flatten(0, 1)[:1] if inputs.ndim == 6 else inputs


@torch.no_grad()
def score(model: Any, number: int, run: Forward | None = None) -> dict[str, Any]:
    """Return ``metric``, ``score`` and the number of images, ``scored``, on the test set or ``number`` of its images.

    Pipeline, head and metrics are those of the model; ``run`` of an exported model replaces the model's network.
    """
    cfg, dataset = model.cfg, build_test_set(model.cfg)
    part = Subset(dataset, spread_evenly(dataset, number or len(dataset)))
    with (
        DefaultScope.overwrite_default_scope(cfg.get('default_scope')),
        answered_by(model, run) if run else nullcontext(),
    ):
        evaluator = Evaluator(cfg.test_evaluator)
        evaluator.dataset_meta = dataset.metainfo
        for batch in track(Runner.build_dataloader(dict(cfg.test_dataloader, dataset=part)), 'Testing'):
            evaluator.process(data_samples=model.test_step(batch), data_batch=batch)
        scores = evaluator.evaluate(len(part))
    best = ((cfg.get('default_hooks') or {}).get('checkpoint') or {}).get('save_best')
    named = best if isinstance(best, (list, tuple)) else [best]
    metric = next(name for name in (*named, *scores) if name in scores)
    return dict(metric=metric, score=float(scores[metric]), scored=len(part))


def resized(images: Tensor) -> list[Tensor]:
    """Return two of the images at a larger size of another ratio; none for clips."""
    if images.ndim != 4:
        return []
    size = [-(-side // STRIDE) * STRIDE + more for side, more in zip(images.shape[2:], LARGER)]
    return [interpolate(images[:batch], size, mode='bilinear') for batch in (2, 1)]


def describe_size(images: Tensor) -> str:
    """Return batch and size as text, such as ``2 x 224x224``."""
    return f'{len(images)} x {"x".join(map(str, images.shape[2:]))}'


@torch.no_grad()
def enter_times(rows: list[dict], runs: dict, network: Network, images: Tensor) -> None:
    """Measure the model and the exported files interleaved, and add the median seconds to the rows."""
    device = torch.device('cpu')
    steps = {name: partial(run, images) for name, run in (dict(eager=network) | runs).items()}
    found = time_interleaved(steps, device, describe_device(device), rounds=100, seconds=30)
    medians = {name: float(np.median(seconds)) for name, seconds in found.items()}
    for row in rows:
        if row['format'] in runs:
            row |= dict(seconds=medians[row['format']], eager=medians['eager'])


def describe_row(row: dict[str, Any]) -> dict[str, str]:
    """Return a format as a row of the table."""
    cells = dict(format=row['format'], file=row['file'])
    cells['largest difference'], cells['at'] = f'{row["difference"]:.1e}', row['at']
    if 'score' in row:
        cells[row['metric']], cells['of the model'] = f'{row["score"]:.2f}', f'{row["model_score"]:.2f}'
    if 'seconds' in row:
        cells['ms'], cells['model itself (ms)'] = f'{1000 * row["seconds"]:.1f}', f'{1000 * row["eager"]:.1f}'
        cells['faster'] = f'{row["eager"] / row["seconds"]:.2f}x'
    return cells


def write_script(model: Any, about: dict[str, Any], run: Forward, folder: Path) -> dict[str, Any]:
    """Write ``predict.py``, which needs no PyTorch, if it predicts what the model does; else print why not.

    Return what the script reads besides ``about``: preprocessing and postprocessing.
    """
    path, text = folder / 'predict.py', script_text()
    try:
        if path.exists() and not path.read_bytes().startswith(text.partition('\n')[0].encode()):
            raise UserError(f'{path} exists and is another script, which is not overwritten')
        if len(about['input']) != 4:
            raise UserError('the script does not support videos')
        inferencer = inferencer_of(model)  # it sets missing colours
        more = describe_preparation(inferencer)
        check_predictions(inferencer, about | more, run)
    except Exception as error:  # of a library, of any type, if a step differs from the script's
        print(f'predict.py is not written: {describe(error) or in_one_line(error)}')
        return {}
    write_atomically(path, text)
    return more


@torch.no_grad()
def check_predictions(inferencer: Any, about: dict[str, Any], run: Forward) -> None:
    """Raise a UserError if the script's input or prediction for an image of the input's size is not the model's."""
    pixels = np.random.default_rng(0).integers(0, 256, (6, 7, 3), np.uint8)
    pixels = cv2.resize(pixels, about['input'][:1:-1], interpolation=cv2.INTER_CUBIC)
    with tempfile.TemporaryDirectory() as folder:
        file = f'{folder}/image.png'
        write_atomically(file, cv2.imencode('.png', pixels)[1].tobytes())
        batch, found = pseudo_collate([inferencer.pipeline(file)]), predict_exported.prepare(file, about)[0]
        inputs = inferencer.model.data_preprocessor(batch, False)['inputs'].numpy()
        if found.shape != inputs.shape or np.abs(found - inputs).max() > 1e-4 * np.abs(inputs).max():
            raise UserError('inputs of the script differ from those of the test pipeline')
        found = predict_exported.predict(lambda x: run(torch.from_numpy(x)), about, file)
    (own,) = inferencer.forward(batch)
    if about['task'] == 'segmentation':
        differs = np.mean(found != own.pred_sem_seg.data[0].numpy()) > 1e-3
    else:
        differs = np.abs(found - own.pred_score.numpy()).max() > 1e-3 * found.max()
    if differs:
        raise UserError('predictions of the script differ from those of the model')


def script_text() -> str:
    """Return the script as one file: the module, preceded by the modules of this package that it imports."""
    texts = [(PACKAGE / f'{name}.py').read_text(encoding='utf-8') for name in SCRIPT]
    own = re.compile(r'^from (vt|\.).* import .+\n', re.MULTILINE)
    return '\n'.join([f'"""{predict_exported.__doc__}"""', *(own.sub('', text) for text in texts)])


def describe_inputs(model: Any, shape: torch.Size, open_size: bool) -> dict[str, Any]:
    """Describe the inputs ``(3, H, W)`` or ``(3, T, H, W)`` and the classes of an exported file."""
    numbers = {name: getattr(model.data_preprocessor, name, None) for name in ('mean', 'std')}  # also its own defaults
    return dict(
        input=['batch', *shape],
        open_size=open_size,
        channels='BGR' if preparation_of(model.cfg).takes_bgr else 'RGB',
        **{name: None if values is None else values.flatten().tolist() for name, values in numbers.items()},
        classes=model.dataset_meta.get('classes'),
    )


def describe_preparation(inferencer: Any) -> dict[str, Any]:
    """Return the steps of the test pipeline, padding and postprocessing; or raise a UserError."""
    model, samples, steps = inferencer.model, inferencer.pipeline, []
    if samples.shape:  # of a data set in memory
        steps.append(dict(scale=samples.shape[:0:-1], interpolation='area'))
    for step in map(dict, samples.prepared.steps):
        kind, backend = step.pop('type').rpartition('.')[2], step.get('imdecode_backend', 'cv2')
        if kind in ('Resize', 'ResizeEdge', 'CenterCrop'):
            steps.append(step)
        elif backend != 'cv2' or not kind.startswith(('Pack', 'LoadImageFromFile')):
            raise UserError(f'the script does not support {kind} {step}')
    preprocessor, is_segmentor = model.data_preprocessor, inferencer.predicts_maps
    if is_segmentor and model.test_cfg.mode != 'whole':
        raise UserError('the script does not support sliding windows')
    padding = (preprocessor.test_cfg or {}) if is_segmentor else dict(size_divisor=preprocessor.pad_size_divisor)
    return dict(
        task='segmentation' if is_segmentor else 'classification',
        scores='sigmoid' if isinstance(getattr(model, 'head', None), MultiLabelClsHead) else 'softmax',
        threshold=model.decode_head.threshold if is_segmentor else None,
        palette=model.dataset_meta['palette'] if is_segmentor else None,
        steps=steps,
        pad_divisor=padding.get('size_divisor') or 1,
        pad_value=getattr(preprocessor, 'pad_val', 0) if is_segmentor else preprocessor.pad_value,
    )
