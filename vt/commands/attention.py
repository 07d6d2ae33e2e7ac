"""Commands of ``show_tokens.py`` and ``show_heat_maps.py``: attention in figures."""

import argparse
from pathlib import Path
from typing import Any

import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from vt.analysis.attention.heat_maps import HeatMapper
from vt.analysis.attention.token_figure import draw_attention, look, name_part
from vt.analysis.figures import save_figure
from vt.apis import get_model
from vt.engine.config.parts import is_segmentation, preparation_of
from vt.engine.config.steps import read_config
from vt.engine.run.launch import default_device
from vt.errors import UserError
from vt.inference.inputs import Samples
from vt.inference.test_set import build_test_set, describe_image, spread_over_classes
from vt.paths import check_output


def show_tokens(args: argparse.Namespace) -> None:
    """Draw the attention of the tokens of one tokenizer, or of MViT's class token, on given images or test images."""
    model, out, samples, titles = prepare_images(args, 'tokens.png')
    part, is_bgr = name_part(model, args.module), preparation_of(model.cfg).is_bgr
    images, attention = zip(*(look(model, part, sample, is_bgr) for sample in samples))
    what = 'the class token looks' if images[0].ndim == 4 else 'each visual token looks'
    write(draw_attention(images, attention, titles, f'Where {what}'), out)


def show_heat_maps(args: argparse.Namespace) -> None:
    """Draw which pixels contribute to a class, by one or several methods, on given images or test images."""
    model, out, samples, titles = prepare_images(args, 'heat-maps.png')
    is_bgr = preparation_of(model.cfg).is_bgr
    mappers = [HeatMapper(model, method, args.layer) for method in args.method]
    looks = [[mapper.look(sample, is_bgr, args.target) for mapper in mappers] for sample in samples]
    for mapper in mappers:
        print(f'{mapper.method}: {mapper.layer}')
    if args.target is not None or is_segmentation(model.cfg):
        classes = dict(enumerate(model.dataset_meta.get('classes') or ()))  # without names their numbers
        targets = [look[0][2] for look in looks]
        titles = [f'{title}\nfor {classes.get(number, number)}' for title, number in zip(titles, targets)]
    images, maps = zip(*((look[0][0], torch.stack([heat for _, heat, _ in look])) for look in looks))
    write(draw_attention(images, maps, titles, 'Which pixels contribute to the class', args.method), out)


def prepare_images(args: argparse.Namespace, name: str) -> tuple[Any, Path, list[dict], list[str]]:
    """Return the model, the path of the figure, samples of the requested images, and their titles."""
    cfg = read_config(args.config, args.cfg_options)
    work_dir = Path(cfg.get('work_dir') or Path('work_dirs', Path(args.config).stem))
    out = args.out or (work_dir if work_dir.is_dir() else Path()) / name
    check_figure(out, args.config, args.checkpoint, *args.inputs)
    model = get_model(cfg, args.checkpoint, args.device or default_device())
    cfg = model.cfg  # with the preprocessing of the weights
    if args.inputs:
        samples, names = [*map(Samples(cfg), args.inputs)], None
    else:
        dataset = build_test_set(cfg)
        samples = [dataset[index] for index in spread_over_classes(dataset, args.images)]
        names = dataset.metainfo.get('classes')
    titles = [describe_image(model, sample, names) for sample in samples]
    return model, out, samples, titles


def check_figure(out: str | Path | None, *inputs: str | Path | None) -> None:
    """Check the path of a figure before any work is done, as :func:`check_output`, and its suffix."""
    check_output(out, *inputs)
    kinds = FigureCanvasAgg.get_supported_filetypes()
    if out is not None and Path(out).suffix[1:].lower() not in kinds:
        raise UserError(f'{out}: the name of a figure must end in .{", .".join(sorted(kinds))}')


def write(figure: Figure, out: str | Path, dpi: int = 100) -> None:
    """Write a figure, and print its path."""
    save_figure(figure, out, dpi)
    print(f'written to {out}')
