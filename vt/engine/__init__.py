"""What mmengine's runners lack for VT: checks before a run, CPU launch, one-line errors."""

from .hooks import NumClassesHook
from .optim_wrapper import CPUAmpOptimWrapper
from .overlay_hook import OverlayHook

__all__ = ['CPUAmpOptimWrapper', 'NumClassesHook', 'OverlayHook']
