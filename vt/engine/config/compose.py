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

from .parts import drop_pretrained

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
    drop_pretrained(composed)  # it is downloaded only if weights ask for it
    for part in dicts_in(composed.model):
        part.pop('_delete_', None)  # of a part that this recipe does not set
    composed.config_name = path.stem
    return composed


def config_text(path: Path, fine_tunes: bool) -> str:
    """Return the text of the composed config: a model, a recipe with its data set, and what joins them."""
    own = Config.fromfile(path)
    start = 'fine_tune' if fine_tunes else 'scratch'
    if 'architecture' in own:
        recipe, model = f'{start}_image-folder', UNTAUGHT.get(path.stem, '_base_.architecture')
    elif 'decode_head' in own.model:  # its backbone begins with weights in any case
        recipe = 'vt-fpn_images-and-masks' if own.model.neck.type == 'vt.VTFPN' else 'fpn_images-and-masks'
        model = "dict(data_preprocessor=dict(size=(512, 512)), decode_head=dict(num_classes='auto'))"
    elif own.model.type == 'vt.VideoClassifier':
        recipe, model = 'fine_tune_videos', '_base_.model'
    else:
        family = 'vt-resnet' if own.model.backbone.type == 'vt.VTResNet' else 'resnet'
        recipe, model = f'{start}_{family}_image-folder', "dict(head=dict(num_classes='auto', topk=(1,)))"
    return f'_base_ = {[str(BASES / "recipes" / f"{recipe}.py"), str(path)]}\nmodel = {model}\n'
