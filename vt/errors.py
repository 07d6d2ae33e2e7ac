"""User errors, apart from unexpected ones."""


class UserError(ValueError):
    """Something that the user can correct: a setting, a file, a command.

    Its message is one line that says what is wrong, where, and what to do. The command lines print that line alone;
    every other error keeps its traceback.
    """


class FileError(UserError, OSError):
    """A file that can't be read, written or fetched."""


class MissingFileError(FileError, FileNotFoundError):
    """A file or folder that is not there."""
