"""Find silent faults of images with other channels than 8-bit RGB, and the settings about channels in a config."""

from mmengine.config import Config

from vt.engine.config_parts import leaves, model_of, steps_in
from vt.errors import UserError

# Steps that assume values up to 255, without an error for others.
EIGHT_BIT = (
    *('AdjustGamma', 'AutoAugment', 'Brightness', 'CLAHE', 'ColorJitter', 'ColorTransform', 'Invert'),
    *('PhotoMetricDistortion', 'RandAugment', 'RandomGrayscale', 'Sharpness', 'Solarize', 'SolarizeAdd'),
)
TURNS = ('to_rgb', 'bgr_to_rgb', 'rgb_to_bgr')


def check_image_channels(cfg: Config) -> None:
    """Check settings that have a wrong effect on images of ``vt.LoadBands``.

    Raises:
        UserError: the preprocessor swaps channels, or a step of a pipeline assumes 8-bit values.
    """
    turn = next((name for name in TURNS if preprocessor_of(cfg).get(name)), None)
    for name in ('train_dataloader', 'val_dataloader', 'test_dataloader'):
        for dataset in leaves((cfg.get(name) or {}).get('dataset')):
            steps = [*steps_in(dataset.get('pipeline'))]
            kinds = [str(step.get('type')).split('.')[-1] for step in steps]
            if 'LoadBands' not in kinds:
                continue
            if turn:
                raise UserError(f"vt.LoadBands keeps a file's order of channels: set data_preprocessor.{turn}=False")
            if wrong := next((kind for kind in kinds if kind in EIGHT_BIT), None):
                raise UserError(f'{name}.dataset.pipeline: {wrong} needs 8-bit RGB images: remove it')


def image_channels(cfg: Config) -> int | None:
    """Return the number of input channels of a config's backbone; None if it is unknown."""
    backbone = model_of(cfg).get('backbone')
    while isinstance(backbone, dict) and isinstance(backbone.get('backbone'), dict):  # as in vt.VTBackbone
        backbone = backbone['backbone']
    return backbone.get('in_channels', 3) if isinstance(backbone, dict) else None


def preprocessor_of(cfg: Config) -> dict:
    """Return the config of the data preprocessor, which normalises images."""
    return model_of(cfg).get('data_preprocessor') or cfg.get('data_preprocessor') or {}
