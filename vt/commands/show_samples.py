"""What data look like, as ``tools/show_samples.py`` asks."""

import argparse

import matplotlib.pyplot as plt
from mmengine.registry import init_default_scope

from vt.analysis.attention.model_and_images import build_test_set, spread_over_classes
from vt.engine.config_files import read_config

from .outputs import check_output


def show_samples(args: argparse.Namespace) -> None:
    """A row of test images for each config, as a model is given them, each with its class."""
    check_output(args.out, *args.configs)
    size = len(args.configs), args.images
    figure, panels = plt.subplots(*size, figsize=(1.2 * size[1], 1.4 * size[0]), squeeze=False, layout='constrained')
    for path, row in zip(args.configs, panels):
        cfg = read_config(path)
        init_default_scope(cfg.default_scope)
        dataset = build_test_set(cfg)
        for axes, index in zip(row, spread_over_classes(dataset, args.images)):
            sample = dataset[index]
            axes.imshow(sample['inputs'].permute(1, 2, 0).flip(-1))
            axes.set_title(dataset.metainfo['classes'][int(sample['data_samples'].gt_label)], fontsize=7)
        for axes in row:
            axes.axis('off')
    figure.savefig(args.out, dpi=100)
    print(f'written to {args.out}')
