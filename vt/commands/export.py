"""Command of ``tools/export.py``: export a model for other runtimes."""

import argparse
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmengine.dataset import pseudo_collate
from mmengine.evaluator import Evaluator
from mmengine.registry import DATASETS
from mmengine.runner import Runner
from rich.progress import track
from torch import Tensor
from torch.nn.functional import interpolate

from vt.analysis.speed.timing import time_interleaved
from vt.analysis.tables import print_table
from vt.apis.exporting import Network, Run, answered_by, encode, export_program, largest_difference
from vt.apis.model_zoo import get_model, require_weights, resolve_config
from vt.checkpoints.files import write_atomically
from vt.engine.config_parts import leaves
from vt.engine.image_hooks import reads_bgr
from vt.engine.run_record import describe_device
from vt.engine.speed_settings import require_compiler, use_threads
from vt.errors import UserError
from vt.inference.inputs import Images, Videos, pipeline_of
from vt.inference.test_set import build_test_set, in_scope, spread_evenly

from .exported_script import write_script
from .outputs import check_output, write_json, write_measured

BATCHES = (1, 2, 5)
LARGER = (32, 64)  # pixels added to height and width for the second size
STRIDE = 32  # multiple of image sides that every model supports
LARGEST_LOSS = 1.0  # of int8, in units of the metric
CALIBRATION = 128  # images to calibrate int8


def export(args: argparse.Namespace) -> None:
    """Compare each format with the model on real inputs, write those that agree, and measure their speed on request.

    Raises:
        UserError: outputs of a format differ by more than the tolerance, or int8 loses too much; it is not written.
    """
    check_output(args.out, args.config, args.checkpoint)
    check_options(args)
    batch = args.benchmark_batch or 1
    if 'aot' in args.formats:
        require_compiler()
    use_threads()
    cfg, name = resolve_config(args.config, args.cfg_options), Path(args.config).stem
    model = get_model(cfg, require_weights(args.config, args.checkpoint))
    network, images = Network(model), read_inputs(model, args.inputs)
    others = [] if args.fixed_size else resized(images)
    program = export_program(network, images[:2], others[:1])
    if program.reason:
        print(f'the image size is fixed, {describe_size(images)}, because of: {program.reason}')
    cases = [images[:batch] for batch in BATCHES] + (others if program.open_size else [])
    runs, contents, rows = {}, {}, []
    for kind in args.formats:
        inputs = [*read_calibration(model, args.calibrate)] if kind == 'int8' else []
        fitting = [one for one in inputs if program.open_size or one.shape[1:] == images.shape[1:]]
        if len(fitting) < len(inputs):
            note = f'int8: {len(fitting)} of {len(inputs)} images for calibration have the size {describe_size(images)}'
            if not fitting:
                raise UserError(f'{note}: give images of this size with --calibrate')
            print(f'{note}; the others are not used')
        contents[kind], runs[kind] = encode(kind, network, program, images[:2], fitting)
        differences = {describe_size(case): largest_difference(runs[kind], network, case) for case in cases}
        worst = max(differences, key=differences.__getitem__)
        file = f'{name}{next(iter(contents[kind]))}'
        rows.append(dict(format=kind, file=file, difference=differences[worst], at=worst))
    shape = None if program.open_size else images.shape[1:]
    own = enter_scores(rows, model, runs, args.accuracy, shape) if args.accuracy is not None else {}
    refused = {row['format']: reason for row in rows if (reason := why_refused(row, args))}
    for kind in args.formats:
        if kind in refused:
            del runs[kind]
            continue
        for suffix, content in contents[kind].items():
            write_atomically(args.out_dir / f'{name}{suffix}', content)
    if runs:
        about = describe_inputs(model, images, program.open_size)
        if {'onnx', 'int8'} & runs.keys():
            about |= write_script(model, about, program.onnx, name, args.out_dir)
        write_json(about, args.out_dir / f'{name}.json')
    if args.benchmark:
        enter_times(rows, runs, network, images[:batch])
    print_table([describe_row(row) for row in rows], title=f'{name}, compared with the model itself')
    if 'int8' in runs and args.accuracy is None:
        print('int8 is approximate: add --accuracy to measure its score')
    sizes = dict(size=describe_size(images[:1]), open_size=program.open_size, reason=program.reason)
    write_measured(args.out, config=args.config, **sizes, batch=len(images[:batch]), **own, results=rows)
    if refused:
        raise UserError(f'{"; ".join(refused.values())}; it is not written')


