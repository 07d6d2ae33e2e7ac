"""Find variables of a config that nothing reads.

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

# What to set here, and its names in other frameworks, in command lines and in OpenMMLab before mmengine.
ELSEWHERE = {
    'optim_wrapper.optimizer.lr': 'lr learning_rate',
    'train_cfg.max_epochs': 'epochs max_epochs num_epochs total_epochs',
    'train_cfg.max_iters': 'iters max_iters total_iters',
    'train_dataloader.batch_size': 'batch_size samples_per_gpu',
    'train_dataloader.num_workers': 'workers num_workers workers_per_gpu',
    'load_from, or model.backbone.init_cfg': 'checkpoint pretrained weights',
    'model.head.num_classes, or model.decode_head.num_classes': 'num_classes',
    'optim_wrapper': 'optimizer optimizer_config',
    'param_scheduler': 'scheduler lr_config lr_scheduler',
    'val_evaluator and train_cfg.val_interval': 'evaluation',
    'default_hooks.checkpoint': 'checkpoint_config',
    'default_hooks.logger': 'log_config',
    'custom_hooks': 'hooks',
    'randomness.seed': 'seed',
    'env_cfg.dist_cfg': 'dist_params',
    '--amp': 'amp fp16',
}


@dataclass
class ConfigFile:
    """Variables in the source of a config, or of the command line."""

    path: Path
    bases: list[Path] = field(default_factory=list)  # files that it inherits
    assigned: set[str] = field(default_factory=set)  # variables that it sets
    used: dict[str, set[str]] = field(default_factory=dict)  # for each variable it reads, those that it sets with it


def check_variables(path: str | Path, settings: Iterable[str], options: Iterable[str] = ()) -> None:
    """Check that each variable is a setting, or that its file or one that inherits it reads it.

    A file without a base may be the record of a run, which has all names: only names similar to a setting are wrong.

    Args:
        path: path of the config.
        settings: keys that a run reads, such as ``train_dataloader``.
        options: keys of ``--cfg-options``; nothing reads a variable after them.

    Raises:
        UserError: nothing reads a variable; the message says which variables of a base already used it, or which
            setting has a similar name.
    """
    settings = {*settings}
    options = {option.partition('.')[0] for option in options} - {'data_root'}
    files = [ConfigFile(Path('--cfg-options'), [Path(path)], options), *_chain(Path(path), set())]
    for index, file in enumerate(files):
        own, others = files[: index + 1], files[index + 1 :]
        if '.mim' in file.path.parts or (index > 1 and not file.bases):  # of a library, or for any config
            continue
        for name in sorted(file.assigned.difference(settings, *(each.used for each in own))):
            if file.bases and (readers := sorted({reader for other in others for reader in other.used.get(name, ())})):
                text = f'{file.path}: setting {name} has no effect, because {readers[0]} of a base already used it'
                raise UserError(f'{text}: set {readers[0]}, too')
            near = [setting for setting, names in ELSEWHERE.items() if file.bases and name in names.split()]
            near += difflib.get_close_matches(name, settings, n=1, cutoff=0.6 if file.bases else 0.85)
            if file.bases or (near and not name.endswith('_pipeline')):
                hint = f'; did you mean {near[0]}?' if near else ', and nothing reads it'
                raise UserError(f"{file.path}: there is no setting '{name}'{hint}")


def own_words(path: str | Path, words: Iterable[str]) -> set[str]:
    """Return the words that are not only in files that a config inherits: those in its own text or in none of them."""
    first, *others = [file.path.read_text(encoding='utf-8') for file in _chain(Path(path), set())] or ['']
    return {word for word in words if word in first or not any(word in text for text in others)}


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
        file.assigned |= {name for name in names if not name.startswith('_')}
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
    """Return the variables that a statement sets, also in part (``train_dataloader['dataset'] = ...``) or in a loop."""
    stored = [part for part in ast.walk(node) if isinstance(getattr(part, 'ctx', None), ast.Store)]
    return {re.match(r'\w*', ast.unparse(part)).group() for part in stored} - {''}
