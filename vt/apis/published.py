"""Which published classifier a config is, by library, and a config whose images are prepared as its library says."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from mmengine.config import Config
from mmengine.logging import print_log

from vt.checkpoints.public import Preparation, find_preparation
from vt.engine.config_files import leaves
from vt.errors import UserError

# Names of configs, of timm's models and of torchvision's weights; Hugging Face's are timm's on its hub.
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
LIBRARIES = ('timm', 'torchvision', 'huggingface')


def find_published(config: str | PathLike | Config, library: str) -> str:
    """The address of the weights that a library publishes of a config's model, such as ``timm://resnet50.a1_in1k``.

    Args:
        config: its name or path, or a config that was read of one.
        library: one of :data:`LIBRARIES`.

    Raises:
        UserError: the library has none of it, or none that is known here.
    """
    name = Path((config.filename or '') if isinstance(config, Config) else config).stem.lower()
    timm, torchvision = PUBLISHED.get(name, (None, None))
    found = torchvision if library == 'torchvision' else timm
    if found is None:
        others = [*(LIBRARIES[::2] if timm else ()), *(LIBRARIES[1:2] if torchvision else ())]
        known = ', '.join(each for each, row in PUBLISHED.items() if row[library == 'torchvision'])
        have = 'has' if len(others) == 1 else 'have'
        advice = f'{" and ".join(others)} {have} them' if others else f'it has those of {known}'
        raise UserError(f'no weights of {name or "this config"} are known of {library}: {advice}')
    return dict(timm='timm://', torchvision='torchvision://', huggingface='hf://timm/')[library] + found


def prepare_as_published(cfg: Config, address: str | None) -> Preparation | None:
    """Enter, in place, how the images of published weights are prepared into a config; one line of the log says how.

    Args:
        cfg: of a classifier; mean and deviation of its preprocessor and the middle of its test pipeline are replaced.
        address: of the weights; of others than published ones nothing is done.

    Returns:
        What was entered.

    Raises:
        UserError: as :func:`vt.checkpoints.public.find_preparation`.
    """
    found = find_preparation(str(address)) if address else None
    if found is None or 'head' not in cfg.model:
        return None
    mean, std = [[round(value, 6) for value in values] for values in (found.mean, found.std)]
    preprocessor = cfg.model.get('data_preprocessor') or cfg.setdefault('data_preprocessor', {})
    preprocessor.update(mean=mean, std=std, to_rgb=True)
    for dataset in leaves((cfg.get('test_dataloader') or {}).get('dataset')):
        if dataset.get('pipeline'):
            dataset['pipeline'] = _pipeline(dataset['pipeline'], found)
    print_log(f'{address}: images as published: {found}', logger='current')
    return found


def _pipeline(steps: Sequence[dict[str, Any]], found: Preparation) -> list[dict[str, Any]]:
    """A test pipeline that reads and packs as before, and between them resizes and crops as published."""
    kinds = [step['type'].rpartition('.')[2] for step in steps]
    load = [step for step, kind in zip(steps, kinds) if kind.startswith('Load')]
    is_video = kinds[-1] == 'PackClips'  # torchvision resizes images by Pillow, frames as OpenCV does
    resize = dict(type='ResizeEdge', scale=found.resize, edge='short', interpolation=found.interpolation)
    middle = [resize | ({} if is_video else dict(backend='pillow')), dict(type='CenterCrop', crop_size=found.crop)]
    return [*load, *([dict(type='vt.SameForAllFrames', transforms=middle)] if is_video else middle), steps[-1]]