def check_options(args: argparse.Namespace) -> None:
    """Raise a UserError for an option that would have no effect, or a number out of range."""
    if args.benchmark_batch is not None and not 1 <= args.benchmark_batch <= max(BATCHES):
        raise UserError(f'--benchmark-batch {args.benchmark_batch} must be from 1 to {max(BATCHES)}')
    if args.accuracy is not None and args.accuracy < 0:
        raise UserError(f'--accuracy {args.accuracy} must be a number of images')
    for option, is_given, needed, is_there in (
        ('--benchmark-batch', args.benchmark_batch is not None, '--benchmark', args.benchmark),
        ('--calibrate', bool(args.calibrate), '--formats int8', 'int8' in args.formats),
        ('--largest-loss', args.largest_loss is not None, '--formats int8', 'int8' in args.formats),
        ('--largest-loss', args.largest_loss is not None, '--accuracy', args.accuracy is not None),
    ):
        if is_given and not is_there:
            raise UserError(f'{option} has no effect without {needed}: add it, or remove {option}')


def why_refused(row: dict[str, Any], args: argparse.Namespace) -> str | None:
    """Return why a format is not written: its outputs or, for int8, its score differ too much; else None."""
    kind, difference = row['format'], f'{row["difference"]:.2g} at {row["at"]}'
    if kind != 'int8' and row['difference'] > args.tolerance:
        return f'{kind} differs by {difference}, more than --tolerance {args.tolerance} of the largest output'
    if not np.isfinite(row['difference']):
        return f'{kind} gives NaN or infinite outputs at {row["at"]}'
    lost, most = row.get('model_score', 0) - row.get('score', 0), LARGEST_LOSS
    most = most if args.largest_loss is None else args.largest_loss
    if kind == 'int8' and not lost <= most:  # also NaN
        return f'{kind} loses {lost:.2f} of {row["metric"]}, more than --largest-loss {most}'
    return None


