"""How images come to a network with published weights: what its library says, entered in a config."""

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from mmengine.config import Config
from mmengine.logging import print_log

from vt.checkpoints.public import fetching, torchvision_weights
from vt.errors import UserError
from vt.registry import dicts_in

from .config_parts import Preparation, leaves, preparation_of

NEAR = 0.5  # of 255: means that differ by rounding are equal


def find_preparation(address: str) -> Preparation | None:
    """Return the preprocessing that a library specifies for published weights; None for other files.

    The address is ``timm://NAME``, or ``torchvision://ResNet50_Weights.NAME``. Images that are neither cropped in the
    centre nor squashed are a UserError.
    """
    scheme, _, name = address.partition('://')
    classes: Sequence[str] = ()
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


def prepare_as_published(cfg: Config, address: str | None, is_told: bool = True) -> Preparation | None:
    """Set the preprocessing of published weights in a classifier's config, in place; return it, None for other weights.

    Mean and deviation of its preprocessor and the middle of its test pipeline are replaced. Where its backbone gives
    ``image_size``, images have this size, and the margin is in proportion. Of another number of channels than three it
    keeps its own mean and deviation, or takes those of the channels that
    :func:`vt.checkpoints.formats.recognise.adapt_channels` takes. With ``is_told`` the log says so.
    """
    found = find_preparation(str(address)) if address else None
    if found is None or 'head' not in cfg.model:
        return None
    resize, crop = found.steps
    published = crop['crop_size']
    size = cfg.model.backbone.get('image_size') or published
    height, width = [size, size] if isinstance(size, int) else size[-2:]  # of clips frames come first
    if height != width:
        raise UserError(f'backbone.image_size={size}: published images are square, give a square size')
    resize, crop = resize | dict(scale=round(resize['scale'] * height / published)), crop | dict(crop_size=height)
    mean, std = _of_own_channels(found, preparation_of(cfg))
    preprocessor = cfg.model.get('data_preprocessor') or cfg.setdefault('data_preprocessor', {})
    preprocessor.update(mean=mean, std=std, to_rgb=len(mean) == 3)
    for dataset in leaves((cfg.get('test_dataloader') or {}).get('dataset')):
        if dataset.get('pipeline'):
            dataset['pipeline'] = _pipeline(dataset['pipeline'], resize, crop)
    if not is_told:
        return found
    at = '' if height == published else f" at the model's size, not {published}x{published}"
    side = 'shorter side' if 'edge' in resize else 'both sides'
    sizes = f'{side} {resize["scale"]} ({resize["interpolation"]}), centre {height}x{height}'
    mean, std = (', '.join(f'{value:.6g}' for value in values) for values in (mean, std))
    print_log(f'{address}: images as published{at}: {sizes}, mean {mean}, deviation {std}', logger='current')
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
