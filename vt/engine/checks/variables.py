"""Variables of a config that a base has used already, so that setting them again in a child has no effect.

A config is Python: ``pipeline=train_pipeline`` takes the value that the variable has in that file. A child that sets
``train_pipeline`` anew changes the variable, not the ``train_dataloader`` that the base made of it.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from vt.errors import UserError


@dataclass
class ConfigFile:
    """What the text of a config says."""

    path: Path
    bases: list[Path] = field(default_factory=list)  # the files that it inherits
    assigned: dict[str, str] = field(default_factory=dict)  # variables that it sets, and the expression
    # For each variable that it reads, of its own or of its base's, the variables that it sets by it.
    used: dict[str, set[str]] = field(default_factory=dict)


def check_variables(path: str | Path, readable: Iterable[str], options: Iterable[str] = ()) -> None:
    """Find variables without effect.

    Args:
        path: of a config.
        readable: keys that a run reads, such as ``train_dataloader``; any other variable is an ingredient of these.
        options: keys of ``--cfg-options``.

    Raises:
        UserError: a variable that a base has used is set anew and not used; the line names what to set instead.
    """
    files = list(_chain(Path(path), set()))  # a file, then what it inherits
    readable = set(readable)
    for index, file in enumerate(files):
        bases = files[index + 1 :]
        if '.mim' in file.path.parts:  # of an installed library
            continue
        for name in sorted(file.assigned.keys() - readable):
            is_used = any(later.used.get(name, set()) - {name} for later in files[: index + 1])
            is_new = all(base.assigned.get(name) != file.assigned[name] for base in bases)
            inherited = [reader for reader in _readers(name, bases) if '_delete_' not in file.assigned.get(reader, '')]
            if inherited and is_new and not is_used:
                readers = ', '.join(inherited[:3])
                text = f'{file.path}: {name} is set, but {readers} took the value that it has in a base'
                raise UserError(f'{text}: set {readers} anew with {name}, too')
    for option in options:
        name = option.partition('.')[0]
        readers = ', '.join(_readers(name, files)[:3])
        if name not in readable and name != 'data_root' and readers:
            text = f'--cfg-options {option}: {readers} took the value that {name} has in the config'
            raise UserError(f'{text}: set a key of {readers} instead')


def own_words(path: str | Path, words: Iterable[str]) -> set[str]:
    """The words that a config itself or the command line brings, not one of the files that it inherits alone.

    Where it inherits a file of another package, those of its own text alone.
    """
    first, *others = [file.path.read_text(encoding='utf-8') for file in _chain(Path(path), set())] or ['']
    is_foreign = '::' in first
    return {word for word in words if word in first or not (is_foreign or any(word in text for text in others))}


def _readers(name: str, files: list[ConfigFile]) -> list[str]:
    """What the files make of a variable, in the end."""
    found: list[str] = []
    for file in files:
        found += sorted(file.used.get(name, set()) - {name, '', *found})
    return found


def _chain(path: Path, seen: set[Path]) -> Iterator[ConfigFile]:
    """A config and all that it inherits, each once."""
    if path.resolve() in seen or not path.is_file():
        return
    seen.add(path.resolve())
    file = _parse(path)
    yield file
    for base in file.bases:
        yield from _chain(base, seen)


def _parse(path: Path) -> ConfigFile:
    file = ConfigFile(path)
    for node in ast.parse(path.read_text(encoding='utf-8')).body:
        names = _targets(node)
        if '_base_' in names and isinstance(node, ast.Assign):
            texts = [part.value for part in ast.walk(node.value) if isinstance(part, ast.Constant)]
            file.bases += [_find(path, text) for text in texts if isinstance(text, str)]
            continue
        file.assigned |= dict.fromkeys(names, ast.unparse(node.value) if isinstance(node, ast.Assign) else '')
        for part in ast.walk(node):
            match part:
                case ast.Name(id=read, ctx=ast.Load()) | ast.Attribute(attr=read, value=ast.Name(id='_base_')):
                    file.used.setdefault(read, set()).update(names or {''})
    return file


def _find(path: Path, base: str) -> Path:
    """A file that a config inherits, of an installed library too (``'mmseg::...'``)."""
    package, is_foreign, name = base.partition('::')
    if not is_foreign:
        return path.parent / base
    spec = find_spec(package) if package.isidentifier() else None
    return Path(spec.origin if spec and spec.origin else package).parent / '.mim/configs' / name


def _targets(node: ast.stmt) -> set[str]:
    """The variables that a statement sets, or a part of, as train_dataloader['dataset'] = ...; those of a loop, too."""
    stored = [part for part in ast.walk(node) if isinstance(getattr(part, 'ctx', None), ast.Store)]
    return {re.match(r'\w*', ast.unparse(part)).group() for part in stored} - {''}