def read_calibration(model: Any, files: list[Path]) -> Iterator[Tensor]:
    """Yield normalised inputs from files, or from training images with the test pipeline."""
    if files:
        samples = map(reader_of(model)(model.cfg), files)
    else:
        with in_scope(model.cfg):
            parts = leaves((model.cfg.get('train_dataloader') or {}).get('dataset'))
            if not parts or 'saved_in' in model.cfg:
                raise UserError('int8 needs images, and the config has no training set: give images with --calibrate')
            datasets = [DATASETS.build(dict(part, pipeline=pipeline_of(model.cfg))) for part in parts]
        number = -(-CALIBRATION // len(datasets))
        samples = (dataset[index] for dataset in datasets for index in spread_evenly(dataset, number))
    for sample in samples:
        yield one_view(model.data_preprocessor(pseudo_collate([sample]), False)['inputs'])


@torch.no_grad()
def enter_scores(
    rows: list[dict], model: Any, runs: dict[str, Run], number: int, shape: torch.Size | None
) -> dict[str, Any]:
    """Add the score of each format on the test set, or on ``number`` of its images, to the rows.

    Pipeline, head and metrics are those of the model; the exported network replaces the model's network.

    Returns:
        ``metric``, ``score`` and the number of images of the model.

    Raises:
        UserError: an image has another shape than the fixed ``shape``.
    """
    cfg, dataset = model.cfg, build_test_set(model.cfg)
    part = torch.utils.data.Subset(dataset, spread_evenly(dataset, number or len(dataset)))
    contexts = dict(model=None) | runs
    with in_scope(cfg):
        loader = Runner.build_dataloader(dict(cfg.test_dataloader, dataset=part))
        evaluators = {name: Evaluator(cfg.test_evaluator) for name in contexts}
        for evaluator in evaluators.values():
            evaluator.dataset_meta = dataset.metainfo
        for batch in track(loader, 'Testing'):
            found = model.data_preprocessor(batch, False)['inputs'].shape[-len(shape or ()) :]
            if shape and found != shape:
                raise UserError(f'--accuracy: the size is fixed, {list(shape)}, but test images have {list(found)}')
            for name, run in contexts.items():
                with answered_by(model, run) if run else nullcontext():
                    evaluators[name].process(data_samples=model.test_step(batch), data_batch=batch)
        scores = {name: evaluator.evaluate(len(part)) for name, evaluator in evaluators.items()}
    best = ((cfg.get('default_hooks') or {}).get('checkpoint') or {}).get('save_best')
    named = best if isinstance(best, (list, tuple)) else [best]
    metric = next(name for name in (*named, *scores['model']) if name in scores['model'])
    own = float(scores['model'][metric])
    for row in rows:
        row |= dict(metric=metric, score=float(scores[row['format']][metric]), model_score=own)
    return dict(metric=metric, score=own, scored=len(part))


def reader_of(model: Any) -> type:
    """Return the class that reads a model's inputs."""
    return Videos if getattr(model.backbone, 'num_frames', None) else Images


def one_view(inputs: Tensor) -> Tensor:
    """Return the first view of a video; other inputs unchanged."""
    return inputs.flatten(0, 1)[:1] if inputs.ndim == 6 else inputs


def read_inputs(model: Any, files: list[Path]) -> Tensor:
    """Return five or more normalised inputs of one size, from files or the test set.

    Returns:
        Inputs ``(N, 3, H, W)`` or ``(N, 3, T, H, W)``.

    Raises:
        UserError: a file cannot be read.
        OSError: no files are given, and the test set does not exist.
    """
    if files:
        samples = [*map(reader_of(model)(model.cfg), files)]
    else:
        dataset = build_test_set(model.cfg)
        samples = [dataset[index] for index in spread_evenly(dataset, max(BATCHES))]
    inputs = [one_view(model.data_preprocessor(pseudo_collate([sample]), False)['inputs']) for sample in samples]
    inputs = torch.cat([one for one in inputs if one.shape == inputs[0].shape])
    return inputs.repeat(-(-max(BATCHES) // len(inputs)), *[1] * (inputs.ndim - 1))


def resized(images: Tensor) -> list[Tensor]:
    """Return two of the images at a larger size of another ratio; none for clips."""
    if images.ndim != 4:
        return []
    size = [-(-side // STRIDE) * STRIDE + more for side, more in zip(images.shape[2:], LARGER)]
    return [interpolate(images[:batch], size, mode='bilinear') for batch in (2, 1)]


def describe_size(images: Tensor) -> str:
    """Return batch and size as text, such as ``2 x 224x224``."""
    return f'{len(images)} x {"x".join(map(str, images.shape[2:]))}'


def describe_inputs(model: Any, images: Tensor, open_size: bool) -> dict[str, Any]:
    """Describe the inputs and classes of an exported file."""
    preprocessor = model.data_preprocessor
    settings = model.cfg.model.get('data_preprocessor') or model.cfg.get('data_preprocessor') or {}
    turned = settings.get('to_rgb') or settings.get('bgr_to_rgb')
    numbers = {
        name: getattr(preprocessor, name).flatten().tolist() if hasattr(preprocessor, name) else None
        for name in ('mean', 'std')
    }
    return dict(
        input=['batch', *images.shape[1:]],
        open_size=open_size,
        channels='RGB' if turned or not reads_bgr(model.cfg) else 'BGR',
        **numbers,
        classes=model.dataset_meta.get('classes'),
    )


def enter_times(rows: list[dict], runs: dict, network: Network, images: Tensor) -> None:
    """Measure the model and the exported files interleaved, and add the median seconds to the rows.

    ``cpu_seconds`` is the CPU time of all threads of this process.
    """

    @torch.no_grad()
    def eager() -> None:
        network(images)

    steps = dict(eager=eager) | {kind: (lambda run=run: run(images)) for kind, run in runs.items()}
    cpu: dict[str, list[float]] = {name: [] for name in steps}

    def count(name: str) -> None:
        before = time.process_time()
        steps[name]()
        cpu[name].append(time.process_time() - before)

    counted = {name: (lambda name=name: count(name)) for name in steps}
    device = torch.device('cpu')
    seconds = time_interleaved(counted, device, describe_device(device), rounds=100, seconds=30)
    times = {name: dict(seconds=np.median(seconds[name]), cpu_seconds=np.median(cpu[name])) for name in steps}
    times = {name: {key: float(value) for key, value in both.items()} for name, both in times.items()}
    for row in rows:
        if row['format'] in runs:
            row |= times[row['format']]
            row |= dict(eager=times['eager']['seconds'], eager_cpu=times['eager']['cpu_seconds'])


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
