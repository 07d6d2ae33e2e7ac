"""Write a data set as tar shards with an index, as ``tools/shard.py`` asks."""

import argparse
import re
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from mmengine import fileio
from mmengine.config import Config
from PIL import Image
from rich.progress import track

from vt.checkpoints.files import replacing, write_atomically
from vt.data_checks.data import check_data, find_sources
from vt.data_checks.labels import infos_of
from vt.datasets.shard_index import CLASSES, KINDS, write_index
from vt.engine.checks.config import check_config
from vt.engine.config_files import read_config
from vt.engine.image_hooks import reads_bgr
from vt.errors import UserError

SPLITS, SIZE = ['train', 'val'], 500  # without --splits and --size, in MB
Members = list[tuple[str, bytes]]


def shard(args: argparse.Namespace) -> None:
    """Write the shards of each split into a folder, or index shards that are there.

    Raises:
        UserError: the arguments don't go together; the data are wrong, or no images or videos with one label.
    """
    if args.index:
        given = [name for name in ('config', 'out', 'splits', 'size', 'seed') if getattr(args, name) is not None]
        if given := [*given, *(['in-order'] if args.in_order else [])]:
            raise UserError(f'--index writes no shards, so {", ".join(given)} has no effect: leave it out')
        print(f'{args.index}: {write_index(args.index.rstrip("/"), args.index_file):,} samples')
        return
    size = SIZE if args.size is None else args.size
    if not (args.config and args.out) or args.index_file or size <= 0:
        raise UserError('give CONFIG, OUT and a --size above 0, or --index FOLDER and perhaps --index-file FILE')
    if args.in_order and args.seed is not None:
        raise UserError(f'--seed {args.seed} has no effect with --in-order: leave one of them out')
    cfg, splits = read_config(args.config, args.cfg_options), args.splits or SPLITS
    check_config(cfg, args.cfg_options or {})
    for line in check_data(cfg, tuple(splits)):
        print(f'warning: {line}')
    for split in splits:
        write_split(cfg, split, args.out / split, size * 10**6, None if args.in_order else args.seed or 0)


def write_split(cfg: Config, split: str, out: Path, size: float, seed: int | None) -> None:
    """Write shards of a size in bytes and their index, all or nothing; a seed shuffles the samples."""
    dataset, *others = [source.dataset for source in find_sources(cfg, (split,))] or [None]
    if dataset is None or others:
        raise UserError(f"{split}_dataloader has no data set of OpenMMLab's, or several: shards are of one")
    if out.exists():
        raise UserError(f'{out} is there already: remove it, or name another folder')
    dataset.full_init()
    infos, classes, is_bgr = infos_of(dataset), dataset.metainfo.get('classes'), reads_bgr(cfg)
    order = range(len(infos)) if seed is None else np.random.default_rng(seed).permutation(len(infos)).tolist()
    samples = (encode(infos[index], number, is_bgr) for number, index in enumerate(order))
    with replacing(out) as folder:
        folder.mkdir()
        if classes:
            write_atomically(folder / CLASSES, '\n'.join(map(str, classes)))
        number = write_shards(iter(track(samples, f'Writing {split}', len(infos))), folder, size)
        write_index(str(folder))
    print(f'{split}: {len(infos):,} samples in {number:,} shards: {out}')


def write_shards(samples: Iterator[Members], folder: Path, size: float) -> int:
    """Write the members of samples as shards of a size in bytes; returns the number of shards."""
    sample, number = next(samples, None), 0
    while sample:
        with replacing(folder / f'{number:06}.tar') as part, tarfile.open(part, 'w') as tar:
            while sample and (not tar.offset or tar.offset + sum(len(content) for _, content in sample) <= size):
                for name, content in sample:
                    info = tarfile.TarInfo(name)
                    info.size = len(content)
                    tar.addfile(info, BytesIO(content))
                sample = next(samples, None)
        number += 1
    return number


def encode(info: dict[str, Any], number: int, is_bgr: bool) -> Members:
    """Names, which begin with a number, and contents of a sample's members: its file or its image as PNG, its label."""
    path, image, label = str(info.get('img_path') or ''), info.get('img'), info.get('gt_label')
    suffix, content = Path(path).suffix.lower(), fileio.get(path) if path else b''
    if path and suffix not in KINDS:  # a row of a data set
        with suppress(OSError), Image.open(BytesIO(content)) as opened:
            suffix = f'.{str(opened.format).lower()}'
    elif not path and isinstance(image, np.ndarray) and image.dtype == np.uint8 and image.shape[2:] in ((), (1,), (3,)):
        suffix = '.png'
        content = cv2.imencode(suffix, image if is_bgr or image.ndim == 2 else image[..., ::-1])[1].tobytes()
    name = path or f'sample {info.get("sample_idx", number)}'
    if suffix not in KINDS or not content:
        raise UserError(f'{name} is neither an image nor a video that a shard holds: {", ".join(sorted(KINDS))}')
    if {'seg_map_path', 'gt_seg_map'} & info.keys() or not isinstance(label, (int, np.integer, type(None))):
        raise UserError(f'{name} has a mask, or several labels: samples of shards have one label, or none')
    key = f'{number:08}_{re.sub("[^A-Za-z0-9-]", "_", Path(path).stem)[:60]}'.rstrip('_')
    return [(key + suffix, content), *([] if label is None else [(f'{key}.cls', str(label).encode())])]
