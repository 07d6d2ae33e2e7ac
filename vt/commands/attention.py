"""Where attention goes, as ``attention.py`` and ``show_tokens.py`` of ``tools/analysis`` ask."""

import argparse
from pathlib import Path

import mmcv
import mmpretrain
import torch
from mmengine.config import Config
from torch import nn
from torch.utils.data import Dataset

from vt.analysis.attention.class_token_figure import (
    draw_over_time,
    has_pooling_attention,
    look_over_time,
    name_attention,
)
from vt.analysis.attention.locality import describe_locality, draw_locality, measure_locality
from vt.analysis.attention.object_attention import describe_objects, draw_objects, measure_objects
from vt.analysis.attention.reach import draw_reaches, measure_reaches
from vt.analysis.attention.token_attention import measure_tokenizers, print_tokenizers
from vt.analysis.attention.token_figure import draw_attention, look, name_tokenizer
from vt.analysis.figures import save_figure
from vt.analysis.tables import print_table
from vt.apis import get_model
from vt.datasets import DigitScenes
from vt.engine.config_files import read_config, require_file
from vt.engine.image_hooks import reads_bgr
from vt.engine.launch import draw_weights, is_segmentation
from vt.errors import UserError
from vt.inference.inputs import Pictures, read_picture
from vt.inference.test_set import build_test_set, describe_image, spread_evenly, spread_over_classes

from .outputs import check_output, check_picture, write_measured

MMPRETRAIN = 'mmpretrain::'
DRAWN = 4  # images of a figure
SEED = 0  # of weights that no checkpoint sets
SIZE = 224  # of an image for which no config has another one


def report_tokens(args: argparse.Namespace) -> None:
    """Entropy, gain on the foreground and reach of a trained model's visual tokens; write them on request."""
    model, dataset, indices = _prepare(args, args.out)
    rows = measure_tokenizers(model, dataset, indices, args.background)
    print_tokenizers(rows, Path(args.config).stem, len(indices))
    source = dict(config=args.config, checkpoint=args.checkpoint, background=args.background)
    write_measured(args.out, **source, tokenizers=rows)


def report_locality(args: argparse.Namespace) -> None:
    """How local a ViT's attention is by depth; draw and write it on request."""
    check_picture(args.plot, args.config, args.checkpoint)
    model, dataset, indices = _prepare(args, args.out)
    locality = measure_locality(model, dataset, indices)
    weights = Path(args.checkpoint).name if args.checkpoint else 'random weights, as initialised'
    title = f'{Path(args.config).stem} ({weights}), {len(indices)} test images'
    print_table(describe_locality(locality), title=title)
    if args.plot:
        save_figure(draw_locality(locality, title), args.plot, dpi=150)
        print(f'written to {args.plot}')
    source = dict(config=args.config, checkpoint=args.checkpoint, images=len(indices))
    write_measured(args.out, **source, **locality.shares())


def report_objects(args: argparse.Namespace) -> None:
    """What each part of a model takes for the objects that have to be compared, before and after it was trained."""
    check_picture(args.plot, args.config, args.checkpoint)
    model, dataset, indices = _prepare(args, args.out)
    after = measure_objects(model, dataset, indices)
    names = args.parts or list(after)
    if unknown := set(names) - set(after):
        raise UserError(f'--parts {" ".join(sorted(unknown))}: the model has {", ".join(after)}')
    before = measure_objects(_build(_read(args), None), dataset, indices)
    print_table(describe_objects(before, after), title=f'{Path(args.config).stem}, {len(indices)} test images')
    if args.plot:
        save_figure(draw_objects(model, dataset, indices[:DRAWN], names), args.plot)
        print(f'written to {args.plot}')
    source = dict(config=args.config, checkpoint=args.checkpoint, images=len(indices))
    write_measured(args.out, **source, before=before, after=after)


def report_reach(args: argparse.Namespace) -> None:
    """Draw from which places one token takes what it becomes, in each kind of attention of some models' configs."""
    check_picture(args.out, *args.configs, args.picture)
    image = DigitScenes('test')[0]['img'] if args.picture is None else read_picture(args.picture)
    image = mmcv.bgr2rgb(image)
    reaches = []
    for path in args.configs:
        cfg = read_config(path, args.cfg_options)
        model = _build(cfg, None)
        size = cfg.model.backbone.get('image_size', SIZE)
        shown = mmcv.imresize(image, (size, size))
        inputs = model.data_preprocessor(dict(inputs=[torch.from_numpy(shown).movedim(-1, 0)]), False)['inputs']
        name = Path(path).stem.split('_')[0]
        reaches += measure_reaches(model.backbone, inputs, name, args.stage - 1, args.place)
    shown = torch.from_numpy(mmcv.imresize(image, (SIZE, SIZE))).movedim(-1, 0) / 255
    save_figure(draw_reaches(shown, reaches), args.out)
    print(f'written to {args.out}')


def show_tokens(args: argparse.Namespace) -> None:
    """Draw where the tokens of one tokenizer look, on given pictures or a few test images; of MViT the class token."""
    cfg = _read(args)
    work_dir = Path(cfg.get('work_dir') or Path('work_dirs', Path(args.config).stem))
    out = args.out or (work_dir if work_dir.is_dir() else Path()) / 'tokens.png'
    check_picture(out, args.config, args.checkpoint, *args.pictures)
    model = _build(cfg, args.checkpoint)
    if has_pooling_attention(model):
        find, look_at, draw = name_attention, look_over_time, draw_over_time
    else:
        find, look_at, draw = name_tokenizer, look, draw_attention
    part = find(model, args.module)
    is_bgr = reads_bgr(cfg)
    dataset = build_test_set(cfg, **dict(lazy_init=True) if args.pictures else {})  # its files needn't be here
    if args.pictures:
        samples = [*map(Pictures(cfg), args.pictures)]
    else:
        samples = [dataset[index] for index in spread_over_classes(dataset, args.images)]
    images, attention = zip(*(look_at(model, part, sample, is_bgr) for sample in samples))
    titles = [describe_image(model, None if is_segmentation(cfg) else dataset, sample) for sample in samples]
    save_figure(draw(images, attention, titles), out)
    print(f'written to {out}')


def _prepare(args: argparse.Namespace, out: str | None) -> tuple[nn.Module, Dataset, list[int]]:
    """The model, the test set and indices of its images, once it is sure that what is measured can be written."""
    check_output(out, args.config, args.checkpoint)
    cfg = _read(args)
    model, dataset = _build(cfg, args.checkpoint), build_test_set(cfg)
    return model, dataset, spread_evenly(dataset, args.images)


def _build(cfg: Config, checkpoint: str | None) -> nn.Module:
    """The model of a config for evaluation, on the GPU where there is one; without a checkpoint always the same one."""
    torch.manual_seed(SEED)
    model = get_model(cfg, checkpoint)
    if not checkpoint:
        draw_weights(model)
    return model.to('cuda' if torch.cuda.is_available() else 'cpu')


def _read(args: argparse.Namespace) -> Config:
    """The config, which may be one of MMPretrain's own."""
    path = args.config
    if path.startswith(MMPRETRAIN):
        path = str(Path(mmpretrain.__file__).parent / '.mim/configs' / path.removeprefix(MMPRETRAIN))
    cfg = read_config(path, args.cfg_options)
    if args.checkpoint:
        require_file(args.checkpoint, 'checkpoint')
    return cfg
