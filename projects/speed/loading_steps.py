"""Measure steps of loading and what could replace them: ``python -m projects.speed.loading_steps --out FILE``."""

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import cv2
import numpy as np
import torch
from mmengine.dataset import Compose
from mmengine.registry import init_default_scope
from mmpretrain.registry import TRANSFORMS
from PIL import Image
from torchvision.transforms import v2

from docs.reports.records import write_measured
from vt.analysis.tables import print_table
from vt.cli.parser import CommandParser
from vt.engine.config.steps import read_config
from vt.engine.reporting import one_line_errors
from vt.files import ROOT
from vt.paths import check_output

from .data_loading import HEIGHT, QUALITY, WIDTH, draw_image, write_jpegs
from .timing import median_of_rounds
from .torchvision_step import TorchVision

DEIT = ROOT / 'configs/deit/deit-small_16xb64-300e_in1k.py'
PHOTOGRAPH = (3000, 4000)  # of a camera of 12 megapixels
SCALES = (1, 2, 4, 8)


def decode(scale: int, content: bytes) -> np.ndarray:
    """Decode a JPEG file at 1 / scale of its size, as libjpeg-turbo does in its inverse transform."""
    flag = cv2.IMREAD_COLOR if scale == 1 else getattr(cv2, f'IMREAD_REDUCED_COLOR_{scale}')
    return cv2.imdecode(np.frombuffer(content, np.uint8), flag)


def psnr(scale: int, content: bytes, edge: int = 256) -> float:
    """Peak signal-to-noise ratio in dB of a test image from a scaled decoding, against one from the whole file."""
    height, width = PHOTOGRAPH
    size = round(width * edge / height), edge
    whole, scaled = (np.float64(Image.fromarray(decode(each, content)).resize(size, 3)) for each in (1, scale))
    return 10 * np.log10(255**2 / np.mean((whole - scaled) ** 2))


def make_steps() -> dict[str, Callable[[np.ndarray], object]]:
    """Steps on an image, by what they are and what computes them."""
    init_default_scope('mmpretrain')
    _, crop, _, augment, *_ = read_config(str(DEIT)).train_dataloader.dataset.pipeline
    built = [TRANSFORMS.build(dict(step)) for step in (crop, augment)]
    on_arrays = [lambda image, step=step: step(dict(img=image)) for step in built]
    interpolation = v2.InterpolationMode
    on_tensors = [
        v2.RandomResizedCrop(224, interpolation=interpolation.BICUBIC, antialias=True),
        v2.RandAugment(2, 9, interpolation=interpolation.BILINEAR),  # tensors have no bicubic rotation
    ]
    on_tensors = [lambda image, step=step: step(torch.from_numpy(image).permute(2, 0, 1)) for step in on_tensors]
    return {
        'random crop, bicubic: MMPretrain by Pillow': on_arrays[0],
        'random crop, bicubic: torchvision v2 on tensors': on_tensors[0],
        'RandAugment, 2 operations: MMPretrain': on_arrays[1],
        'RandAugment, 2 operations: torchvision v2 on tensors': on_tensors[1],
    }


def make_pipelines() -> dict[str, Compose]:
    """DeiT-S's training pipeline from a file, as in the config and with torchvision's crop."""
    load, crop, *rest = read_config(str(DEIT)).train_dataloader.dataset.pipeline
    size, mode = crop['scale'], crop['interpolation']
    fast = TorchVision('RandomResizedCrop', size=size, interpolation=mode)
    return {
        "all of DeiT-S's pipeline": Compose([load, crop, *rest]),
        "all of DeiT-S's pipeline, random crop by TorchVision": Compose([load, fast, *rest]),
    }


def seconds_of(step: Callable, inputs: list) -> float:
    """Seconds of a step, the mean over its inputs."""
    start = time.perf_counter()
    for one in inputs:
        step(one)
    return (time.perf_counter() - start) / len(inputs)


def main(args: argparse.Namespace) -> None:
    """Time the steps in turn on one thread; print medians, write every run."""
    check_output(args.out)
    torch.set_num_threads(1)
    cv2.setNumThreads(0)
    generator = np.random.default_rng(0)
    images = [draw_image(generator) for _ in range(16)]
    small = [cv2.resize(image, (224, 224)) for image in images]
    photographs = [draw_image(generator, PHOTOGRAPH)]
    steps, qualities = {}, {}
    for name, step in make_steps().items():
        steps[name] = partial(seconds_of, step, small if name.startswith('RandAugment') else images)
    quality = [cv2.IMWRITE_JPEG_QUALITY, QUALITY]
    for drawn, height, width in ((images, HEIGHT, WIDTH), (photographs, *PHOTOGRAPH)):
        files = [cv2.imencode('.jpg', image, quality)[1].tobytes() for image in drawn]
        for scale in SCALES:
            name = f'decoding {width}x{height}: {f"at 1/{scale}" if scale > 1 else "whole"}'
            steps[name] = partial(seconds_of, partial(decode, scale), files)
            if drawn is photographs and scale > 1:
                qualities[name] = psnr(scale, files[0])
    with tempfile.TemporaryDirectory() as folder:
        write_jpegs(Path(folder), len(images))
        samples = [dict(img_path=str(path), gt_label=0) for path in sorted(Path(folder).rglob('*.jpg'))]
        for name, pipeline in make_pipelines().items():
            steps[name] = partial(seconds_of, lambda sample, pipeline=pipeline: pipeline(dict(sample)), samples)
        measured = median_of_rounds(steps, args.rounds, 'Loading')
    results = [dict(step=name, milliseconds=1e3 * median, runs=runs) for name, (median, runs) in measured.items()]
    for row in results:
        if row['step'] in qualities:
            row['psnr_of_a_test_image'] = qualities[row['step']]
    table = [{'step': row['step'], 'ms': f'{row["milliseconds"]:.3f}'} for row in results]
    print_table(table, 'Steps of loading')
    write_measured(args.out, results=results)


def parse_args() -> argparse.Namespace:
    parser = CommandParser(
        'Measure decoding, random crops and RandAugment, and what could replace them, on one core.',
        'python -m projects.speed.loading_steps --out steps.json',
    )
    parser.add_argument('--rounds', type=int, default=15, help='number of interleaved rounds (default: 15)')
    parser.add_argument('--out', help='JSON file for the measurements')
    parser.add_common_options(config=False, checkpoint=False)
    return parser.parse_args()


if __name__ == '__main__':
    args = parse_args()
    with one_line_errors('loading_steps', args.traceback):
        main(args)
