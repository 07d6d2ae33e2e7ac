"""Measure how fast training images or videos load: ``python -m projects.speed.data_loading CONFIG ...``."""

import argparse
import re
import struct
import sys
import time
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import cv2
import mmcv
import numpy as np
from mmengine.config import Config
from mmengine.registry import DATASETS, init_default_scope
from mmengine.runner import Runner
from mmengine.utils.dl_utils import set_multi_processing
from torch.utils.data import DataLoader, RandomSampler

from docs.reports.records import write_measured
from vt.analysis.tables import print_table
from vt.cli.parser import CommandParser
from vt.engine.config.parts import is_segmentation, steps_in
from vt.engine.config.steps import read_config
from vt.engine.reporting import one_line_errors
from vt.errors import UserError
from vt.paths import check_output

from .timing import median_of_rounds

# ImageNet-1k's most frequent size, and about the mean size of its files in bytes, which the quality gives here.
HEIGHT, WIDTH = 375, 500
FILE_SIZE, QUALITY = 110_000, 93
# About ADE20K's mean size, and its number of classes.
SCENE, CLASSES = (512, 683), 150
# Videos as Kinetics' usual ones: ten seconds, the shorter side 256.
FRAMES, FPS, VIDEO_SIZE = 300, 30, (340, 256)


def loading_config(path: str, decoder: str | None, workers: int, images: str | None, load_only: bool = False) -> Config:
    """A config whose training data come from a decoder of images, a number of workers, and a folder of files.

    None as decoder, mmcv's ``imdecode_backend``, or as folder keeps the config's own; with
    ``load_only`` its pipeline is what reads files and what packs them.

    Raises:
        UserError: the decoder needs a package that isn't here; the pipeline reads no files.
    """
    cfg = read_config(path)
    loader = cfg.train_dataloader
    loader.num_workers = workers
    loader.persistent_workers = False  # they end with their round, and leave the cores to the next one
    if images is not None:
        loader.dataset = synthetic_dataset(cfg, Path(images))
    if load_only:
        loader.dataset.pipeline = [step for step in loader.dataset.pipeline if re.search('Load|Pack', step['type'])]
    if decoder is not None:
        steps = [step for step in loader.dataset.pipeline if step['type'].endswith('LoadImageFromFile')]
        if not steps:
            raise UserError(f'--decoders {decoder}: the pipeline of {path} has no LoadImageFromFile')
        steps[0]['imdecode_backend'] = decoder
        try:
            mmcv.use_backend(decoder)  # mmcv makes turbojpeg's decoder only here
        except (ImportError, RuntimeError) as error:  # of the package, of its library
            raise UserError(f'--decoders {decoder} needs PyTurboJPEG and libjpeg-turbo: {error}') from error
    return cfg


def synthetic_dataset(cfg: Config, folder: Path) -> dict:
    """A config's training data set with the files that ``write_files`` wrote; UserError if it reads none."""
    dataset = cfg.train_dataloader.dataset
    if dataset.type == 'vt.FashionMNIST':
        return dataset | dict(data_root=str(folder / 'fashion-mnist'))
    if not any('Load' in step['type'] for step in dataset.pipeline):
        raise UserError(f'--synthetic: {dataset.type} reads no files')
    if is_segmentation(cfg):
        return dict(
            type='BaseSegDataset',
            data_root=str(folder / 'scenes'),
            data_prefix=dict(img_path='', seg_map_path=''),
            metainfo=dict(classes=[str(label) for label in range(CLASSES)]),
            reduce_zero_label=any(step.get('reduce_zero_label') for step in dataset.pipeline),
            pipeline=dataset.pipeline,
        )
    kind, name = ('vt.VideoDataset', 'videos') if gives_clips(cfg) else ('CustomDataset', 'images')
    return dict(type=kind, data_root=str(folder / name), pipeline=dataset.pipeline)


def gives_clips(cfg: Config) -> bool:
    """Whether a config trains on clips of videos, of files or made in memory."""
    return any(step['type'].endswith('PackClips') for step in cfg.train_dataloader.dataset.get('pipeline', []))


