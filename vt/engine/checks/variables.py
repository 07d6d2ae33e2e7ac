"""Find variables of a config that have no effect, because a base has already used them.

A config is Python: ``pipeline=train_pipeline`` uses the value of the variable in that file. A child config that sets
``train_pipeline`` changes the variable, but not ``train_dataloader`` of the base.
"""

import ast
import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from vt.errors import UserError

# Names of settings in other frameworks, in command lines and in OpenMMLab before mmengine, and what to set here.
ELSEWHERE = {
    **dict.fromkeys(('lr', 'learning_rate'), 'optim_wrapper.optimizer.lr'),
    **dict.fromkeys(('epochs', 'max_epochs', 'num_epochs', 'total_epochs'), 'train_cfg.max_epochs'),
    **dict.fromkeys(('iters', 'max_iters', 'total_iters'), 'train_cfg.max_iters'),
    **dict.fromkeys(('batch_size', 'samples_per_gpu'), 'train_dataloader.batch_size'),
    **dict.fromkeys(('workers', 'num_workers', 'workers_per_gpu'), 'train_dataloader.num_workers'),
    **dict.fromkeys(('checkpoint', 'pretrained', 'weights'), 'load_from, or model.backbone.init_cfg'),
    **dict.fromkeys(('amp', 'fp16'), '--amp'),
    **dict.fromkeys(('optimizer', 'optimizer_config'), 'optim_wrapper'),
    **dict.fromkeys(('scheduler', 'lr_config', 'lr_scheduler'), 'param_scheduler'),
    'num_classes': 'model.head.num_classes, or model.decode_head.num_classes',
    'seed': 'randomness.seed',
    'hooks': 'custom_hooks',
    'evaluation': 'val_evaluator and train_cfg.val_interval',
    'checkpoint_config': 'default_hooks.checkpoint',
    'log_config': 'default_hooks.logger',
    'dist_params': 'env_cfg.dist_cfg',
}


OPTIONS = '--cfg-options'


@dataclass
class ConfigFile:
    """Variables in the source of a config, or of the command line."""

    path: Path
    bases: list[Path] = field(default_factory=list)  # files that it inherits
    assigned: dict[str, str] = field(default_factory=dict)  # variables that it sets, with their expressions
    used: dict[str, set[str]] = field(default_factory=dict)  # for each variable it reads, those that it sets with it


def check_variables(
    path: str | Path, readable: Iterable[str], options: Iterable[str] = (), contained: Iterable[str] = ()
) -> None:
    """Check that all variables of a config have an effect.

    Args:
        path: path of the config.
        readable: keys that a run reads, such as ``train_dataloader``; other variables only serve to set these.
        options: keys of ``--cfg-options``.
        contained: readable keys that other settings already contain.

    Raises:
        UserError: a variable is set that only a base has used, and the message names what to set instead; a name is
            usual elsewhere or similar to a setting; or an option begins with a name that the config does not have.
    """
    read, readable = {*readable} - {*contained}, {*readable}
    set_last = dict.fromkeys({option.partition('.')[0] for option in options} - {'data_root'}, OPTIONS)
    files = [ConfigFile(Path(OPTIONS), assigned=set_last), *_chain(Path(path), set())]  # before the files it inherits
    for index, file in enumerate(files):
        own, bases = files[: index + 1], files[index + 1 :]
        for name in sorted(file.assigned.keys() - read) if '.mim' not in file.path.parts else ():  # of a library
            is_used = any(each.used.get(name, set()) - {name} for each in own)
            is_same = any(base.assigned.get(name) == file.assigned[name] for base in bases)
            if is_used or (is_same and any(name in base.used for base in bases)):
                continue
            # A file that replaces the value of a reader does not merge it with that of the base.
            replaced = {reader for each in own for reader, text in each.assigned.items() if '_delete_' in text}
            if readers := ', '.join([reader for reader in _readers(name, bases) if reader not in replaced][:3]):
                text = f'{file.path}: setting {name} has no effect, because {readers} of a base already used it'
                raise UserError(f'{text}: set {readers}, too')
            is_unknown = index == 0 and not any(name in base.assigned for base in bases)
            near = difflib.get_close_matches(name, readable, n=1, cutoff=0.6 if is_unknown else 0.85)
            if name in ELSEWHERE and (index == 0 or file.bases):  # a config that a run saved has all names, and no base
                near = [ELSEWHERE[name]]
            if is_unknown or (near and index < 2 and name not in readable and not name.endswith('_pipeline')):
                hint = f'; did you mean {near[0]}?' if near else ''
                raise UserError(f"{file.path}: there is no setting '{name}'{hint}")


def own_words(path: str | Path, words: Iterable[str]) -> set[str]:
    """Return the words that are not only in files that a config inherits: those in its own text or in none of them."""
    first, *others = [file.path.read_text(encoding='utf-8') for file in _chain(Path(path), set())] or ['']
    return {word for word in words if word in first or not any(word in text for text in others)}


def _readers(name: str, files: list[ConfigFile]) -> list[str]:
    """Return the variables that the files set with a variable."""
    found: list[str] = []
    for file in files:
        found += sorted(file.used.get(name, set()) - {name, '', *found})
    return found


def _chain(path: Path, seen: set[Path]) -> Iterator[ConfigFile]:
    """Yield a config and all that it inherits, each once."""
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
    """Return the path of a base of a config, also of an installed library (``'mmseg::...'``)."""
    package, is_foreign, name = base.partition('::')
    if not is_foreign:
        return path.parent / base
    spec = find_spec(package) if package.isidentifier() else None
    return Path(spec.origin if spec and spec.origin else package).parent / '.mim/configs' / name


def _targets(node: ast.stmt) -> set[str]:
    """Return the variables that a statement sets, also in part (``train_dataloader['dataset'] = ...``) or in a loop."""
    stored = [part for part in ast.walk(node) if isinstance(getattr(part, 'ctx', None), ast.Store)]
    return {re.match(r'\w*', ast.unparse(part)).group() for part in stored} - {''}
