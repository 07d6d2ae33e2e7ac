"""Variables of a config that a base has used already, so that setting them again in a child has no effect.

A config is Python: ``pipeline=train_pipeline`` takes the value that the variable has in that file. A child that sets
``train_pipeline`` anew changes the variable, not the ``train_dataloader`` that the base made of it.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from vt.errors import UserError


@dataclass
class ConfigFile:
    """What the text of a config says.

    Attributes:
        path: of it.
        bases: the files that it inherits.
        set: variables that it sets, and the expression.
        used: for each variable that it reads, of its own or of its base's, the variables that it sets by it.
    """

    path: Path
    bases: list[Path]
    set: dict[str, str]
    used: dict[str, set[str]]


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
        for name in sorted(file.set.keys() - readable):
            is_used = any(later.used.get(name, set()) - {name} for later in files[: index + 1])
            is_new = all(base.set.get(name) != file.set[name] for base in bases)
            inherited = [reader for reader in _readers(name, bases) if '_delete_' not in file.set.get(reader, '')]
            if inherited and is_new and not is_used:
                text = f'{file.path}: {name} is set, but {_list(inherited)} took the value that it has in a base'
                raise UserError(f'{text}: set {_list(inherited)} anew with {name}, too')
    for option in options:
        name = option.partition('.')[0]
        inherited = _readers(name, files)
        if name not in readable and name != 'data_root' and inherited:
            text = f'--cfg-options {option}: {_list(inherited)} took the value that {name} has in the config'
            raise UserError(f'{text}: set a key of {_list(inherited)} instead')


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


def _list(names: list[str]) -> str:
    return ', '.join(names[:3])


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
    file = ConfigFile(path, [], {}, {})
    for node in ast.parse(path.read_text(encoding='utf-8')).body:
        names = _targets(node)
        if '_base_' in names and isinstance(node, ast.Assign):
            texts = [part.value for part in ast.walk(node.value) if isinstance(part, ast.Constant)]
            file.bases += [_find(path, text) for text in texts if isinstance(text, str)]
            continue
        file.set |= dict.fromkeys(names, ast.unparse(node.value) if isinstance(node, ast.Assign) else '')
        for part in ast.walk(node):
            read = None
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                read = part.id
            elif isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == '_base_':
                read = part.attr
            if read:
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
    """The variables that a statement sets; those of a loop's or a condition's body, too."""
    found = {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    for part in ast.walk(node):  # a part of a variable: train_dataloader['dataset'] = ..., and .update(...)
        if isinstance(part, (ast.Subscript, ast.Attribute)) and isinstance(part.ctx, ast.Store):
            inner = part.value
            while isinstance(inner, (ast.Subscript, ast.Attribute)):
                inner = inner.value
            if isinstance(inner, ast.Name):
                found.add(inner.id)
    return found
