"""Command of ``vt test``: test a checkpoint."""

import argparse
from copy import deepcopy
from pathlib import Path
from typing import Any

import cv2
import mmengine
import numpy as np
from mmengine.config import Config, ConfigDict
from mmengine.dist import is_main_process
from mmengine.evaluator import DumpResults
from mmengine.hooks import Hook
from mmengine.runner import Runner

from vt.analysis.speed import benchmark_inference, describe_benchmark
from vt.analysis.tables import print_table
from vt.data_checks.data import check_data
from vt.engine.config.parts import is_segmentation, leaves
from vt.engine.config.steps import Run, RunOptions, prepare
from vt.engine.hooks.dry_run import is_number
from vt.engine.hooks.num_classes import has_labels
from vt.engine.hooks.visualization import output_paths_of
from vt.engine.reporting import files_of
from vt.engine.run.launch import build_prepared
from vt.engine.run.record import describe_device, write_measured
from vt.errors import UserError
from vt.files import write_atomically, write_json
from vt.paths import check_folder, check_output, mask_paths

from .evaluation_report import Report

METRICS = '.json'  # as the suffix of --out; others are of predictions


def test(args: argparse.Namespace) -> dict[str, Any]:
    """Evaluate, and return the scores; on request write predictions, metrics or a report, and measure the cost."""
    run = testing_run(args)
    maps, metrics_only = is_segmentation(run.cfg), (args.out or '').endswith(METRICS)
    suffix, what = ('', 'a folder for predicted maps') if maps else ('.pkl', 'a .pkl file for predictions')
    if args.out and Path(args.out).suffix not in (METRICS, suffix):
        raise UserError(f'--out {args.out} must be a {METRICS} file for metrics, or {what}')
    notes = check_data(run.data, ('test',))
    runner = build_prepared(run)
    for note in notes:
        runner.logger.warning(note)
    if args.report:
        runner.register_hook(Report(args.report, args.compare, args.heat_maps))
    if not maps and not has_labels(runner.test_dataloader.dataset):
        if metrics_only or not (args.out or args.show_dir):
            raise UserError(
                'the test images have no labels: write predictions with --out FILE.pkl or --show-dir FOLDER'
            )
        runner.test_evaluator.metrics.clear()
    if args.out and not metrics_only:
        write_predictions(runner, args.out, maps)
    metrics = {name: float(value) if is_number(value) else value for name, value in runner.test().items()}
    if not is_main_process():
        return metrics
    if metrics_only:
        write_json(metrics, args.out)
    if args.benchmark:
        device, result = next(runner.model.parameters()).device, benchmark_inference(runner)
        print_table([describe_benchmark(result)], title=f'{args.config} on {describe_device(device)}')
        numbers = {name: value for name, value in metrics.items() if isinstance(value, float)}
        tables = {name: value for name, value in metrics.items() if name not in numbers}
        record = dict(config=args.config, checkpoint=run.start, metrics=numbers, tables=tables, **result)
        write_measured(f'{runner.work_dir.rstrip("/")}.benchmark.json', device, **record)
    return metrics


def write_predictions(runner: Runner, out: str, maps: bool) -> None:
    """Let a test write its predictions: label maps into a folder, others to a file."""
    if maps:
        runner.register_hook(WriteMaps(Path(out)))
    else:
        runner.test_evaluator.metrics.append(WriteResults(out_file_path=out))


class WriteResults(DumpResults):
    """Predictions as a pickle file, which is written whole or not at all."""

    def compute_metrics(self, results: list) -> dict:
        """Write them; they are not metrics."""
        write_atomically(self.out_file_path, mmengine.dump(results, file_format='pickle'))
        print(f'written to {self.out_file_path}')
        return {}


def check_arguments(args: argparse.Namespace) -> None:
    """Raise a UserError for arguments of ``vt test`` that exclude each other, or paths that cannot be written."""
    if args.tta and args.show_dir:
        raise UserError('--show-dir draws one view per image, but --tta tests several: remove one of them')
    if args.compare and not args.report:
        raise UserError(f'--compare {args.compare} requires --report FOLDER')
    if args.heat_maps and (args.tta or not args.report):
        raise UserError('--heat-maps requires --report FOLDER, and does not support --tta')
    if args.report:
        check_folder(Path(args.report))
    if args.out and not Path(args.out).suffix:
        check_folder(Path(args.out))
    else:
        check_output(args.out, args.config, args.checkpoint)


def testing_run(args: argparse.Namespace) -> Run:
    """Return the run for the arguments of ``vt test``."""
    check_arguments(args)
    run = prepare(args.config, RunOptions.of(args, trains=False, checkpoint=args.checkpoint))
    cfg = run.cfg
    if not cfg.get('test_dataloader'):
        raise UserError('testing requires test_dataloader in the config')
    if args.amp:
        cfg.test_cfg.fp16 = True
    if args.show_dir:
        if not cfg.default_hooks.get('visualization'):
            raise UserError("--show-dir requires default_hooks.visualization=dict(type='vt.FigureHook')")
        cfg.default_hooks.visualization.update(enable=True, out_dir=args.show_dir, interval=1)
    if args.tta:
        use_tta(cfg)
    return run


class WriteMaps(Hook):
    """Predicted label maps as PNG files of 8 or 16 bits, named after the images.

    The numbers are those of the annotations, from 1 with ``reduce_zero_label``.

    Args:
        out: folder of the maps.
    """

    def __init__(self, out: Path) -> None:
        self.out = out

    def before_test(self, runner: Runner) -> None:
        """Choose the path of each map; raise a UserError if it would overwrite a file of the test set."""
        dataset = runner.test_dataloader.dataset
        kept = (Path(file) for index in range(len(dataset)) for file in files_of(dataset, index))
        self.paths = mask_paths(output_paths_of(dataset), self.out, kept, '--out')
        self.first = int(getattr(dataset, 'reduce_zero_label', False))

    def after_test_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:
        """Write the maps of a batch."""
        for sample in outputs:
            labels = sample.pred_sem_seg.data[0].cpu().numpy() + self.first
            _, content = cv2.imencode('.png', labels.astype(np.uint8 if labels.max() < 256 else np.uint16))
            path = self.paths.get(sample.img_path, Path(f'{Path(sample.img_path).stem}.png'))
            write_atomically(self.out / path, content.tobytes())


def use_tta(cfg: Config) -> None:
    """Wrap the model for test-time augmentation: that of the config, or the average over an image and its flip."""
    for dataset in leaves((cfg.get('train_dataloader') or {}).get('dataset')):
        if any('swap_seg_labels' in step for step in dataset.get('pipeline', [])) and 'tta_model' not in cfg:
            raise UserError('--tta flips images, but left and right are classes of this data set: remove --tta')
    flips = [dict(type='RandomFlip', prob=prob, direction='horizontal') for prob in (0.0, 1.0)]
    of_frames = [dict(type='vt.SameForAllFrames', transforms=[flip]) for flip in flips]
    for dataset in leaves(cfg.test_dataloader.dataset):
        *steps, last = dataset['pipeline']
        is_video = last['type'].endswith('PackClips')
        augmented = dict(type='TestTimeAug', transforms=[of_frames if is_video else flips, [last]])
        dataset['pipeline'] = cfg.get('tta_pipeline') or [*deepcopy(steps), augmented]
    averages = dict(mmpretrain='AverageClsScoreTTA', mmseg='SegTTAModel')
    tta_model = cfg.get('tta_model') or dict(type=averages[cfg.get('default_scope', 'mmpretrain')])
    cfg.model = ConfigDict(**tta_model, module=cfg.model)