def describe_loader(path: str, cfg: Config) -> dict[str, str | int]:
    """What tells this loader from the others."""
    loader = cfg.train_dataloader
    steps = [step for step in loader.dataset.get('pipeline', []) if 'Load' in step['type']]
    usual = 'opencv' if gives_clips(cfg) else 'cv2'
    decoder = steps[0].get('imdecode_backend', usual) if steps else 'none'
    crops = [step for step in steps_in(loader.dataset.get('pipeline')) if step.get('type') == 'RandomResizedCrop']
    crop = crops[0].get('backend', 'cv2') if crops else 'none'
    row = dict(config=Path(path).stem, decoder=decoder, crop=crop, workers=loader.num_workers)
    return row | dict(batch_size=loader.batch_size)


def build_loader(cfg: Config) -> DataLoader:
    """The loader of a config's training images, in a process set up as mmengine's runners set it up."""
    init_default_scope(cfg.get('default_scope', 'mmpretrain'))
    set_multi_processing(**cfg.get('env_cfg', {}).get('mp_cfg', {}))
    dataset = DATASETS.build(cfg.train_dataloader.dataset)
    endless = RandomSampler(dataset, replacement=True, num_samples=sys.maxsize)
    return Runner.build_dataloader(dict(cfg.train_dataloader, dataset=dataset, sampler=endless), seed=0)


def samples_per_second(loader: DataLoader, batches: int) -> float:
    """Time ``batches`` batches, after as many as the workers may have at hand beforehand."""
    iterator = iter(loader)
    for _ in range(1 + loader.num_workers * (loader.prefetch_factor or 0)):
        next(iterator)
    start = time.perf_counter()
    for _ in range(batches):
        next(iterator)
    return batches * loader.batch_size / (time.perf_counter() - start)


def write_files(folder: Path, number: int, cfgs: list[Config]) -> int:
    """Write what the configs read, ``number`` images or videos each; the mean size of one of ImageNet or Kinetics."""
    names = {Path(synthetic_dataset(cfg, folder)['data_root']).name for cfg in cfgs}
    for name in names:
        (folder / name).mkdir()
    if 'fashion-mnist' in names:
        write_fashion_mnist(folder / 'fashion-mnist')
    if 'scenes' in names:
        write_jpegs(folder / 'scenes', number, SCENE, masks=True)
    if 'videos' in names:
        return write_videos(folder / 'videos', number)
    return write_jpegs(folder / 'images', number) if 'images' in names else 0


