"""Published weights of configs, by library."""

from os import PathLike
from pathlib import Path

from mmengine.config import Config

from vt.checkpoints.reading import find_newest_checkpoint
from vt.errors import UserError
from vt.files import file_in

from .folders import WEIGHTS

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
        raise UserError('the name of the checkpoint is empty: give its path, or None for initial weights')
    if pretrained in (None, True) and 'saved_in' in cfg:
        return cfg.saved_in
    name = Path(cfg.filename or 'this config').stem
    if pretrained is True:
        raise UserError(f'there are no published weights of {name}: train it, and give the path of its checkpoint')
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
    raise UserError(f'{pretrained} has no known weights of {name}: it has weights of {known}')


def _saved_in(folder: str | PathLike) -> Path:
    path = file_in(folder, WEIGHTS)
    if not path.is_file():
        newest, _ = find_newest_checkpoint(folder)
        advice = f'a checkpoint, such as {newest.name}' if newest else 'the path of a checkpoint'
        raise UserError(f'{folder} is not the folder of a saved model (it has no {WEIGHTS}): give {advice}')
    return path
