"""What one line says about an error: the cause in a user's words, the part of the config, and what to change."""

import errno
import re
import traceback
from typing import Any

import torch
from mmengine.runner import BaseLoop, Runner

from .neighbours import describe_unknown_type, neighbours
from .place import Place, builder_of, find_innermost, find_place, read_config_of, was_raised_here
from .signatures import accepted_arguments

MAX_LENGTH = 900  # characters of a line
MAX_SETTINGS = 300  # of these, the settings of the part
CLEAR = (ValueError, OSError, RuntimeError, ArithmeticError, MemoryError)  # their texts mostly speak for themselves
FILE_ERRORS = {
    errno.ENOENT: 'there is no {}: put it there, or set its path (data_root for a data set) in the config',
    errno.EACCES: 'no permission for {}: change its rights, or name another place',
    errno.EPERM: 'no permission for {}: change its rights, or name another place',
    errno.EROFS: '{} lies on a file system that is read-only: name another place (--work-dir for what a run writes)',
    errno.ENOSPC: 'no space is left to write {}: free some, or name another place (--work-dir for what a run writes)',
    errno.EDQUOT: 'the quota leaves no space to write {}: free some, or name another place',
    errno.EFBIG: 'no space is left to write {}, by the limit on the size of files (ulimit -f)',
    errno.EEXIST: '{} is a file where a folder is needed: remove it, or name another folder',
    errno.ENOTDIR: 'on the way to {} is a file where a folder is needed: correct the path',
    errno.EISDIR: '{} is a folder where a file is needed: correct the path',
    errno.EMFILE: 'too many files are open: raise the limit (ulimit -n 65536), or lower num_workers',
    errno.ENOMEM: 'out of memory while reading or writing {}',
}
OUT_OF_MEMORY = re.compile(
    r"can't allocate memory|not enough memory|out of memory|Failed to allocate|ALLOC_FAILED|Unable to allocate"
)
ALLOCATED = re.compile(r'([Tt]r(ied|ying) to allocate|[Uu]nable to allocate|Failed to allocate) [\d.]+ ?\w*')
WORKER = re.compile(r'^Caught \w+ in (?:DataLoader worker|pin memory).*?\nOriginal Traceback', re.DOTALL)
WORKER_KILLED = re.compile(r'DataLoader worker \(pid.*?(is killed by signal: ([^.]+)|exited unexpectedly)')
PACKED = ('inputs', 'data_samples')  # what a model takes from its data
NO_BATCH = (
    'an epoch has no batch: train_dataloader.dataset holds fewer samples than train_dataloader.batch_size, and '
    'drop_last leaves an incomplete batch out'
)
SIZES_DIFFER = re.compile(r'stack expects each tensor to be equal size|resize storage that is not resizable')
WIDTHS_DIFFER = re.compile(r'mat1 and mat2 shapes cannot be multiplied \(\d+x(\d+) and (\d+)x\d+\)')
UNKNOWN_TYPE = re.compile(r'(\S+) is not in the (\S+)::(.+?) registry')
UNKNOWN_ARGUMENT = re.compile(r"got an unexpected keyword argument '(\w+)'")
# A line that names a setting by its whole path needs no other place.
NAMES_KEY = re.compile(rf'\b({"|".join(accepted_arguments(Runner)[0])}|speed)\.\w+')
DISK_FULL = re.compile(r'PytorchStreamWriter failed writing|file write failed')


def describe(error: BaseException) -> str:
    """One line that says what went wrong, and in which part of the config if it was at work.

    A misspelt type or argument names its nearest neighbours.
    """
    line = _elsewhere(error)
    if line is None:
        place = find_place(error)
        known = _known(error)
        line = known or _own_words(error, place)
        if place is not None and not line.startswith(place.path) and (known or not NAMES_KEY.search(line)):
            line = f'{place.path}: {line}'
    return line if len(line) <= MAX_LENGTH else f'{line[: MAX_LENGTH - 2]} …'


class SampleError(ValueError):
    """A sample of a data set can't be loaded; the message names its file and is complete."""


def _text(error: BaseException) -> str:
    """An error's message as one line; of one in a worker process its own last line alone."""
    text = str(error.args[0] if len(error.args) == 1 else error)
    if WORKER.match(text):
        lines = text.splitlines()
        last = max(number for number, line in enumerate(lines) if line.startswith('  ') or number == 0)
        text = re.sub(r'^[\w.]+: ', '', ' '.join(lines[last + 1 :]))
    return ' '.join(line.strip() for line in text.splitlines() if line.strip())


