"""Preprocessing of a saved model: convert its test pipeline to a few settings and back.

A folder contains no transforms, only settings for known steps in a fixed order.
"""

from collections.abc import Iterable
from typing import Any

from mmengine.config import Config

from vt.errors import UserError
from vt.inference.inputs import input_shape, pipeline_of
from vt.untrusted_text import printable

from .saved_types import RESIZINGS


def is_side(value: Any) -> bool:
    """Return whether it is a number of pixels from 1 to 4,096."""
    return type(value) is int and 1 <= value <= 4096


def is_pair(value: Any) -> bool:
    """Return whether it is one side or two."""
    return is_side(value) or (isinstance(value, (list, tuple)) and len(value) == 2 and all(map(is_side, value)))


def are_bands(value: Any) -> bool:
    """Return whether it is None or a list of channel indices."""
    is_list = isinstance(value, (list, tuple)) and len(value) > 0
    return value is None or (is_list and all(type(each) is int and 0 <= each < 4096 for each in value))


SWITCH = (False, True)
BACKENDS = ('cv2', 'pillow')
RESIZE = dict(interpolation=RESIZINGS, backend=BACKENDS)
# The steps of a test pipeline in order: name of the setting, type of the transform, allowed values of its arguments.
STEPS = dict(
    read=('LoadImageFromFile', dict(imdecode_backend=BACKENDS, color_type=('color', 'grayscale'), to_float32=SWITCH)),
    bands=('vt.LoadBands', dict(bands=are_bands, channels_first=SWITCH)),
    clips=(
        'vt.LoadClips',
        dict(clip_length=is_side, frame_stride=is_side, num_clips=is_side, short_videos=('repeat', 'refuse')),
    ),
    resize_edge=('ResizeEdge', dict(scale=is_side, edge=('short', 'long', 'width', 'height'), **RESIZE)),
    resize=('Resize', dict(scale=is_pair, keep_ratio=SWITCH, **RESIZE)),
    resize_to_multiple=('ResizeToMultiple', dict(size_divisor=is_side, interpolation=(None, *RESIZINGS))),
    crop=('CenterCrop', dict(crop_size=is_pair)),
    efficientnet_crop=(
        'EfficientNetCenterCrop',
        dict(crop_size=is_side, efficientnet_style=SWITCH, crop_padding=(*range(129),), **RESIZE),
    ),
    crops=('vt.ThreeCrops', dict(crop_size=is_side)),
)
PACKS = ('PackInputs', 'PackSegInputs', 'vt.PackClips', 'PackClips')
MACHINE = ('decoder', 'backend_args', 'file_client_args')  # settings of this machine
LABELS = ('LoadAnnotations',)
OF_FRAMES = ('resize_edge', 'resize', 'crop', 'efficientnet_crop')


def describe_inputs(cfg: Config) -> dict[str, Any]:
    """Return the settings of a config's test pipeline, and ``shape`` for a test set in memory; or raise a UserError."""
    names = {kind.rpartition('.')[2]: name for name, (kind, _) in STEPS.items()}
    settings = {}
    for step in _flat(pipeline_of(cfg)):
        kind = str(step['type']).rpartition('.')[2]
        if kind in names and names[kind] not in settings:
            settings[names[kind]] = {key: value for key, value in step.items() if key not in ('type', *MACHINE)}
        elif kind not in {pack.rpartition('.')[2] for pack in PACKS} and kind not in LABELS:
            raise UserError(f'the test pipeline has the step {step["type"]}, which saved models do not support')
    if [*settings] != [name for name in STEPS if name in settings]:
        raise UserError(f'steps of the test pipeline are not in the order {", ".join(STEPS)}: they cannot be saved')
    if not settings.keys() & {'read', 'bands', 'clips'}:
        settings['shape'] = [*input_shape(cfg)]
    check_inputs(settings)
    return settings


def _flat(pipeline: Iterable[dict]) -> list[dict]:
    """Return the steps as one list, including those within ``vt.SameForAllFrames``."""
    steps = []
    for step in pipeline:
        of_frames = str(step['type']).endswith('SameForAllFrames')
        steps += _flat(step['transforms']) if of_frames else [step]
    return steps


def check_inputs(settings: Any) -> None:
    """Raise a UserError for an unknown step or argument, or a value that is not allowed."""
    if not isinstance(settings, dict):
        raise UserError('inputs is not a dict of settings')
    for name, given in settings.items():
        if name == 'shape':
            if not (isinstance(given, (list, tuple)) and len(given) in (3, 4) and all(map(is_side, given))):
                raise UserError(f'inputs.shape={printable(repr(given), 80)} is not a shape of an input')
        elif name not in STEPS or not isinstance(given, dict):
            there = ', '.join([*STEPS, 'shape'])
            raise UserError(f'inputs.{printable(name, 80)} is unknown: the settings of a saved model are {there}')
        else:
            for key, value in given.items():
                known = STEPS[name][1].get(key, ())
                allowed = known(value) if callable(known) else (type(value), value) in ((type(x), x) for x in known)
                if not allowed:
                    raise UserError(f'inputs.{name}.{printable(key, 80)}={printable(repr(value), 80)} is not allowed')


def make_pipeline(settings: dict[str, Any], scope: str) -> list[dict]:
    """Return the test pipeline of checked settings, in the form of a config."""
    steps = {
        name: dict(type=kind, **_as_tuples(settings[name])) for name, (kind, _) in STEPS.items() if name in settings
    }
    is_video = 'clips' in settings or len(settings.get('shape', ())) == 4
    if is_video:
        of_frames = [steps.pop(name) for name in OF_FRAMES if name in steps]
        crops = [steps.pop('crops')] if 'crops' in steps else []
        same = [dict(type='vt.SameForAllFrames', transforms=of_frames)] if of_frames else []
        return [*steps.values(), *same, *crops, dict(type='vt.PackClips')]
    return [*steps.values(), dict(type='PackSegInputs' if scope == 'mmseg' else 'PackInputs')]


def _as_tuples(given: dict[str, Any]) -> dict[str, Any]:
    """Convert lists to tuples, because MMPretrain and mmcv expect sizes as tuples."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}
