"""Find variables of a config that nothing reads.

A config is Python: ``pipeline=train_pipeline`` uses the value of the variable in that file. A child config that sets
``train_pipeline`` changes the variable, but not ``train_dataloader`` of the base.
"""

import difflib
from collections.abc import Iterable
from pathlib import Path

from vt.errors import UserError

from .config_files import ConfigFile, config_files
from .short_names import hint_for

# What to set here, and its names in OpenMMLab before mmengine; those of settings with a short name are in its table.
SETTING_ALIASES = {
    'train_cfg': 'runner',
    'load_from and resume=True': 'resume_from',
    'model.data_preprocessor': 'data_preprocessor',
    'optim_wrapper': 'optimizer optimizer_config',
    'param_scheduler': 'scheduler lr_config lr_scheduler',
    'val_evaluator and train_cfg.val_interval': 'evaluation',
    'default_hooks.checkpoint': 'checkpoint_config',
    'custom_hooks': 'hooks',
    'env_cfg.dist_cfg': 'dist_params',
    'train_dataloader.dataset': 'dataset',
    'train_dataloader.dataset.data_root': 'data_root',
}


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
    files = [ConfigFile(Path('--cfg-options'), [Path(path)], last), *config_files(Path(path), set())]
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
            near += [short] if file.bases and (short := hint_for(name)) else []
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