def write_jpegs(folder: Path, number: int, size: tuple[int, int] = (HEIGHT, WIDTH), masks: bool = False) -> int:
    """Write images of two classes, ``folder/class_<k>/<i>.jpg``, the same every time; their mean size in bytes.

    With ``masks`` each has a label mask of few regions beside it, ``<i>.png``.
    """
    generator = np.random.default_rng(0)
    paths = [folder / f'class_{index % 2}' / f'{index}.jpg' for index in range(number)]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        cv2.imwrite(str(path), draw_image(generator, size), [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
        if masks:
            labels = generator.integers(0, CLASSES + 1, (6, 8), dtype=np.uint8)
            mask = cv2.resize(labels, size[::-1], interpolation=cv2.INTER_NEAREST)
            cv2.imwrite(str(path.with_suffix('.png')), mask)
    return int(np.mean([path.stat().st_size for path in paths]))


def write_fashion_mnist(folder: Path) -> None:
    """Write the two files of Fashion-MNIST's training images, with noise in place of clothes."""
    generator = np.random.default_rng(0)
    for name, high, shape in (('images-idx3', 256, (60_000, 28, 28)), ('labels-idx1', 10, (60_000,))):
        header = struct.pack(f'>I{len(shape)}I', 0x0800 + len(shape), *shape)
        content = header + generator.integers(0, high, shape, dtype=np.uint8).tobytes()
        (folder / f'train-{name}-ubyte').write_bytes(content)


def write_videos(folder: Path, number: int) -> int:
    """Write videos of two classes, ``folder/class_<k>/<i>.mp4``, a window that wanders over an image; as above."""
    generator = np.random.default_rng(0)
    paths = [folder / f'class_{index % 2}' / f'{index}.mp4' for index in range(number)]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        image, (width, height) = draw_image(generator), VIDEO_SIZE
        writer = cv2.VideoWriter(str(path), cv2.CAP_FFMPEG, cv2.VideoWriter_fourcc(*'mp4v'), FPS, VIDEO_SIZE)
        for turn in np.linspace(0, 2 * np.pi, FRAMES):
            top = round((HEIGHT - height) * (1 + np.sin(turn)) / 2)
            left = round((WIDTH - width) * (1 + np.cos(turn)) / 2)
            writer.write(image[top : top + height, left : left + width])
        writer.release()
    return int(np.mean([path.stat().st_size for path in paths]))


def draw_image(generator: np.random.Generator, size: tuple[int, int] = (HEIGHT, WIDTH)) -> np.ndarray:
    """Noise at every scale, the more of it the coarser the scale, as in photographs: ``(*size, 3)``, uint8."""
    height, width = size
    image = np.full((height, width, 3), 128, np.float32)
    for scale in 2 ** np.arange(8):
        grid = generator.standard_normal((-(-height // scale), -(-width // scale), 3), np.float32)
        grid = 0.7 * grid.mean(axis=2, keepdims=True) + 0.3 * grid  # channels of photographs are alike
        image += 14 * scale**0.3 * cv2.resize(grid, (width, height), interpolation=cv2.INTER_CUBIC)
    return np.clip(image, 0, 255).astype(np.uint8)


def main(args: argparse.Namespace) -> None:
    """Load every config's data with every decoder and number of workers in turn; print medians, write every run."""
    check_output(args.out, *args.configs)
    cfgs = [read_config(path) for path in args.configs]
    videos = {gives_clips(cfg) for cfg in cfgs}
    if len(videos) > 1:
        raise UserError('some of the configs read videos, the others do not: time them apart')
    what = 'videos' if videos == {True} else 'images'
    with TemporaryDirectory() as folder:
        file_size = write_files(Path(folder), args.synthetic, cfgs) if args.synthetic else None
        rows, steps = [], {}
        for path, decoder, workers in product(args.configs, args.decoders or [None], args.workers):
            cfg = loading_config(path, decoder, workers, folder if args.synthetic else None, args.load_only)
            cfg.train_dataloader.batch_size = min(cfg.train_dataloader.batch_size, args.max_batch_size or sys.maxsize)
            steps[len(rows)] = partial(samples_per_second, build_loader(cfg), args.batches)
            rows.append(describe_loader(path, cfg))
        measured = median_of_rounds(steps, args.rounds, 'Loading')
    unit = 'clips/s' if what == 'videos' else 'images/s'
    table = [
        {name: str(value) for name, value in row.items()} | {unit: f'{rate:.4g}'}
        for row, (rate, _) in zip(rows, measured.values())
    ]
    print_table(table, title=f'Training {what} loaded')
    results = [
        row | {unit.replace('/s', '_per_second'): rate, 'runs': runs}
        for row, (rate, runs) in zip(rows, measured.values())
    ]
    size = '340x256, 300 frames' if what == 'videos' else '500x375'
    source = f'{args.synthetic} synthetic, {size}, {file_size} bytes' if args.synthetic else "the config's"
    write_measured(args.out, **{what: source}, load_only=args.load_only, results=results)


def parse_args() -> argparse.Namespace:
    parser = CommandParser(
        'Measure how fast the training images or videos of configs load, without a model.',
        'python -m projects.speed.data_loading configs/vt_resnet/vt-resnet18_digits.py --workers 0 2',
    )
    parser.add_argument('configs', nargs='+', help='paths of configs')
    parser.add_argument(
        '--synthetic',
        type=int,
        metavar='N',
        help="read N generated JPEG files of ImageNet's usual size, or videos of Kinetics', instead of own data",
    )
    parser.add_argument(
        '--workers', type=int, nargs='+', default=[0, 2], help='numbers of loading processes (default: 0 2)'
    )
    parser.add_argument(
        '--decoders',
        nargs='+',
        choices=['cv2', 'pillow', 'turbojpeg'],
        help="decoders of images (default: the config's)",
    )
    parser.add_argument('--max-batch-size', type=int, help='load larger batches in this size')
    parser.add_argument('--load-only', action='store_true', help='only read files, without transforms')
    parser.add_argument('--batches', type=int, default=20, help='batches per round (default: 20)')
    parser.add_argument('--rounds', type=int, default=5, help='number of interleaved rounds (default: 5)')
    parser.add_argument('--out', help='JSON file for the measurements')
    parser.add_common_options(config=False, checkpoint=False)
    return parser.parse_args()


if __name__ == '__main__':
    args = parse_args()
    with one_line_errors('data_loading', args.traceback):
        main(args)
