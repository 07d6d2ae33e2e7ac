"""Section 6 of the paper in numbers, as ``tools/attention.py`` asks."""

import argparse
import shlex
import sys
from pathlib import Path

import mmpretrain
import torch
from mmengine.config import Config
from torch import nn
from torch.utils.data import Dataset

from vt.analysis.attention.locality import describe_locality, draw_locality, measure_locality
from vt.analysis.attention.model_and_images import build_test_set, prepare_model, spread_evenly
from vt.analysis.attention.token_attention import describe_distances, describe_entropies, finite, measure_tokenizers
from vt.analysis.tables import print_table
from vt.engine.config_files import read_config, require_file

from .outputs import check_output, write_json

MMPRETRAIN = 'mmpretrain::'


def report_tokens(args: argparse.Namespace) -> None:
    """Entropy, gain on the foreground and reach of a trained model's visual tokens; write them on request."""
    model, dataset = _prepare(args)
    indices = spread_evenly(dataset, args.images)
    rows = measure_tokenizers(model, dataset, indices, args.background)
    name = f'{Path(args.config).stem}, {len(indices)} test images'
    title = f'{name}: entropy of attention in nats, attention on a pixel of the foreground'
    print_table(describe_entropies(rows), title=title)
    left_out = next(iter(rows.values()))['images_without_both_regions']
    if 0 < left_out < len(indices):
        print(f'foreground: {left_out} images left out, labels show it or background alone')
    title = f'{name}: distance of interacting pixels, root mean square in diagonals'
    print_table(describe_distances(rows), title=title)
    _write(args, background=args.background, tokenizers=rows)


def report_locality(args: argparse.Namespace) -> None:
    """How local a ViT's attention is by depth; draw and write it on request."""
    model, dataset = _prepare(args)
    indices = spread_evenly(dataset, args.images)
    locality = measure_locality(model, dataset, indices)
    weights = Path(args.checkpoint).name if args.checkpoint else 'random weights, as initialised'
    title = f'{Path(args.config).stem} ({weights}), {len(indices)} test images'
    print_table(describe_locality(locality), title=title)
    if args.plot:
        draw_locality(locality, title).savefig(args.plot, dpi=150)
        print(f'written to {args.plot}')
    heads = locality.ratios
    shares = dict(mean=heads.mean(dim=1), std_over_heads=heads.std(dim=1, correction=0), of_heads=heads)
    shares |= dict(on_no_patch=locality.on_no_patch, uniform=locality.uniform)
    _write(args, images=len(indices), **{key: finite(value) for key, value in shares.items()})


def _prepare(args: argparse.Namespace) -> tuple[nn.Module, Dataset]:
    """The model and the test set, once it is sure that what is measured can be written."""
    for out in (args.out, getattr(args, 'plot', None)):
        check_output(out, args.config, args.checkpoint)
    cfg = _read_config(args.config)
    cfg.merge_from_dict(args.cfg_options or {})
    if args.checkpoint:
        require_file(args.checkpoint, 'checkpoint')
    return prepare_model(cfg, args.checkpoint), build_test_set(cfg)


def _read_config(path: str) -> Config:
    if path.startswith(MMPRETRAIN):
        path = str(Path(mmpretrain.__file__).parent / '.mim/configs' / path.removeprefix(MMPRETRAIN))
    return read_config(path)


def _write(args: argparse.Namespace, **record) -> None:
    if args.out:
        origin = dict(config=args.config, checkpoint=args.checkpoint, torch=torch.__version__)
        write_json(dict(command=shlex.join(['python', *sys.argv]), **origin, **record), args.out)
        print(f'written to {args.out}')
