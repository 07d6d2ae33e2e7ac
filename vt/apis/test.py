"""Test a checkpoint, as ``tools/test.py`` asks."""

import argparse
from copy import deepcopy
from dataclasses import asdict

import mmengine
from mmengine.config import Config, ConfigDict
from mmengine.dist import is_main_process
from mmengine.evaluator import DumpResults
from mmengine.model import BaseTTAModel, is_model_wrapper
from mmengine.runner import Runner

from vt.analysis.benchmark import benchmark_inference
from vt.analysis.report import describe_benchmark, print_table
from vt.engine.command_line import load_config, require_file
from vt.engine.launch import build_runner


def test(args: argparse.Namespace) -> None:
    """Evaluate; on request write predictions or metrics, and measure the model."""
    cfg = testing_config(args)
    runner = build_runner(cfg)
    if args.out and args.out_item != 'metrics':
        runner.test_evaluator.metrics.append(DumpResults(out_file_path=args.out))
    metrics = runner.test()
    if not is_main_process():
        return
    if args.out_item == 'metrics':
        mmengine.dump(metrics, args.out)
    if args.benchmark:
        benchmark(runner, args, metrics)


def testing_config(args: argparse.Namespace) -> Config:
    """The config with the arguments of ``tools/test.py`` entered."""
    if args.out_item and not args.out:
        raise ValueError(f'--out-item {args.out_item} needs --out FILE')
    if args.out and args.out_item != 'metrics' and not args.out.endswith(('.pkl', '.pickle')):
        raise ValueError(f'--out {args.out}: predictions are written as .pkl; metrics take --out-item metrics')
    if args.tta and args.show_dir:
        raise ValueError('--show-dir draws one view of an image, --tta tests several: leave one of them out')
    cfg = load_config(args)
    require_file(args.checkpoint, 'checkpoint')
    cfg.load_from = args.checkpoint
    if args.amp:
        cfg.test_cfg.fp16 = True
    if args.show_dir:
        cfg.default_hooks.visualization.update(enable=True, out_dir=args.show_dir, interval=1)
    if args.tta:
        use_tta(cfg)
    return cfg


def use_tta(cfg: Config) -> None:
    """Wrap the model for test-time augmentation: the config's own, or the average over an image and its mirror."""
    pipeline = cfg.test_dataloader.dataset.pipeline
    flips = [dict(type='RandomFlip', prob=1.0), dict(type='RandomFlip', prob=0.0)]
    augmented = dict(type='TestTimeAug', transforms=[flips, [pipeline[-1]]])
    cfg.test_dataloader.dataset.pipeline = cfg.get('tta_pipeline') or [*deepcopy(pipeline[:-1]), augmented]
    tta_model = cfg.get('tta_model') or dict(type='mmpretrain.AverageClsScoreTTA')
    cfg.model = ConfigDict(**tta_model, module=cfg.model)


def benchmark(runner: Runner, args: argparse.Namespace, metrics: dict) -> None:
    """Measure the tested model at the size of the test images; write and print the result.

    Wrappers, for distribution or test-time augmentation, are taken off: the model itself is measured.
    """
    model = runner.model
    while is_model_wrapper(model) or isinstance(model, BaseTTAModel):
        model = model.module
    loader = runner.test_dataloader
    image = loader.dataset[0]['inputs']
    image = image[0] if isinstance(image, list) else image  # test-time augmentation gives a list of views
    result = benchmark_inference(model, tuple(image.shape), loader.batch_size)
    path = f'{runner.work_dir.rstrip("/")}.benchmark.json'
    record = dict(config=args.config, checkpoint=args.checkpoint, metrics=metrics, **asdict(result))
    mmengine.dump(record, path, indent=2)
    print_table([describe_benchmark(result)], title=f'{args.config} on {result.device}')
    print(f'written to {path}')
