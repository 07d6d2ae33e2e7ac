"""Published weights for configs, by library, and the preprocessing that these weights require."""

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from mmengine.config import Config

from vt.checkpoints.run_folders import find_checkpoint
from vt.checkpoints.weight_sources import fetching, similar_in_timm, torchvision_weights
from vt.errors import UserError
from vt.files import ROOT, file_in
from vt.logs import logger
from vt.models.timm_backbone import TimmBackbone
from vt.registry import dicts_in

from .parts import Preparation, leaves, preparation_of

WEIGHTS = 'model.safetensors'  # file in the folder of a saved model
TIMM = 'timm:'  # before a name in place of a config: any classifier of timm, with its weights and preparation
RECIPE = ROOT / 'configs/_base_/recipes/fine_tune_timm.py'
NEAR = 0.5  # of 255: means that differ by rounding are equal
# Names of configs, of timm's models and of torchvision's weights.
PUBLISHED: dict[str, tuple[str | None, str | None]] = {
    'cait-s24_16xb64-300e_in1k': ('cait_s24_224.fb_dist_in1k', None),
    'deit-small_16xb64-300e_in1k': ('deit_small_patch16_224.fb_in1k', None),
    'deit-small-distilled_16xb64-300e_in1k': ('deit_small_distilled_patch16_224.fb_in1k', None),
    'mvitv2-tiny_16xb64-300e_in1k': ('mvitv2_tiny.fb_in1k', None),
    'pvtv2-b2_16xb64-300e_in1k': ('pvt_v2_b2.in1k', None),
    'pvtv2-b2-li_16xb64-300e_in1k': ('pvt_v2_b2_li.in1k', None),
    'swin-tiny_16xb64-300e_in1k': ('swin_tiny_patch4_window7_224.ms_in1k', 'Swin_T_Weights.IMAGENET1K_V1'),
    'swinv2-tiny_16xb64-300e_in1k': ('swinv2_tiny_window8_256.ms_in1k', 'Swin_V2_T_Weights.IMAGENET1K_V1'),
    'tnt-small_16xb64-300e_in1k': ('tnt_s_legacy_patch16_224.in1k', None),
    'twins-pcpvt-small_16xb64-300e_in1k': ('twins_pcpvt_small.in1k', None),
    'twins-svt-small_16xb64-300e_in1k': ('twins_svt_small.in1k', None),
    'vit-base_16xb64-300e_in1k': ('deit_base_patch16_224.fb_in1k', 'ViT_B_16_Weights.IMAGENET1K_V1'),
    'resnet18_8xb32-90e_in1k': ('resnet18.a1_in1k', 'ResNet18_Weights.IMAGENET1K_V1'),
    'resnet34_8xb32-90e_in1k': ('resnet34.a1_in1k', 'ResNet34_Weights.IMAGENET1K_V1'),
    'resnet50_8xb32-90e_in1k': ('resnet50.a1_in1k', 'ResNet50_Weights.IMAGENET1K_V2'),
    'resnet101_8xb32-90e_in1k': ('resnet101.a1h_in1k', 'ResNet101_Weights.IMAGENET1K_V2'),
    'mvit-base-16x4_k400': (None, 'MViT_V1_B_Weights.KINETICS400_V1'),
    'mvitv2-small-16x4_k400': (None, 'MViT_V2_S_Weights.KINETICS400_V1'),
}
LIBRARIES = ('timm', 'torchvision')


def find_weights(cfg: Config, pretrained: str | PathLike | bool | None) -> str | None:
    """Return the path of weights, or the address of published ones, such as ``timm://resnet50.a1_in1k``; None for none.

    Args:
        cfg: config of the model; the name of its file is the model's.
        pretrained: as of :func:`vt.apis.get_model`.

    Raises:
        UserError: there are no such weights.
    """
    if pretrained == '':
        raise UserError('the path of the checkpoint is empty: give a path, or None for random weights')
    if pretrained in (None, True) and 'saved_in' in cfg:
        return cfg.saved_in
    name = Path(cfg.filename or 'this config').stem
    if not cfg.filename:  # composed by the name of the model alone
        short = str(cfg.get('config_name') or name).partition('_')[0]
        name = next((known for known in PUBLISHED if known.partition('_')[0] == short), short)
    if pretrained is True:
        raise UserError(f'there are no published weights for {name}: train it, and give the path of its checkpoint')
    if not pretrained:
        return None
    if pretrained not in LIBRARIES:
        return str(_saved_in(pretrained) if Path(pretrained).is_dir() else pretrained)
    if str(pretrained) == 'timm' and str(cfg.model.get('backbone', {}).get('type')).endswith('TimmBackbone'):
        return f'timm://{cfg.model.backbone.model_name}'
    column = LIBRARIES.index(str(pretrained))
    if found := PUBLISHED.get(name, (None, None))[column]:
        return f'{pretrained}://{found}'
    known = ', '.join(each for each, row in PUBLISHED.items() if row[column])
    raise UserError(f'{pretrained} has no known weights for {name}: it has weights for {known}')


