"""How fast training images are loaded, as ``tools/benchmark_data.py`` asks."""

import argparse
import statistics
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.progress import track

from vt.analysis.run_record import describe_origin
from vt.analysis.speed.data_loading import build_loader, describe_loader, images_per_second, loading_config, write_jpegs
from vt.analysis.tables import print_table

from .outputs import check_output, write_json


def benchmark_data(args: argparse.Namespace) -> None:
    """Time every config with every decoder and number of workers in turn; print medians, write every run to a file."""
    check_output(args.out, *args.configs)
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
    origin = describe_origin()
    columns = ('config', 'decoder', 'workers', 'batch_size')
    table = [
        {name: str(row[name]) for name in columns} | {'images/s': f'{row["images_per_second"]:.0f}'} for row in rows
    ]
    print_table(table, title=f'Training images loaded, {origin["device"]}')
    if args.out:
        images = f'{args.synthetic} synthetic, 500x375, {file_size} bytes' if args.synthetic else "the config's"
        write_json(dict(**origin, images=images, results=rows), args.out)
