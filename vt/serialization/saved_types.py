"""Allow-list of saved models: types, by registry and module, and strings, by the arguments that accept them."""

import re
from typing import Any

from mmengine.registry import Registry

from vt.engine.config.check_settings import registries
from vt.registry import import_every_part

SCOPES = ('mmpretrain', 'mmseg')
# Arguments that are not saved: initial weights, augmentations, names of labels, settings of the machine.
LEFT_OUT = (
    *('init_cfg', 'layer_inits', 'pretrained', 'train_cfg', 'batch_augments', 'sampler'),
    *('algorithm_keys', 'backend_args', 'file_client_args', 'meta_keys'),
)
# Modules of the classes that a saved model may contain, by the name of their registry. The rooms of mmpretrain's and
# mmseg's models are those of networks: others pretrain, retrieve, or read texts.
MODULES = dict(
    model=(
        *('vt.models.', 'vt.video.views', 'mmcv.cnn.', 'mmengine.model.', 'mmengine.utils.dl_utils.', 'torch.nn.'),
        *(f'mmpretrain.models.{room}.' for room in ('backbones', 'heads', 'losses', 'necks', 'utils')),
        *(f'mmseg.models.{room}.' for room in ('backbones', 'decode_heads', 'losses', 'necks', 'segmentors')),
        *('mmpretrain.models.classifiers.image', 'mmseg.models.data_preprocessor'),
    ),
    transform=('vt.datasets.bands', 'vt.video.clips', 'mmcv.transforms.', 'mmpretrain.datasets.', 'mmseg.datasets.'),
)
# Classes of these modules that open the files or addresses that their arguments name.
OPENING = {
    *('ArcFaceClsHead', 'DistilledClassifier', 'HuggingFaceBackbone', 'TIMMBackbone', 'TimmBackbone'),
    *('TokenLabelClassifier', 'VPD', 'VQAGenerationHead'),
}
STEPS = {  # of pipelines
    *('CenterCrop', 'EfficientNetCenterCrop', 'LoadBands', 'LoadClips', 'LoadImageFromFile', 'PackClips', 'PackInputs'),
    *('PackSegInputs', 'Resize', 'ResizeEdge', 'ResizeToMultiple', 'SameForAllFrames', 'ThreeCrops'),
}
WORD = re.compile(r'(?!_)[\w+.-]{1,64}')  # a name: no path, address, expression, or key of mmengine
RESIZINGS = 'nearest bilinear bicubic area lanczos'
POOLINGS = 'convolution max average'
# Strings that arguments take, by the name of the argument, of any of these types. Other arguments take none.
STRINGS = dict(
    arch='768/32 1024/20 1536/20',  # of ConvMixer
    add_extra_convs='on_input on_lateral on_output',
    backend='cv2 pillow',
    block='BASIC BOTTLENECK',
    bottleneck_type='cat add',
    class_tokens='fed passed dropped',
    color_type='color grayscale',
    combine='plain add gate',
    edge='short long width height',
    fusion_types='channel_add channel_mul',
    graph_conv_type='mr edge sage gin',
    grow_in='feed_forward attention',
    imdecode_backend='cv2 pillow',
    input_transform='resize_concat multiple_select',
    interpolate_mode=RESIZINGS,
    interpolation=RESIZINGS,
    kernel='s s+1 2s+1',
    loss_name='loss_ce loss_dice loss_focal loss_lovasz loss_tversky loss_boundary',
    mode=f'{POOLINGS} {RESIZINGS} gaussian embedded_gaussian dot_product concatenation whole slide original '
    'classy_vision multi_label',
    norm='BatchNorm2d InstanceNorm2d',
    order='conv norm act',
    out_type='class_tokens average map tokens layers messengers featmap raw cls_token avg_featmap',
    pooling=POOLINGS,
    pooling_type='att avg',
    psa_type='bi-direction collect distribute',
    reduction='none mean sum',
    resize=RESIZINGS,
    skip='normalised raw none',
    stdc_type='STDCNet1 STDCNet2',
    style='pytorch caffe',
)
NAME_ARGS = ('arch', 'drop', 'positions', 'tied')  # arguments that take any name of architectures and layers


def is_listed(name: Any, scope: str, kind: str = 'model') -> bool:
    """Return whether a type is one that a folder may contain; nothing is imported by its name.

    Args:
        name: name of the type, with or without its scope.
        scope: library of types without a prefix.
        kind: name of the registries: ``'model'``, or ``'transform'`` for a step of a pipeline.
    """
    if not isinstance(name, str):
        return False
    prefix, key = Registry.split_scope_key(name)
    if prefix not in (None, 'vt', 'mmengine', *SCOPES):
        return False
    if prefix == 'vt':
        import_every_part(scope)
    own = [each.module_dict for each in registries(prefix or scope) if each.name == kind]
    found = [each[key] for each in own if key in each]
    names = {each.__name__ for each in found}
    fits = names <= STEPS if kind == 'transform' else not names & OPENING
    return bool(found) and fits and all(each.__module__.startswith(MODULES[kind]) for each in found)
