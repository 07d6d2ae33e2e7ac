"""Draw test images, one row per config, as a model receives them: ``python show_samples.py CONFIG ... --out FILE``."""

import argparse
from pathlib import Path

from matplotlib.figure import Figure

from vt.analysis.figures import image_cells, save_figure
from vt.commands.attention import check_figure
from vt.engine.config.parts import preparation_of
from vt.engine.config.steps import read_config
from vt.engine.hooks.visualization import as_strip
from vt.inference.test_set import build_test_set, name_class, spread_over_classes


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description='Draw test images of classification data sets, one row per config.')
    parser.add_argument('configs', nargs='+', metavar='CONFIG', help='paths of the configs')
    parser.add_argument('--out', type=Path, required=True, help='file to write, such as samples.jpg')
    parser.add_argument('--images', type=int, default=8, help='images per row, spread over the classes (default: 8)')
    return parser.parse_args()


def show_samples(args: argparse.Namespace) -> None:
    """Draw one row of test images per config, with their classes."""
    check_figure(args.out, *args.configs)
    size = len(args.configs), args.images
    figure = Figure(figsize=(1.2 * size[1], 1.4 * size[0]), layout='constrained')
    for path, row in zip(args.configs, image_cells(figure, *size)):
        cfg = read_config(path)
        dataset, is_bgr = build_test_set(cfg), preparation_of(cfg).is_bgr
        for axes, index in zip(row, spread_over_classes(dataset, args.images)):
            sample = dataset[index]
            image = as_strip(sample['inputs']).movedim(0, -1)
            axes.imshow(image.flip(-1) if is_bgr else image)
            name = name_class(sample['data_samples'].gt_label, dataset.metainfo.get('classes'))
            axes.set_title(name, fontsize=7, parse_math=False)
    save_figure(figure, args.out)


if __name__ == '__main__':
    show_samples(parse_args())
