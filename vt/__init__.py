"""VT: Visual Transformers as parts of OpenMMLab. Importing it registers every part under the scope ``vt``."""

__version__ = '0.1.0'

# _libraries comes first: it keeps the libraries' greetings out of ours.
from . import _libraries, datasets, engine, models
from .models import record_attention

__all__ = ['_libraries', 'datasets', 'engine', 'models', 'record_attention']
