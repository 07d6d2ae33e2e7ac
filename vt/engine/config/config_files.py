"""Read the files of a config as text: the variables of each, and the files that it inherits. Nothing is run."""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path


@dataclass
class ConfigFile:
    """Variables in the source of a config, or of the command line."""

    path: Path
    bases: list[Path] = field(default_factory=list)  # files that it inherits
    assigned: dict[str, str] = field(default_factory=dict)  # variables that it sets, with their statements
    used: dict[str, set[str]] = field(default_factory=dict)  # for each variable it reads, those that it sets with it


def variables_in(path: str | Path) -> set[str]:
    """Return the names that a config and those that it inherits read themselves: variables, not settings."""
    return {name for file in config_files(Path(path), set()) for name in file.used}


def own_words(path: str | Path, words: Iterable[str]) -> set[str]:
    """Return the words that are not only in files that a config inherits: those in its own text or in none of them."""
    first, *others = [file.path.read_text(encoding='utf-8') for file in config_files(Path(path), set())] or ['']
    return {word for word in words if word in first or not any(word in text for text in others)}


def config_files(path: Path, seen: set[Path]) -> Iterator[ConfigFile]:
    """Yield a config and all that it inherits, each once."""
    if path.resolve() in seen or not path.is_file():
        return
    seen.add(path.resolve())
    file = _parse(path)
    yield file
    for base in file.bases:
        yield from config_files(base, seen)


def _parse(path: Path) -> ConfigFile:
    file = ConfigFile(path)
    for node in ast.parse(path.read_text(encoding='utf-8')).body:
        names = _targets(node)
        if '_base_' in names and isinstance(node, ast.Assign):
            texts = [part.value for part in ast.walk(node.value) if isinstance(part, ast.Constant)]
            file.bases += [_find(path, text) for text in texts if isinstance(text, str)]
            continue
        for name in names:
            file.assigned[name] = file.assigned.get(name, '') + ast.unparse(node)
        for part in ast.walk(node):
            match part:
                case ast.Name(id=read, ctx=ast.Load()) | ast.Attribute(attr=read, value=ast.Name(id='_base_')):
                    if names != {read} or not isinstance(node, (ast.Assign, ast.AugAssign)):  # not only a new value
                        file.used.setdefault(read, set()).update(names - {read})
    return file


def _find(path: Path, base: str) -> Path:
    """Return the path of a base of a config, also of an installed library (``'mmseg::...'``)."""
    package, is_foreign, name = base.partition('::')
    if not is_foreign:
        return path.parent / base
    spec = find_spec(package) if package.isidentifier() else None
    return Path(spec.origin if spec and spec.origin else package).parent / '.mim/configs' / name


def _targets(node: ast.stmt) -> set[str]:
    """Return the variables that a statement sets, also in part (``train_dataloader['dataset'] = ...``).

    Those that only count the turns of a loop are left out.
    """
    loops = [part.target for part in ast.walk(node) if isinstance(part, (ast.comprehension, ast.For))]
    counting = {part for target in loops for part in ast.walk(target)}
    stored = [part for part in ast.walk(node) if isinstance(getattr(part, 'ctx', None), ast.Store)]
    return {re.split(r'\W', ast.unparse(part))[0] for part in stored if part not in counting} - {''}
