"""The Python API: models by name or from folders, predictions, tokens."""

from typing import TYPE_CHECKING

from vt._libraries import import_on_demand

__all__ = ['ClassificationInferencer', 'SegmentationInferencer', 'Tokens', 'VideoInferencer', 'extract_tokens']
__all__ += ['find_config', 'get_model', 'inferencer_of', 'list_models', 'register_models', 'save_model']

if TYPE_CHECKING:
    from vt.serialization.model_folder import save_model

    from .inferencers import ClassificationInferencer, VideoInferencer, inferencer_of
    from .model_zoo import find_config, get_model, list_models, register_models
    from .segmentation import SegmentationInferencer
    from .tokens import Tokens, extract_tokens
else:
    __getattr__, __dir__ = import_on_demand(__name__, __file__)
