"""How images and videos become inputs of a saved model: its test pipeline as few settings, and made of them again.

A folder names no transforms: VT knows the steps of a test pipeline, their order, and what each of them takes.
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from mmengine.config import Config

from vt.errors import UserError
from vt.inference.inputs import input_shape, pipeline_of
from vt.untrusted_text import printable

from .schema import LARGEST_SIDE, RESIZINGS


def is_side(value: Any) -> bool:
    """Whether it is a whole number from 1 to the largest side of an image."""
    return type(value) is int and 1 <= value <= LARGEST_SIDE


def is_pair(value: Any) -> bool:
    """Whether it is one side or two."""
    return is_side(value) or (isinstance(value, (list, tuple)) and len(value) == 2 and all(map(is_side, value)))


def are_bands(value: Any) -> bool:
    """Whether it is None or a list of numbers of channels."""
    is_list = isinstance(value, (list, tuple)) and len(value) > 0
    return value is None or (is_list and all(type(each) is int and 0 <= each < LARGEST_SIDE for each in value))


SWITCH = (False, True)
BACKENDS = ('cv2', 'pillow')
RESIZE = dict(interpolation=RESIZINGS, backend=BACKENDS)
# The steps of a test pipeline in their order: the setting, the type of its transform, and what its arguments may be.
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
MACHINE = ('decoder', 'backend_args', 'file_client_args')  # how files are reached here
LABELS = ('LoadAnnotations',)
OF_FRAMES = ('resize_edge', 'resize', 'crop', 'efficientnet_crop')
MOST_PIXELS = 2**26  # of the frames of an input


def describe_inputs(cfg: Config) -> dict[str, Any]:
    """The settings of a config's test pipeline, and ``shape`` where the test set is made in memory; or a UserError."""
    names = {kind.rpartition('.')[2]: name for name, (kind, _) in STEPS.items()}
    settings = {}
    for step in _flat(pipeline_of(cfg)):
        kind = str(step['type']).rpartition('.')[2]
        if kind in names and names[kind] not in settings:
            settings[names[kind]] = {key: value for key, value in step.items() if key not in ('type', *MACHINE)}
        elif kind not in {pack.rpartition('.')[2] for pack in PACKS} and kind not in LABELS:
            raise UserError(f'the test pipeline has the step {step["type"]}, which a saved model cannot hold')
    if [*settings] != [name for name in STEPS if name in settings]:
        raise UserError(f'the test pipeline has its steps in another order than {", ".join(STEPS)}: they are not saved')
    if not settings.keys() & {'read', 'bands', 'clips'}:
        settings['shape'] = [*input_shape(cfg)]
    check_inputs(settings)
    return settings


def _flat(pipeline: Iterable[dict]) -> list[dict]:
    """The steps; those that are the same for all frames of a clip stand among them."""
    steps = []
    for step in pipeline:
        of_frames = str(step['type']).endswith('SameForAllFrames')
        steps += _flat(step['transforms']) if of_frames else [step]
    return steps


def check_inputs(settings: Any) -> None:
    """Raise a UserError for a step or an argument that is not known, or a value that it does not take."""
    if not isinstance(settings, dict):
        raise UserError('inputs is no dict of settings')
    for name, given in settings.items():
        if name == 'shape':
            if not (isinstance(given, (list, tuple)) and len(given) in (3, 4) and all(map(is_side, given))):
                raise UserError(f'inputs.shape={printable(repr(given), 80)} is no shape of an input')
        elif name not in STEPS or not isinstance(given, dict):
            there = ', '.join([*STEPS, 'shape'])
            raise UserError(f'inputs.{printable(name, 80)} is no setting of a saved model: there are {there}')
        else:
            for key, value in given.items():
                known = STEPS[name][1].get(key, ())
                allowed = known(value) if callable(known) else (type(value), value) in ((type(x), x) for x in known)
                if not allowed:
                    raise UserError(f'inputs.{name}.{printable(key, 80)}={printable(repr(value), 80)} is not known')
    if _pixels(settings) > MOST_PIXELS:
        raise UserError(f'inputs says that an input has {_pixels(settings):,} pixels: {MOST_PIXELS:,} is the largest')


def _pixels(settings: dict[str, Any]) -> int:
    """The most that an input has, of all frames of a video."""
    clips = settings.get('clips', {})
    frames = clips.get('clip_length', 1) * clips.get('num_clips', 1) * (3 if 'crops' in settings else 1)
    steps = [settings[name] for name in ('crops', *reversed(OF_FRAMES)) if name in settings]
    side = next((step.get('crop_size') or step.get('scale') for step in steps), None) or 1
    return max(frames * int(np.max(side)) ** 2, math.prod(settings.get('shape', (1,))))


def make_pipeline(settings: dict[str, Any], scope: str) -> list[dict]:
    """The test pipeline of checked settings, as a config has it."""
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
    """MMPretrain and mmcv tell a size from a list by its type."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}