def _saved_in(folder: str | PathLike) -> Path:
    """Return the weights in a folder, of a saved model or of a run, whose best checkpoint it is."""
    path = file_in(folder, WEIGHTS)
    if path.is_file():
        return path
    checkpoint = find_checkpoint(folder)
    if checkpoint is None:
        raise UserError(f'{folder} is neither the folder of a saved model, which has {WEIGHTS}, nor of a run')
    return checkpoint


def find_preparation(address: str) -> Preparation | None:
    """Return the preprocessing that a library specifies for published weights; None for other files.

    The address is ``timm://NAME``, or ``torchvision://ResNet50_Weights.NAME``. Images that are neither cropped in the
    centre nor squashed are a UserError.
    """
    scheme, _, name = address.partition('://')
    classes: Iterable[str] = ()
    keeps_ratio = True
    if scheme == 'torchvision' and '_Weights.' in name:
        weights = torchvision_weights(name)
        known, classes = weights.transforms(), weights.meta['categories']
        scale, crop, interpolation = known.resize_size[0], known.crop_size[0], known.interpolation.value
    elif scheme == 'timm':
        with fetching(address):
            import timm.data

            known: Any = timm.get_pretrained_cfg(name)
        if known is None:
            return None
        if known.crop_mode not in (None, 'center', 'squash'):
            reason = f"crop_mode={known.crop_mode!r}, but only 'center' and 'squash' are supported"
            raise UserError(f'{address} has {reason}: give the path of its file')
        crop, interpolation = known.input_size[-1], known.interpolation
        scale, keeps_ratio = math.floor(crop / known.crop_pct), known.crop_mode != 'squash'
        if subset := timm.data.infer_imagenet_subset(known.to_dict()):
            classes = timm.data.ImageNetInfo(subset).label_descriptions()
    else:
        return None
    kind = dict(type='ResizeEdge', edge='short') if keeps_ratio else dict(type='Resize')
    resize = kind | dict(scale=scale, interpolation=interpolation)
    mean, std = (tuple(255.0 * value for value in values) for values in (known.mean, known.std))
    return Preparation((resize, dict(type='CenterCrop', crop_size=crop)), mean, std, classes=tuple(classes))


def prepare_as_published(cfg: Config, address: str | None, verbose: bool = True) -> Preparation | None:
    """Set the preprocessing of published weights in a classifier's config, in place; return it, None for other weights.

    Mean and deviation of its preprocessor and the middle of its test pipeline are replaced. Where its backbone gives
    ``image_size``, images have this size, and the margin is in proportion. Of another number of channels than three it
    keeps its own mean and deviation, or takes those of the channels that
    :func:`vt.checkpoints.formats.recognise.adapt_channels` takes. With ``verbose`` the log says so.
    """
    found = find_preparation(str(address)) if address else None
    if found is None or 'head' not in cfg.model:
        return None
    resize, crop = found.steps
    published = crop['crop_size']
    size = cfg.model.backbone.get('image_size') or published
    height, width = [size, size] if isinstance(size, int) else size[-2:]  # of clips frames come first
    if height != width:
        raise UserError(f'backbone.image_size={size}: published weights expect square images, set a square size')
    resize, crop = resize | dict(scale=round(resize['scale'] * height / published)), crop | dict(crop_size=height)
    mean, std = _of_own_channels(found, preparation_of(cfg))
    preprocessor = cfg.model.get('data_preprocessor') or cfg.setdefault('data_preprocessor', {})
    preprocessor.update(mean=mean, std=std, to_rgb=len(mean) == 3)
    for dataset in leaves((cfg.get('test_dataloader') or {}).get('dataset')):
        if dataset.get('pipeline'):
            dataset['pipeline'] = _pipeline(dataset['pipeline'], resize, crop)
    if not verbose:
        return found
    at = '' if height == published else f" at the model's size, not {published}x{published}"
    side = 'shorter side' if 'edge' in resize else 'both sides'
    sizes = f'{side} {resize["scale"]} ({resize["interpolation"]}), centre {height}x{height}'
    mean, std = (', '.join(f'{value:.6g}' for value in values) for values in (mean, std))
    logger.info(f'{address}: images are preprocessed as published{at}: {sizes}, mean {mean}, std {std}')
    return found


