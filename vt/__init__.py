"""VT: Visual Transformers for OpenMMLab. Importing it registers every part in the scope ``vt``.

``vt.VTResNet`` in a config is ``vt.VTResNet`` in Python. Modules are imported at the first access to a name.
"""

from typing import TYPE_CHECKING

from . import registry
from ._libraries import import_on_demand

__version__ = '0.3.0'


__all__ = ['TrainedRun', 'apis', 'datasets', 'models', 'open_run', 'record_attention', 'registry', 'train', 'video']

if TYPE_CHECKING:
    from . import apis, datasets, models, video
    from .cli.calls import TrainedRun, open_run, train
    from .datasets import *  # noqa: F403
    from .models import *  # noqa: F403
    from .models import record_attention
    from .video import *  # noqa: F403
else:
    __getattr__, __dir__ = import_on_demand(__name__, __file__)
