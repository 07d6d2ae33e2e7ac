"""Shards beside single files and other formats, and a million samples: ``python tools/benchmark/shards.py``.

The images are those of ``data_loading.py``. PyTorch's loader reads all formats in turn, in the same random order and in
one process. Files are in the page cache, as after the first epoch of a data set that fits the memory.
"""

import argparse
import json
import shutil
import subprocess
import sys
import time
from functools import partial
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import cv2
import datasets
import numpy as np
import pyarrow.parquet
from data_loading import write_jpegs
from mmengine.fileio import get
from torch.utils.data import DataLoader

import vt
from vt.analysis.speed.timing import median_of_rounds
from vt.analysis.tables import print_table
from vt.commands.outputs import check_output, write_measured
from vt.commands.shard import write_shards
from vt.datasets.shard_index import INDEX, ROW, find_shards, write_index
from vt.engine.errors import one_line_errors
from vt.image_bounds import check_image_size

DISTINCT = 200  # images; the other files are copies
# What a process of its own measures: seconds, and the memory that it has beside the libraries' before and after use.
START = """
import sys, time
from pathlib import Path
import fsspec.implementations.local, vt
def memory():
    lines = dict(line.split(':', 1) for line in Path('/proc/self/smaps_rollup').read_text().splitlines()[1:])
    return [int(lines[name].split()[0]) / 1000 for name in ('Rss', 'Anonymous')]
kind, (before, own) = vt.ShardedDataset, memory()
start = time.perf_counter()
dataset = kind(sys.argv[1])
seconds = time.perf_counter() - start
opened = memory()[0] - before
infos = [dataset.get_data_info(index)['gt_label'] for index in range(0, len(dataset), 7)]
used, anonymous = memory()
print(seconds, opened, used - before, anonymous - own)
"""


class Reading:
    """Samples as what a function gives for their number."""

    def __init__(self, number, read, decode):
        self.number, self.read, self.decode = number, read, decode

    def __len__(self):
        return self.number

    def __getitem__(self, index):
        content = self.read(index)
        return len(content) if not self.decode else cv2.imdecode(np.frombuffer(content, np.uint8), 1).shape[0]


def make_formats(folder: Path, number: int) -> tuple[dict, int]:
    """The same images as files, shards, Arrow and Parquet: by name what reads one; and their mean size in bytes."""
    (folder / 'files').mkdir()
    size = write_jpegs(folder / 'files', min(number, DISTINCT))
    paths = sorted((folder / 'files').rglob('*.jpg'), key=lambda path: int(path.stem))
    for index in range(DISTINCT, number):
        paths.append(folder / f'files/{index}.jpg')
        shutil.copy(paths[index % DISTINCT], paths[index])
    (folder / 'shards').mkdir()
    samples = ([(f'{index:08}.jpg', path.read_bytes()), (f'{index:08}.cls', b'0')] for index, path in enumerate(paths))
    write_shards(samples, folder / 'shards', 100e6)
    write_index(str(folder / 'shards'))
    rows = datasets.Dataset.from_generator(partial(_rows, paths), cache_dir=str(folder / 'cache'))
    rows = rows.cast_column('image', datasets.Image(decode=False))
    rows.save_to_disk(folder / 'arrow')
    rows.to_parquet(folder / 'rows.parquet', batch_size=100)
    shards = vt.ShardedDataset(str(folder / 'shards'))
    arrow = vt.HuggingFaceDataset(str(folder / 'arrow'))
    own = datasets.load_from_disk(str(folder / 'arrow'))
    parquet = pyarrow.parquet.ParquetFile(folder / 'rows.parquet')
    groups = [parquet.metadata.row_group(index).num_rows for index in range(parquet.num_row_groups)]
    ends = np.cumsum(groups)

    def read_parquet(index):
        group = int(np.searchsorted(ends, index, side='right'))
        column = parquet.read_row_group(group, columns=['image']).column('image')
        return column[int(index - ends[group])].as_py()['bytes']

    return {
        'files': lambda index: get(str(paths[index])),
        'files, with the header check of training': lambda index: read_checked(str(paths[index])),
        'vt.ShardedDataset': lambda index: get(shards.get_data_info(index)['img_path']),
        'vt.HuggingFaceDataset (Arrow)': lambda index: get(arrow.get_data_info(index)['img_path']),
        'datasets (Arrow)': lambda index: own[index]['image']['bytes'],
        f'pyarrow (Parquet, {groups[0]} rows a group)': read_parquet,
    }, size


