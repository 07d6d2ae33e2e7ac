"""Where attention goes, as ``attention.py`` and ``show_tokens.py`` of ``tools/analysis`` ask."""

import argparse
from pathlib import Path

import mmpretrain
import torch
from matplotlib.figure import Figure
from mmengine.config import Config
from torch import nn
from torch.utils.data import Dataset

from vt.analysis.attention.token_attention import measure_tokenizers, print_tokenizers
from vt.analysis.attention.token_figure import (
    draw_attention,
    draw_over_time,
    has_pooling_attention,
    look,
    look_over_time,
    name_part,
)
from vt.analysis.figures import save_figure
from vt.apis import get_model
from vt.apis.model_zoo import require_weights
from vt.engine.config_files import read_config
from vt.engine.image_hooks import reads_bgr
from vt.engine.launch import draw_weights, is_segmentation
from vt.inference.inputs import Images
from vt.inference.test_set import build_test_set, describe_image, spread_evenly, spread_over_classes

from .outputs import check_figure, check_output, write_measured

MMPRETRAIN = 'mmpretrain::'
SEED = 0  # of weights that no checkpoint sets


def report_tokens(args: argparse.Namespace) -> None:
    """Entropy, gain on the foreground and reach of a trained model's visual tokens; write them on request."""
    model, dataset, indices, source = prepare(args)
    rows = measure_tokenizers(model, dataset, indices, args.background)
    print_tokenizers(rows, Path(args.config).stem, len(indices))
    del source['images']  # each row has its own
    write_measured(args.out, **source, background=args.background, tokenizers=rows)


def show_tokens(args: argparse.Namespace) -> None:
    """Draw where the tokens of one tokenizer look, on given images or a few test images; of MViT the class token."""
    cfg = read(args)
    work_dir = Path(cfg.get('work_dir') or Path('work_dirs', Path(args.config).stem))
    out = args.out or (work_dir if work_dir.is_dir() else Path()) / 'tokens.png'
    check_figure(out, args.config, args.checkpoint, *args.inputs)
    model = build(cfg, args.checkpoint)
    cfg = model.cfg  # images as the weights need them
    pools, part, is_bgr = has_pooling_attention(model), name_part(model, args.module), reads_bgr(cfg)
    look_at, draw = (look_over_time, draw_over_time) if pools else (look, draw_attention)
    dataset = build_test_set(cfg, **dict(lazy_init=True) if args.inputs else {})  # its files needn't be here
    samples = [*map(Images(cfg), args.inputs)] if args.inputs else []
    samples = samples or [dataset[index] for index in spread_over_classes(dataset, args.images)]
    images, attention = zip(*(look_at(model, part, sample, is_bgr) for sample in samples))
    titles = [describe_image(model, None if is_segmentation(cfg) else dataset, sample) for sample in samples]
    write(draw(images, attention, titles), out)


def prepare(args: argparse.Namespace) -> tuple[nn.Module, Dataset, list[int], dict]:
    """The model, the test set, indices of its images, and what the JSON says of them, once both outputs are checked."""
    check_figure(getattr(args, 'plot', None), args.config, args.checkpoint)
    check_output(args.out, args.config, args.checkpoint)
    cfg = read(args)
    model = build(cfg, args.checkpoint)
    dataset = build_test_set(model.cfg)
    indices = spread_evenly(dataset, args.images)
    return model, dataset, indices, dict(config=args.config, checkpoint=args.checkpoint, images=len(indices))


def write(figure: Figure, out: str | Path, dpi: int = 100) -> None:
    """Write a figure, and say so."""
    save_figure(figure, out, dpi)
    print(f'written to {out}')


def build(cfg: Config, checkpoint: str | None) -> nn.Module:
    """The model of a config for evaluation, on the GPU where there is one; without a checkpoint always the same one."""
    torch.manual_seed(SEED)
    model = get_model(cfg, checkpoint)
    if not checkpoint:
        draw_weights(model)
    return model.to('cuda' if torch.cuda.is_available() else 'cpu')


def read(args: argparse.Namespace) -> Config:
    """The config, which may be one of MMPretrain's own."""
    path = args.config
    if path.startswith(MMPRETRAIN):
        path = str(Path(mmpretrain.__file__).parent / '.mim/configs' / path.removeprefix(MMPRETRAIN))
    cfg = read_config(path, args.cfg_options)
    args.checkpoint = require_weights(args.config, args.checkpoint)
    return cfg
