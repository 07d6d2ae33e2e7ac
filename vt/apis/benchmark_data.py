"""How fast a config's training images are loaded, without a model, as ``tools/benchmark_data.py`` asks."""

import argparse
import shlex
import statistics
import sys
import time
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import mmcv
import mmengine
import torch
from mmengine.config import Config
from mmengine.registry import DATASETS, init_default_scope
from mmengine.runner import Runner
from mmengine.utils.dl_utils import set_multi_processing
from rich.progress import track
from torch.utils.data import DataLoader, RandomSampler

from vt.analysis.report import print_table
from vt.analysis.run_record import versions
from vt.analysis.speed import describe_device
from vt.analysis.synthetic_jpegs import write_jpegs
from vt.engine.config_files import read_config, set_loader_defaults
from vt.engine.launch import is_segmentation


def benchmark_data(args: argparse.Namespace) -> None:
    """Time every config with every decoder and number of workers in turn; print medians, write every run to a file."""
    with TemporaryDirectory() as folder:
        file_size = write_jpegs(Path(folder), args.synthetic) if args.synthetic else None
        rows, loaders = [], []
        for path, decoder, workers in product(args.configs, args.decoders or [None], args.workers):
            cfg = loading_config(path, decoder, workers, folder if args.synthetic else None)
            rows.append(describe_loader(path, cfg))
            loaders.append(build_loader(cfg))
        rates = [[] for _ in rows]
        for _ in track(range(args.rounds), 'Loading'):
            for loader, runs in zip(loaders, rates):
                runs.append(images_per_second(loader, args.batches))
    for row, runs in zip(rows, rates):
        row.update(images_per_second=statistics.median(runs), runs=runs)
    columns = ('config', 'decoder', 'workers', 'batch_size')
    table = [
        {name: str(row[name]) for name in columns} | {'images/s': f'{row["images_per_second"]:.0f}'} for row in rows
    ]
    print_table(table, title=f'Training images loaded, {describe_device(torch.device("cpu"))}')
    if args.out:
        record = dict(
            command=shlex.join(['python', *sys.argv]),
            device=describe_device(torch.device('cpu')),
            versions=versions(),
            images=f'{args.synthetic} synthetic, 500x375, {file_size} bytes' if args.synthetic else "the config's",
            results=rows,
        )
        mmengine.dump(record, args.out, indent=2)


def loading_config(path: str, decoder: str | None, workers: int, images: str | None) -> Config:
    """A config whose training images come from a decoder, a number of workers, and a folder of pictures.

    Args:
        path: the config.
        decoder: ``imdecode_backend`` of its ``LoadImageFromFile``; None keeps it.
        workers: processes that load; 0 for none beside the main one.
        images: folder of class folders in place of the config's data; None keeps them.

    Raises:
        ImportError: the decoder needs a package that isn't here (turbojpeg: PyTurboJPEG, and libjpeg-turbo).
        ValueError: the pipeline reads no image files; the pictures have no label masks, which a segmentor needs.
    """
    cfg = read_config(path)
    loader = cfg.train_dataloader
    loader.num_workers = workers
    loader.persistent_workers = False  # they end with their round, and leave the cores to the next one
    if images is not None:
        if is_segmentation(cfg):
            raise ValueError(f'--synthetic: {path} needs label masks, and synthetic pictures have none')
        loader.dataset = dict(type='CustomDataset', data_root=images, pipeline=loader.dataset.pipeline)
    if decoder is not None:
        steps = [step for step in loader.dataset.pipeline if step['type'].endswith('LoadImageFromFile')]
        if not steps:
            raise ValueError(f'--decoders {decoder}: the pipeline of {path} has no LoadImageFromFile')
        steps[0].imdecode_backend = decoder
        mmcv.use_backend(decoder)  # mmcv makes turbojpeg's decoder only here
    set_loader_defaults(cfg)
    return cfg


def describe_loader(path: str, cfg: Config) -> dict[str, str | int]:
    """What tells this loader from the others."""
    loader = cfg.train_dataloader
    decoders = [
        step.get('imdecode_backend', 'cv2') for step in loader.dataset.get('pipeline', []) if 'Load' in step['type']
    ]
    return dict(
        config=Path(path).stem,
        decoder=decoders[0] if decoders else 'none',
        workers=loader.num_workers,
        batch_size=loader.batch_size,
    )


def build_loader(cfg: Config) -> DataLoader:
    """The loader of a config's training images, in a process set up as mmengine's runners set it up."""
    init_default_scope(cfg.get('default_scope', 'mmpretrain'))
    set_multi_processing(**cfg.get('env_cfg', {}).get('mp_cfg', {}))
    dataset = DATASETS.build(cfg.train_dataloader.dataset)
    endless = RandomSampler(dataset, replacement=True, num_samples=sys.maxsize)
    return Runner.build_dataloader(dict(cfg.train_dataloader, dataset=dataset, sampler=endless), seed=0)


def images_per_second(loader: DataLoader, batches: int) -> float:
    """Time ``batches`` batches, after as many as the workers may have at hand beforehand."""
    iterator = iter(loader)
    for _ in range(1 + loader.num_workers * (loader.prefetch_factor or 0)):
        next(iterator)
    start = time.perf_counter()
    for _ in range(batches):
        next(iterator)
    return batches * loader.batch_size / (time.perf_counter() - start)
