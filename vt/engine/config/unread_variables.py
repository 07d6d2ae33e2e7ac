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
SETTING_ALIASES = {
    'optim_wrapper.optimizer.lr': 'lr learning_rate',
    'train_cfg.max_epochs': 'epoch epochs max_epoch max_epochs num_epochs total_epochs',
    'train_cfg.max_iters': 'iters max_iters total_iters',
    'train_cfg': 'runner',
    'train_dataloader': 'data',
    'train_dataloader.batch_size': 'batch_size samples_per_gpu',
    'train_dataloader.dataset': 'dataset',
    'train_dataloader.dataset.data_root': 'data_root',
    'train_dataloader.num_workers': 'workers num_workers workers_per_gpu',
    'load_from, or model.backbone.init_cfg': 'checkpoint pretrained weights',
    'model.head.num_classes, or model.decode_head.num_classes': 'num_classes',
    'load_from and resume=True': 'resume_from',
    'model.data_preprocessor': 'data_preprocessor',
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
    assigned: dict[str, str] = field(default_factory=dict)  # variables that it sets, with their statements
    used: dict[str, set[str]] = field(default_factory=dict)  # for each variable it reads, those that it sets with it


def check_variables(path: str | Path, settings: Iterable[str], options: Iterable[str] = ()) -> None:
    """Check that no variable has the name of a setting that it is not, or sets what a base has already used.

    Names that resemble no setting are notes, or keys of a user's own parts. A file without a base may be the record of
    a run, which has all names.

    Args:
        path: path of the config.
        settings: keys that a run reads, such as ``train_dataloader``.
        options: keys of ``--cfg-options``, which must all be settings; nothing reads a variable after them.

    Raises:
        UserError: nothing reads a variable; the message says which variables of a base already used it, or which
            setting has a similar name.
    """
    settings = {*settings}
    last = dict.fromkeys((option.partition('.')[0] for option in options), '--cfg-options')
    files = [ConfigFile(Path('--cfg-options'), [Path(path)], last), *_chain(Path(path), set())]
    for index, file in enumerate(files):
        own, others = files[: index + 1], files[index + 1 :]
        if '.mim' in file.path.parts or (index > 1 and not file.bases):  # of a library, or for any config
            continue
        unread = file.assigned.keys() - settings.union(*(each.used for each in own))
        for name in sorted(name for name in unread if index == 0 or not name.startswith('_')):
            readers = {reader for other in others for reader in other.used.get(name, ())} - {'_'}
            if readers and file.bases:
                if name not in _changed(file, others):
                    continue
                shown = ', '.join(sorted(readers)[:3])
                advice = f'set {shown} instead' if index == 0 else f'set {shown} with {name} again, too'
                text = f'{file.path}: setting {name} has no effect, because {shown} of a base already used it'
                raise UserError(f'{text}: {advice}')
            near = [setting for setting, names in SETTING_ALIASES.items() if file.bases and name in names.split()]
            cutoff = 0.6 if index == 0 else 0.7 if file.bases else 0.85
            if index == 0 or '_pipeline' not in name:
                near += difflib.get_close_matches(name, settings, n=1, cutoff=cutoff)
            if index == 0 or near:
                hint = f'; did you mean {near[0]}?' if near else ', and nothing reads it'
                raise UserError(f"{file.path}: there is no setting '{name}'{hint}")


def _changed(file: ConfigFile, bases: list[ConfigFile]) -> set[str]:
    """Return the variables that no base sets by the same statement, and those that the file sets with them."""
    texts = {(name, text) for base in bases for name, text in base.assigned.items()}
    changed = {name for name, text in file.assigned.items() if (name, text) not in texts}
    for _ in file.assigned:
        changed = changed.union(*(file.used.get(name, ()) for name in changed))
    return changed


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
    return {re.findall(r'\w*', ast.unparse(part))[0] for part in stored if part not in counting} - {''}
