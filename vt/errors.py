"""Errors that a user can correct; others are unexpected."""


class UserError(ValueError):
    """Error that the user can correct: a setting, a file, a command.

    The message is one line that says what is wrong, where, and what to do. The command-line tools print only this
    line; other errors show a traceback.
    """


class DamagedError(UserError):
    """Untrusted file that is damaged or cannot be parsed; ``__cause__`` is the original error."""


class FileError(UserError, OSError):
    """File that cannot be read, written or downloaded."""


class MissingFileError(FileError, FileNotFoundError):
    """File or folder that does not exist."""