def named_weights(options: Any) -> list[str]:
    """Return the weights that ``init_cfg=dict(type='Pretrained', ...)`` and ``pretrained='NAME'`` of a model name."""
    files = [str(part.get('checkpoint')) for part in dicts_in(options) if part.get('type') == 'Pretrained']
    return files + [part['pretrained'] for part in dicts_in(options) if isinstance(part.get('pretrained'), str)]


def compare_preparation(cfg: Config) -> list[str]:
    """Return warnings about published initial weights that were trained with other settings than those of the run.

    These are the mean and standard deviation of images, and the position of the stride in ResNet's bottlenecks.
    """
    backbone, lines = cfg.model.get('backbone') or {}, []
    addresses = dict.fromkeys([str(cfg.get('load_from') or ''), *named_weights(cfg.model)])
    if backbone.get('style') == 'caffe' and backbone.get('depth', 0) >= 50:
        others = [address for address in addresses if address.startswith(('torchvision://', 'timm://'))]
        lines += [f"{address} has style='pytorch', the backbone has style='caffe'" for address in others]
    published = {}
    for address in addresses:
        with suppress(UserError):  # it is raised when the weights are loaded
            published[address] = find_preparation(address)
    own = preparation_of(cfg)
    for address, found in published.items() if own.channels == 3 else ():
        for name in ('mean', 'std') if found else ():
            given, trained = getattr(own, name), getattr(found, name)
            values = given * 3 if len(given) == 1 else given
            if len(values) != 3 or any(abs(one - other) > NEAR for one, other in zip(values, trained)):
                numbers = ', '.join(f'{value:.6g}' for value in trained)
                line = f'{address} was trained with {name}=[{numbers}], data_preprocessor has {[*given]}'
                lines.append(f'{line}: use the same')
    return lines


def _of_own_channels(found: Preparation, own: Preparation) -> list[list[float]]:
    """Return mean and deviation for the number of channels of a model."""
    number = own.channels or 3
    if number != 3 and len(own.mean) == len(own.std) == number:
        return [[*own.mean], [*own.std]]
    several = ([sum(values) / 3] if number == 1 else (values * number)[:number] for values in (found.mean, found.std))
    return [[round(value, 6) for value in values] for values in several]


def _pipeline(steps: Sequence[dict[str, Any]], resize: dict[str, Any], crop: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a test pipeline that resizes and crops like the published one, and reads and packs as before."""
    kinds = [step['type'].rpartition('.')[2] for step in steps]
    load = [step for step, kind in zip(steps, kinds) if kind.startswith('Load')]
    if kinds[-1] == 'PackClips':  # torchvision resizes images by Pillow, frames as OpenCV does
        return [*load, dict(type='vt.SameForAllFrames', transforms=[resize, crop]), steps[-1]]
    backend = {} if 'LoadBands' in kinds else dict(backend='pillow')  # of at most three channels of 8 bits
    return [*load, resize | backend, crop, steps[-1]]


def read_timm_config(source: str) -> Config:
    """Return the config that fine-tunes a classifier of timm, ``timm:NAME``, on a folder of images.

    A run begins with the published weights of this name. Without timm, such a classifier or weights, there is a
    UserError.
    """
    name = source.removeprefix(TIMM)
    cfg = Config.fromfile(RECIPE)
    cfg.load_from = f'timm://{name}'
    prepared = prepare_as_published(cfg, cfg.load_from, verbose=False)
    if prepared is None:
        near = similar_in_timm(name) or 'timm.list_pretrained() lists all'
        raise UserError(f'{source}: timm has no published weights of this name: {near}')
    with torch.device('meta'):
        cfg.model.head.in_channels = TimmBackbone(name).num_features
    cfg.model.backbone.model_name = name
    resize, crop = prepared.steps
    train_crop = cfg.train_dataloader.dataset.pipeline[1]
    train_crop.update(scale=crop['crop_size'], interpolation=resize['interpolation'])
    cfg.val_dataloader = cfg.test_dataloader
    cfg.config_name = f'timm-{name}'
    return cfg
