"""A run is a model: its folder, or a checkpoint in it, stands for its config and its best weights."""

from os import PathLike
from pathlib import Path

from vt.checkpoints.reading import find_newest_checkpoint
from vt.errors import MissingFileError, UserError
from vt.logs import logger

SUFFIXES = ('.pth', '.pt', '.ckpt', '.bin', '.safetensors')  # of checkpoints
RECORD = 'training.json'
SAVED = 'config.json'  # in the folder of a saved model


def find_run(source: str | PathLike) -> tuple[Path, Path] | None:
    """Return config and checkpoint of a run, given its folder or a checkpoint in it; None for anything else.

    The config is the one that the run saved. Of a folder the checkpoint is the best one, else the newest.

    Raises:
        UserError: the folder has no checkpoint yet, or several configs or none are beside a checkpoint.
    """
    path = Path(source).expanduser()
    folder = path.parent if path.is_file() and path.suffix in SUFFIXES else path
    if not folder.is_dir() or (folder / SAVED).is_file():
        return None
    if folder != path:
        return _config_in(folder, path), path
    checkpoint = find_checkpoint(path)
    if checkpoint is None:
        if find_run_config(path) or (path / RECORD).is_file():
            raise MissingFileError(f'{path} has no checkpoint: the run has not saved one yet')
        return None
    config = _config_in(path, checkpoint)
    which = 'the best' if checkpoint.name.startswith('best_') else 'the newest'
    logger.info(f'{path}: {config.name} with {which} checkpoint, {checkpoint.name}')
    return config, checkpoint


def find_checkpoint(folder: str | PathLike) -> Path | None:
    """Return the best checkpoint in a folder, the newest of several, else that of the highest epoch; None if empty."""
    bests = sorted(Path(folder).glob('best_*.pth'), key=lambda best: best.stat().st_mtime)
    if bests:
        return bests[-1]
    newest, _ = find_newest_checkpoint(folder)
    return Path(newest.name) if newest else None


def find_run_config(source: str | PathLike) -> Path | None:
    """Return the config that a run saved in its folder, the newest of several; None for anything else.

    A saved model has none: whatever else is in its folder, which may be untrusted, no Python of it runs.
    """
    if Path(source, SAVED).exists():
        return None
    configs = sorted(Path(source).expanduser().glob('*.py'), key=lambda config: config.stat().st_mtime)
    return configs[-1] if configs else None


def _config_in(folder: Path, checkpoint: Path) -> Path:
    """Return the config of a checkpoint: the one of its name, or that of the run."""
    configs = [*folder.glob('*.py')]
    named = next((config for config in configs if config.stem == checkpoint.stem), None)
    if not configs:
        raise UserError(f'{checkpoint} has no config beside it: give the config too, MODEL CHECKPOINT')
    if named is None and len(configs) > 1 and not (folder / RECORD).is_file():
        names = ', '.join(sorted(config.name for config in configs))
        raise UserError(f'{checkpoint} has several configs beside it, {names}: give the config too, MODEL CHECKPOINT')
    return named or max(configs, key=lambda config: config.stat().st_mtime)


def is_weights(word: str) -> bool:
    """Return whether a word of a command names weights: a library, an address, or a file of them."""
    return word in ('timm', 'torchvision') or '://' in word or Path(word).suffix in SUFFIXES
