"""Errors that a person makes and can mend, told from those that nobody foresaw."""


class UserError(ValueError):
    """Something that a person can mend: a setting, a file, a command.

    Its message is one line that says what is wrong, where, and what to do. The command lines print that line alone;
    every other error keeps its traceback.
    """


class MissingFileError(UserError, FileNotFoundError):
    """A file or folder that is not there."""
