"""Compose the config of a model by its short name, such as ``swin-tiny``, and a recipe for one's own data.

The parts are files in ``configs/_base_``: the model, a data set, a recipe. The composed config is the text of an
ordinary one that inherits them; ``vt print-config swin-tiny data=photos`` prints what it gives.
"""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from mmengine.config import Config

from vt.files import ROOT
from vt.private_names import read_file
from vt.registry import dicts_in

BASES = ROOT / 'configs/_base_'
MODELS = BASES / 'models'
# Files of models that are parts of others, or made for one data set.
NOT_ALONE = ('classifier', 'distilled', 'vt-early', 'mvit_slowfast-start', 'dinov2-small', 'dinov3-small')
SEGMENTORS = ('fpn_r18', 'fpn_r50', 'vt-fpn_r18', 'vt-fpn_r50')
# Models whose authors train them with a teacher, without it: the labels are those of the images.
UNTAUGHT = {
    'deit-small-distilled': 'dict(backbone=_base_.architecture.backbone, head=_base_.architecture.head)',
    'lv-vit-small': '{**_base_.architecture, **dict(teacher=None, teacher_checkpoint=None)}',
}


@cache
def short_models() -> dict[str, Path]:
    """Return the files of the models that have a short name, by this name."""
    paths = {path.stem: path for path in sorted(MODELS.glob('*.py')) if path.stem not in NOT_ALONE}
    return {name: path for name, path in paths.items() if '_' not in name or name in SEGMENTORS}


def compose(path: Path, fine_tunes: bool) -> Config:
    """Return the config that trains a model on one's own data.

    Args:
        path: file of the model, of :func:`short_models`.
        fine_tunes: whether it begins with weights; then with the recipe of fine-tuning, else with that from scratch.
    """
    with TemporaryDirectory() as folder:
        file = Path(folder, f'{path.stem}.py')
        file.write_text(config_text(path, fine_tunes), encoding='utf-8')
        cfg = read_file(str(file))
    composed = Config(cfg.to_dict())  # without the path of a file that is gone
    backbone = composed.model.get('backbone') or {}
    if (backbone.get('init_cfg') or {}).get('type') == 'Pretrained':  # it is downloaded only if weights ask for it
        backbone['init_cfg'] = None
    for part in dicts_in(composed.model):
        part.pop('_delete_', None)  # of a part that this recipe does not set
    composed.config_name = path.stem
    return composed


def config_text(path: Path, fine_tunes: bool) -> str:
    """Return the text of the composed config."""
    own = Config.fromfile(path)
    if 'architecture' in own:
        recipe = 'fine_tune_image-folder' if fine_tunes else 'scratch_image-folder'
        model = UNTAUGHT.get(path.stem, '_base_.architecture')
        return _text([f'recipes/{recipe}.py'], path, f'model = {model}')
    backbone = own.model.backbone.type
    is_vt = 'vt.VT' in str(own.model)
    if 'decode_head' in own.model:
        lines = "model = dict(data_preprocessor=dict(size=(512, 512)), decode_head=dict(num_classes='auto'))\n"
        lines += 'default_hooks = dict(checkpoint=dict(interval=2000))'
        if not is_vt:  # nothing that the rates of tokens are for
            lines += '\nrates = dict(_delete_=True, custom_keys=dict(backbone=dict(lr_mult=0.1)))'
            lines += '\noptim_wrapper = dict(paramwise_cfg=rates)'
        bases = ['datasets/images-and-masks_512x512.py', 'recipes/tuned_bs4-20k.py', 'segmentation_runtime.py']
        return _text(bases, path, lines)
    if own.model.type == 'vt.VideoClassifier':
        return _text(['recipes/fine_tune_videos.py'], path, '')
    bases = ['datasets/image_folder_bs32.py', 'default_runtime.py']
    lines = "model = dict(head=dict(num_classes='auto', topk=(1,)))"
    if is_vt:
        bases.insert(1, 'recipes/tuned_bs32-90e.py')
    else:
        bases.insert(1, 'schedules/adamw_bs32-15e.py')
        if not fine_tunes:
            lines += '\noptim_wrapper = dict(optimizer=dict(lr=4e-3))\ntrain_cfg = dict(max_epochs=90)'
    if fine_tunes:
        stages = ['conv1', 'bn1', 'layer1', 'layer2', 'layer3'] if backbone.startswith('vt.') else ['']
        names = [f'backbone.{stage}'.rstrip('.') for stage in stages]
        lines += f'\nstages = {{name: dict(lr_mult=0.1) for name in {names}}}'
        lines += '\noptim_wrapper = dict(paramwise_cfg=dict(custom_keys=stages))\ntrain_cfg = dict(max_epochs=30)'
    return _text(bases, path, lines)


def _text(bases: list[str], path: Path, lines: str) -> str:
    files = [str(BASES / base) for base in bases]
    return f'_base_ = {[*files, str(path)]}\n{lines}\n'
