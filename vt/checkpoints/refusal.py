"""Why a file was not read, in one line."""

import re

# What the reader says; what it means; whether the file could be read if it were trusted.
REASONS = (
    (r'must be imported to load', 'it holds distributed or nested tensors', False),
    (r'GLOBAL (\S+)', r'it asks for \1, which no weights need and which may run code', True),
    (r'call reduce for unrecognized function (.+)', r'it calls \1, which no weights need and which may run code', True),
    (r'TorchScript archive', 'it is a TorchScript archive, a program rather than weights', False),
    (r'legacy \.tar format', 'it is a tar archive of PyTorch 0.1, which is read by running what it asks for', True),
    (r'^(an array of .+|getattr\(.+)', r'it asks for \1, which no weights need', True),
    (r'Can only (\w+)', 'it changes an object that no weights need, which may run code', True),
    (r'Unsupported operand', 'it is no checkpoint, or of a pickle protocol that only trusted files may have', True),
    (r'central directory|not a ZIP archive', 'it is cut off: the end of its archive is missing', False),
    (r'invalid load key|Invalid magic number|HeaderTooLarge|InvalidHeader', 'it is no checkpoint', False),
    (r'Ran out of input|unexpected EOF|IncompleteBuffer|HeaderTooSmall', 'it is cut off', False),
    (r'maximum recursion depth', 'it is nested too deeply', False),
)


def explain(error: Exception) -> str:
    """What an error of a reader says of the file, in a few words."""
    return _look_up(error)[0]


def may_be_trusted(error: Exception) -> bool:
    """Whether the file could be read by running what it asks for."""
    return _look_up(error)[1]


def _look_up(error: Exception) -> tuple[str, bool]:
    message = str(error)
    for said, meant, trustable in REASONS:
        found = re.search(said, message)
        if found:
            return found.expand(meant), trustable
    if isinstance(error, EOFError):
        return 'it is cut off', False
    if type(error) is ValueError:  # ours
        return message.partition('\n')[0], False
    inner = re.search(r'WeightsUnpickler error: (.+)', message)
    first = (inner.group(1) if inner else message).strip().partition('\n')[0]
    return f'it is no checkpoint, or damaged ({type(error).__name__}: {first})', False
