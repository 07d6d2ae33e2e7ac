"""Keep messages of a run from the console, which shows those that a person needs; the log file has all of them."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from mmengine.logging import MMLogger


def consoles_of(logger: MMLogger) -> list[logging.Handler]:
    """Return the handlers of a logger that print; none if it prints its messages of level DEBUG."""
    handlers = [handler for handler in logger.handlers if type(handler) is logging.StreamHandler]  # no file's
    return [handler for handler in handlers if handler.level > logging.DEBUG]


@contextmanager
def unprinted() -> Iterator[None]:
    """Write messages below the level ERROR to the log file only.

    mmengine does not print a warning again later, either.
    """
    consoles = consoles_of(MMLogger.get_current_instance())
    for console in consoles:
        console.addFilter(_is_error)
    try:
        yield
    finally:
        for console in consoles:
            console.removeFilter(_is_error)


def _is_error(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.ERROR


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
