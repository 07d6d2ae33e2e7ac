"""The logger of VT, ``logging.getLogger('vt')``: it prints its lines; in a run they go to the log of the run."""

import logging


class _Printing(logging.Handler):
    """Handler that prints to what is standard output at the time."""

    def emit(self, record: logging.LogRecord) -> None:
        print(self.format(record))


logger = logging.getLogger('vt')


def print_lines() -> None:
    """Let the lines be printed, as before the first run."""
    logger.handlers = [_Printing()]
    logger.setLevel(logging.INFO)
    logger.propagate = False


def log_to(other: logging.Logger) -> None:
    """Let the lines go to the handlers of another logger, that of a run."""
    logger.handlers = [*other.handlers]


if not logger.handlers:  # else a program has set its own
    print_lines()
