"""Keep messages from the console and the log file of a run."""

from collections.abc import Iterator
from contextlib import contextmanager

from mmengine.logging import MMLogger


@contextmanager
def quiet(level: int) -> Iterator[None]:
    """Suppress log messages below a level of :mod:`logging`."""
    logger = MMLogger.get_current_instance()
    before = logger.level
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.setLevel(before)
