"""VT: Visual Transformers as parts of OpenMMLab. Importing it makes every part known under the scope ``vt``."""

__version__ = '0.1.0'

from . import registry
from ._libraries import import_on_demand

__all__ = ['datasets', 'engine', 'models', 'record_attention', 'registry']

__getattr__ = import_on_demand(
    __name__,
    datasets='vt.datasets',
    engine='vt.engine',
    models='vt.models',
    record_attention='vt.models:record_attention',
)
