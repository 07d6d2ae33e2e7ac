"""A runner of a user, by mmengine's alone."""

from mmengine.registry import RUNNERS
from mmengine.runner import Runner


@RUNNERS.register_module()
class PlainRunner(Runner):
    """It saves as mmengine does."""
