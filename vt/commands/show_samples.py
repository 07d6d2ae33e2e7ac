"""Command of ``tools/analysis/show_samples.py``: figures of test images."""

import argparse

from matplotlib.figure import Figure

from vt.analysis.figures import image_cells, save_figure
from vt.engine.config_files import read_config
from vt.engine.image_hooks import as_strip, reads_bgr
from vt.inference.test_set import build_test_set, name_class, spread_over_classes

from .outputs import check_figure


def show_samples(args: argparse.Namespace) -> None:
    """Draw one row of test images per config, as a model receives them, with their classes."""
    check_figure(args.out, *args.configs)
    size = len(args.configs), args.images
    figure = Figure(figsize=(1.2 * size[1], 1.4 * size[0]), layout='constrained')
    for path, row in zip(args.configs, image_cells(figure, *size)):
        cfg = read_config(path)
        dataset, is_bgr = build_test_set(cfg), reads_bgr(cfg)
        for axes, index in zip(row, spread_over_classes(dataset, args.images)):
            sample = dataset[index]
            image = as_strip(sample['inputs']).movedim(0, -1)
            axes.imshow(image.flip(-1) if is_bgr else image)
            name = name_class(dataset, sample['data_samples'].gt_label)
            axes.set_title(name, fontsize=7, parse_math=False)
    save_figure(figure, args.out, follow=True)
    print(f'written to {args.out}')
