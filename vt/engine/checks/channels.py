"""Whether the images, the pipelines, the normalisation and the backbone of a config have one number of channels."""

from collections.abc import Iterator

from mmengine.config import Config

from vt.engine.config_files import leaves, steps_in
from vt.errors import UserError

# Steps that take three channels, or values of eight bits.
COLOUR_STEPS = (
    *('AutoAugment', 'RandAugment', 'ColorJitter', 'Lighting', 'RandomGrayscale', 'RandomErasing', 'GaussianBlur'),
    *('AutoContrast', 'Invert', 'Equalize', 'Solarize', 'SolarizeAdd', 'Posterize', 'Brightness', 'Contrast'),
    *('ColorTransform', 'Sharpness', 'Albumentations', 'Albu', 'PhotoMetricDistortion', 'CLAHE', 'RGB2Gray'),
    *('AdjustGamma', 'NumpyToPIL', 'ToPIL'),
)
TURNS = ('to_rgb', 'bgr_to_rgb', 'rgb_to_bgr')


def check_image_channels(cfg: Config) -> None:
    """Compare ``in_channels`` of the backbone with the mean and deviation, and pipelines with ``vt.LoadBands``.

    Raises:
        UserError: they differ; a step of a pipeline takes colours of eight bits alone; an order of channels is turned
            that there is not.
    """
    number = image_channels(cfg)
    if number is None:
        return
    preprocessor = preprocessor_of(cfg)
    numbers = {name: len(preprocessor.get(name) or ()) for name in ('mean', 'std')}
    for name, count in numbers.items():
        if count not in (0, 1, number):
            found = f'the backbone has in_channels={number}, data_preprocessor.{name} has {count} numbers'
            raise UserError(f'{found}: give one a channel; tools/check_dataset.py prints them')
    if str(preprocessor.get('type')).endswith('SegDataPreProcessor') and max(numbers.values()) not in (0, 1, 3):
        advice = "take type='vt.SegBandsPreProcessor'"
        raise UserError(f'data_preprocessor: SegDataPreProcessor takes one channel or three, not {number}: {advice}')
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
            raise UserError(
                f'{path}: LoadBands takes {len(load["bands"])} bands, the backbone has in_channels={number}'
            )
        for step in pipeline:
            _check_step(step, path, number)


def image_channels(cfg: Config) -> int | None:
    """How many channels a config's backbone takes; None where it is not known."""
    model = cfg.get('model') or {}
    backbone = (model.get('module') or model).get('backbone')
    while isinstance(backbone, dict) and isinstance(backbone.get('backbone'), dict):  # vt.VTBackbone has one
        backbone = backbone['backbone']
    return backbone.get('in_channels', 3) if isinstance(backbone, dict) else None


def reads_bands(cfg: Config, loaders: tuple[str, ...] = ('test_dataloader',)) -> bool:
    """Whether images are loaded by ``vt.LoadBands``."""
    return any(_kind(step) == 'LoadBands' for _, pipeline in _pipelines(cfg, loaders) for step in pipeline)


def preprocessor_of(cfg: Config) -> dict:
    """The settings of a config's normalisation."""
    model = cfg.get('model') or {}
    return (model.get('module') or model).get('data_preprocessor') or cfg.get('data_preprocessor') or {}


def _check_step(step: dict, path: str, number: int) -> None:
    reason = None
    if _kind(step) in COLOUR_STEPS:
        reason = 'takes colours of eight bits alone'
    elif step.get('backend') == 'pillow':
        reason = "has backend='pillow', which takes eight bits alone: leave it out"
    elif step.get('interpolation') == 'area' and number > 4:
        reason = f"has interpolation='area', which takes four channels at most, not {number}: take 'bilinear'"
    if reason:
        more = '' if ':' in reason else f'; images of vt.LoadBands have {number} of any type: leave it out'
        raise UserError(f'{path}: {step["type"]} {reason}{more}')


def _pipelines(
    cfg: Config, loaders: tuple[str, ...] = ('train_dataloader', 'val_dataloader', 'test_dataloader')
) -> Iterator[tuple[str, list[dict]]]:
    """Paths of the pipelines of a config, and their steps, those that stand inside others too."""
    for name in loaders:
        for dataset in leaves((cfg.get(name) or {}).get('dataset')):
            yield f'{name}.dataset.pipeline', [*steps_in(dataset.get('pipeline'))]


def _kind(step: dict) -> str:
    kind = step.get('type')
    return kind.split('.')[-1].split('/')[-1] if isinstance(kind, str) else getattr(kind, '__name__', '')
