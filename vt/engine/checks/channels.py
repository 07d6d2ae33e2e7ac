"""Check that images, pipelines, normalisation and backbone of a config have the same number of channels."""

from collections.abc import Iterator

from mmengine.config import Config

from vt.engine.config_parts import leaves, model_of, steps_in
from vt.errors import UserError

# Steps that need three channels or 8-bit values.
COLOUR_STEPS = (
    *('AutoAugment', 'RandAugment', 'ColorJitter', 'Lighting', 'RandomGrayscale', 'RandomErasing', 'GaussianBlur'),
    *('AutoContrast', 'Invert', 'Equalize', 'Solarize', 'SolarizeAdd', 'Posterize', 'Brightness', 'Contrast'),
    *('ColorTransform', 'Sharpness', 'Albumentations', 'Albu', 'PhotoMetricDistortion', 'CLAHE', 'RGB2Gray'),
    *('AdjustGamma', 'NumpyToPIL', 'ToPIL'),
)
TURNS = ('to_rgb', 'bgr_to_rgb', 'rgb_to_bgr')


def check_image_channels(cfg: Config) -> None:
    """Compare ``in_channels`` of the backbone with ``mean`` and ``std``, and check pipelines with ``vt.LoadBands``.

    Raises:
        UserError: numbers of channels differ, a step of a pipeline needs 8-bit RGB images, or the preprocessor swaps
            channels of images that are not RGB.
    """
    number = image_channels(cfg)
    if number is None:
        return
    preprocessor = preprocessor_of(cfg)
    numbers = {name: len(preprocessor.get(name) or ()) for name in ('mean', 'std')}
    for name, count in numbers.items():
        if count not in (0, 1, number):
            found = f'the backbone has in_channels={number}, but data_preprocessor.{name} has {count} numbers'
            raise UserError(f'{found}: set one number per channel; tools/check_dataset.py prints them')
    if str(preprocessor.get('type')).endswith('SegDataPreProcessor') and max(numbers.values()) not in (0, 1, 3):
        advice = "set type='vt.SegBandsPreProcessor'"
        raise UserError(f'data_preprocessor: SegDataPreProcessor takes 1 or 3 channels, not {number}: {advice}')
    turn = next((name for name in TURNS if preprocessor.get(name)), None)
    if turn and number != 3:
        raise UserError(f'data_preprocessor.{turn}=True has no effect on {number} channels: set it to False')
    for path, pipeline in _pipelines(cfg):
        load = next((step for step in pipeline if _kind(step) == 'LoadBands'), None)
        if load is None:
            continue
        if turn:
            raise UserError(f"vt.LoadBands keeps a file's order of channels: set data_preprocessor.{turn}=False")
        if load.get('bands') and len(load['bands']) != number:
            count = len(load['bands'])
            raise UserError(
                f'{path}: LoadBands reads {count} bands, but the backbone has in_channels={number}: set one of them to '
                'the other'
            )
        for step in pipeline:
            _check_step(step, path, number)


def image_channels(cfg: Config) -> int | None:
    """Return the number of input channels of a config's backbone; None if it is unknown."""
    backbone = model_of(cfg).get('backbone')
    while isinstance(backbone, dict) and isinstance(backbone.get('backbone'), dict):  # as in vt.VTBackbone
        backbone = backbone['backbone']
    return backbone.get('in_channels', 3) if isinstance(backbone, dict) else None


def preprocessor_of(cfg: Config) -> dict:
    """Return the config of the data preprocessor, which normalises images."""
    return model_of(cfg).get('data_preprocessor') or cfg.get('data_preprocessor') or {}


def _check_step(step: dict, path: str, number: int) -> None:
    reason = None
    if _kind(step) in COLOUR_STEPS:
        reason = f'needs 8-bit RGB images, but those of vt.LoadBands have {number} channels of any type: remove it'
    elif step.get('backend') == 'pillow':
        reason = "has backend='pillow', which needs 8-bit images: remove backend"
    elif step.get('interpolation') == 'area' and number > 4:
        reason = f"has interpolation='area', which takes at most 4 channels, not {number}: use 'bilinear'"
    if reason:
        raise UserError(f'{path}: {step["type"]} {reason}')


def _pipelines(cfg: Config) -> Iterator[tuple[str, list[dict]]]:
    """Yield path and steps of each pipeline of a config, including nested steps."""
    for name in ('train_dataloader', 'val_dataloader', 'test_dataloader'):
        for dataset in leaves((cfg.get(name) or {}).get('dataset')):
            yield f'{name}.dataset.pipeline', [*steps_in(dataset.get('pipeline'))]


def _kind(step: dict) -> str:
    kind = step.get('type')
    return kind.split('.')[-1].split('/')[-1] if isinstance(kind, str) else getattr(kind, '__name__', '')
