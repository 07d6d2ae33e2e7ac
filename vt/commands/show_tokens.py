"""A picture of a trained model's visual tokens, as ``tools/show_tokens.py`` asks."""

import argparse
from pathlib import Path

import torch
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.structures import BaseDataElement
from torch import nn

from vt.analysis.attention.model_and_images import (
    build_test_set,
    class_names,
    prepare_model,
    read_pictures,
    spread_over_classes,
)
from vt.analysis.attention.token_figure import draw_attention, look, name_tokenizer
from vt.engine.config_files import read_config, require_file
from vt.engine.launch import is_segmentation
from vt.engine.picture_hooks import reads_bgr

from .outputs import check_output


def show_tokens(args: argparse.Namespace) -> None:
    """Draw where the tokens of one tokenizer look, on given pictures or a few test images."""
    cfg = read_config(args.config)
    out = args.out or _default_output(cfg, args.config)
    check_output(out, args.config, args.checkpoint, *args.pictures)
    require_file(args.checkpoint, 'checkpoint')
    model = prepare_model(cfg, args.checkpoint)
    tokenizer = name_tokenizer(model, args.module)
    is_bgr = reads_bgr(cfg)
    dataset = build_test_set(cfg, **dict(lazy_init=True) if args.pictures else {})  # its files needn't be here
    if args.pictures:
        samples = read_pictures(args.pictures, dataset, 'bgr' if is_bgr else 'rgb')
    else:
        samples = [dataset[index] for index in spread_over_classes(dataset, args.images)]
    images, attention = zip(*(look(model, tokenizer, sample, is_bgr) for sample in samples))
    names = None if is_segmentation(cfg) else class_names(dataset)
    titles = [_describe(model, sample, names) for sample in samples]
    draw_attention(images, attention, titles).savefig(out, dpi=100)
    print(f'written to {out}')


def _default_output(cfg: Config, config: str) -> Path:
    """``tokens.png`` in the work directory of the config's runs where there is one, else in the current folder."""
    work_dir = Path(cfg.get('work_dir') or Path('work_dirs', Path(config).stem))
    return (work_dir if work_dir.is_dir() else Path()) / 'tokens.png'


@torch.no_grad()
def _describe(model: nn.Module, sample: dict, names: list[str] | None) -> str:
    """What an image is, and which of the classes ``names`` it is seen as; of a segmented one the former alone."""
    annotation: BaseDataElement = sample['data_samples']
    if names is None:
        return Path(annotation.img_path).name
    (result,) = model.test_step(pseudo_collate([sample]))
    labelled = 'gt_label' in annotation
    what = names[int(annotation.gt_label)] if labelled else Path(annotation.img_path).name
    return f'{what}, seen as {names[int(result.pred_label)]}'
