"""VT: Visual Transformers as parts of OpenMMLab. Importing it makes every part known under the scope ``vt``.

What a config names ``vt.VTResNet`` is ``vt.VTResNet`` in Python too; it is imported when it is first asked for.
"""

from typing import TYPE_CHECKING

from . import registry
from ._libraries import import_on_demand
from ._public_names import DATASETS, MODELS, VIDEO

__version__ = '0.1.0'


__all__ = ['apis', 'datasets', 'engine', 'models', 'record_attention', 'registry', 'video']

if TYPE_CHECKING:
    from . import apis, datasets, engine, models, video
    from .datasets import *  # noqa: F403
    from .models import *  # noqa: F403
    from .models import record_attention
    from .video import *  # noqa: F403
else:
    __getattr__, __dir__ = import_on_demand(
        __name__,
        **{room: f'vt.{room}' for room in ('apis', 'datasets', 'engine', 'models', 'video')},
        **{name: f'vt.models:{name}' for name in MODELS},
        **{name: f'vt.datasets:{name}' for name in DATASETS},
        **{name: f'vt.video:{name}' for name in VIDEO},
    )