def _elsewhere(error: BaseException) -> str | None:
    """The line for an error whose cause lies in no part of the config: a file of a sample, another process."""
    message = _text(error)
    if isinstance(error, SampleError):
        return message
    if isinstance(error, KeyError) and error.args and error.args[0] in PACKED:
        return f"the data's samples have no {error.args[0]!r}: end their pipeline in PackInputs (mmseg: PackSegInputs)"
    if message.startswith('`epoch_length` must be a positive integer'):
        return NO_BATCH
    if SIZES_DIFFER.search(message):
        return 'the images of a batch differ in size: add a Resize or a crop to one size to the pipeline'
    killed = WORKER_KILLED.search(message)
    return _worker_killed(killed.group(2)) if killed else None


def _known(error: BaseException) -> str | None:
    """The line for an error that users meet often."""
    message = _text(error)
    if is_out_of_memory(error):
        return _out_of_memory(error)
    if isinstance(error, OSError) and error.errno in FILE_ERRORS and len(error.args) > 1:  # the system's, not ours
        if error.filename is not None:
            return FILE_ERRORS[error.errno].format(error.filename)
        if error.errno != errno.ENOENT:
            return FILE_ERRORS[error.errno].format('a file of this run')
    if DISK_FULL.search(message):
        return 'no space is left to write a checkpoint: free some, or name another place with --work-dir'
    return _known_by_text(error, message)


def _known_by_text(error: BaseException, message: str) -> str | None:
    widths = WIDTHS_DIFFER.search(message)
    if widths:
        return 'a layer got {} channels where it takes {}: compare in_channels of the head with the backbone'.format(
            *widths.groups()
        )
    if message.startswith('view size is not compatible'):
        return 'a layer needs maps that are contiguous: add --cfg-options speed.channels_last=False'
    unknown = UNKNOWN_TYPE.search(message)
    if unknown:
        return describe_unknown_type(*unknown.groups())
    argument = UNKNOWN_ARGUMENT.search(message)
    built = builder_of(error)
    if argument and built is not None:
        name = getattr(built, '__name__', str(built))
        hint = neighbours(argument.group(1), accepted_arguments(built)[0])
        return f"{name} has no argument '{argument.group(1)}'; {hint}"
    return None


def _own_words(error: BaseException, place: Place | None) -> str:
    """An error's own message, with its type and the settings of its part where it doesn't speak for itself."""
    message = _text(error)
    if isinstance(error, KeyError) and place is not None:
        setting = next((key for key, value in _settings(place.part).items() if value in error.args), None)
        if setting is not None:
            return f'{place.path}.{setting}={error.args[0]!r} names something, but there is no such thing'
    if not message:
        last = traceback.extract_tb(error.__traceback__)[-1:]
        message = f'`{last[0].line}`' if last and last[0].line else 'no message'
    clear = isinstance(error, CLEAR) and error.args
    line = message if clear else f'{type(error).__name__}: {message}'
    if place is None or NAMES_KEY.search(message) or (clear and was_raised_here(error)):
        return line
    if clear and any(re.search(rf'\b{re.escape(key)}\b', message) for key in _settings(place.part)):
        return line
    settings = ', '.join(f'{key}={value!r}' for key, value in _settings(place.part).items())
    settings = settings if len(settings) <= MAX_SETTINGS else f'{settings[: MAX_SETTINGS - 2]} …'
    kind = place.part.get('type') if isinstance(place.part, dict) else None
    return f'{place.path} ({" with ".join(filter(None, (str(kind) if kind else None, settings)))}): {line}'


def _settings(part: Any) -> dict[str, Any]:
    items = part.items() if isinstance(part, dict) else ()
    return {
        str(key): value
        for key, value in items
        if key != 'type' and not (isinstance(value, dict) and 'type' in value)  # that one is a part of its own
    }


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a device or the machine has no memory left."""
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or bool(OUT_OF_MEMORY.search(_text(error)))


def allocated(error: BaseException) -> str:
    """How much memory was asked for, in brackets, as far as the error says it."""
    size = ALLOCATED.search(_text(error))
    return f' ({size.group()})' if size else ''


def _out_of_memory(error: BaseException) -> str:
    loop = find_innermost(error, BaseLoop)
    split = next((split for split in ('val', 'test') if split in type(loop).__name__.lower()), 'train')
    cfg = read_config_of(error) or {}
    batch = (cfg.get(f'{split}_dataloader') or {}).get('batch_size')
    now = '' if batch is None else f' (now {batch})'
    same = '' if split != 'train' else ' with optim_wrapper.accumulative_counts raised to match'
    more = '' if split != 'train' else ', or with_cp=True for the backbone'
    return (
        f'out of memory{allocated(error)}: lower {split}_dataloader.batch_size{now}{same}, or the '
        f'size of the images or the model; or try --amp{more}'
    )


def _worker_killed(signal: str | None) -> str:
    if signal and 'Bus' in signal:
        return 'shared memory is too small for the worker processes: enlarge /dev/shm, or lower num_workers'
    how = f'was killed ({signal})' if signal else 'ended'
    return (
        f'a worker process of a data loader {how}, mostly because the memory was full: lower num_workers or batch_size '
        'of the data loader, or the size of the images'
    )