def read_checked(path: str) -> bytes:
    """What a training does to read a file."""
    check_image_size(path)
    return get(path)


def _rows(paths):
    for path in paths:
        yield dict(image=dict(bytes=path.read_bytes(), path=None), label=0)


def images_per_second(dataset: Reading, most: int) -> float:
    """Images of a random order, always the same, a second of this process's CPU: others may run beside it."""
    order = np.random.default_rng(0).permutation(len(dataset))[:most].tolist()
    start = time.process_time()
    assert sum(map(len, DataLoader(dataset, 20, sampler=order))) == len(order)
    return len(order) / (time.process_time() - start)


def make_large(folder: Path, number: int, per_shard: int = 1000, size: int = 110_000) -> float:
    """Write an index of many samples of shards that hold nothing but their size; returns its MB."""
    folder.mkdir()
    index = np.arange(number)
    rows = np.zeros(number, [*ROW, ('name', 'S32')])
    rows['shard'], rows['label'], rows['size'] = index // per_shard, index % 1000, size
    rows['offset'] = index % per_shard * (size + 2048) + 512
    rows['name'] = [f'{each:08}_n{each % 1000:08}_{each % 1300}.JPEG' for each in index]
    for shard in range(-(-number // per_shard)):
        with open(folder / f'{shard:06}.tar', 'wb') as file:
            file.truncate(per_shard * (size + 2048) + 10240)
    content = BytesIO()
    np.lib.format.write_array(content, rows)
    about = dict(classes=[f'class {label}' for label in range(1000)], shards=find_shards(str(folder)), store='')
    content.write(json.dumps(about).encode())
    (folder / INDEX).write_bytes(content.getvalue())
    return len(content.getvalue()) / 1e6


def main(args: argparse.Namespace) -> None:
    """Print and write the medians of all runs."""
    check_output(args.out)
    with TemporaryDirectory(dir=args.folder) as folder:
        formats, size = make_formats(Path(folder), args.images)
        steps = {}
        for decode in (False, True):
            for name, read in formats.items():
                most = args.epoch if 'Parquet' not in name else max(1, args.epoch // 20)
                steps[name, decode] = partial(images_per_second, Reading(args.images, read, decode), most)
        measured = median_of_rounds(steps, args.rounds, 'Reading')
        megabytes = make_large(Path(folder, 'large'), args.samples)
        command = [sys.executable, '-c', START, f'{folder}/large']
        runs = [
            [*map(float, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-4:])]
            for _ in range(args.rounds)
        ]
    results = [
        dict(format=name, decoded=decode, images_per_cpu_second=rate, runs=own)
        | dict(ratio=float(np.median(np.divide(own, measured['files', decode][1]))))
        for (name, decode), (rate, own) in measured.items()
    ]
    names = ('seconds', 'MB opened', 'MB used', 'MB not shared')
    start = dict(samples=args.samples, index_MB=megabytes, runs=runs)
    start |= dict(zip(names, np.median(runs, axis=0).tolist()))
    table = [{name: str(value)[:30] for name, value in row.items() if name != 'runs'} for row in results]
    print_table(table, 'Reading')
    print(start)
    write_measured(args.out, images=f'{args.images} synthetic, 500x375, {size} bytes', results=results, start=start)


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description='Time shards beside single files and other formats.')
    parser.add_argument('--images', type=int, default=5000, help='JPEG files that are made here (default: 5000)')
    parser.add_argument('--epoch', type=int, default=300, help='of them that are read in a round (default: 300)')
    parser.add_argument('--samples', type=int, default=1_000_000, help='of the index that is opened (default: 1000000)')
    parser.add_argument('--rounds', type=int, default=5, help='rounds, in which all take turns (default: 5)')
    parser.add_argument('--folder', help='where the files are made for a while (default: the temporary folder)')
    parser.add_argument('--out', help='write the figures to this JSON file')
    parser.add_argument('--traceback', action='store_true', help='show the whole traceback of an error')
    return parser.parse_args()


if __name__ == '__main__':
    args = parse_args()
    with one_line_errors('shards', args.traceback):
        main(args)
