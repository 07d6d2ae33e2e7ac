"""The commands in Python: ``vt.train('swin-tiny', data='photos', epochs=30)`` does what the command line does."""

import argparse
from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from mmengine.model import BaseModel

from vt.apis.model_zoo import get_model
from vt.checkpoints.loading import weights_only
from vt.checkpoints.run_folders import RECORD, find_run
from vt.commands import export as exporting
from vt.commands import predict as predicting
from vt.commands import test as testing
from vt.commands import train as training
from vt.errors import MissingFileError, UserError
from vt.files import read_json

from .commands import COMMANDS
from .parser import CommandParser
from .words import read_words

Paths = str | PathLike | Sequence[str | PathLike]


class TrainedRun:
    """A finished run, which is a model: its config and its best weights, else the newest.

    Attributes:
        folder: folder of the run.
    """

    def __init__(self, folder: str | PathLike) -> None:
        self.folder = Path(folder)
        if find_run(self.folder) is None:
            raise MissingFileError(f'{self.folder} is not the folder of a run: it has no checkpoint')

    def __repr__(self) -> str:
        return f'TrainedRun({str(self.folder)!r})'

    @property
    def record(self) -> dict[str, Any]:
        """``training.json``: settings, versions, times and scores."""
        return read_json(self.folder / RECORD, 'a finished training writes it')

    @property
    def scores(self) -> dict[str, float]:
        """Scores of the last validation, by name, in percent."""
        return self.record.get('metrics', {})

    def test(self, **options: Any) -> dict[str, Any]:
        """Return the scores of the test data; options are those of ``vt test`` and settings."""
        return testing.test(_arguments('test', [self.folder], options))

    def predict(self, inputs: Paths, **options: Any) -> list[dict[str, Any]]:
        """Return the predictions for files and folders, a dict each; options are those of ``vt predict``."""
        files = [inputs] if isinstance(inputs, (str, PathLike)) else inputs
        return predicting.predict(_arguments('predict', [self.folder, *files], options))

    def export(self, *formats: str, **options: Any) -> list[Path]:
        """Write the model in formats such as ``'onnx'``, and return the files; options are those of ``vt export``."""
        return exporting.export(_arguments('export', [self.folder, *formats], options))

    def model(self, device: str | None = None) -> BaseModel:
        """Return the network in evaluation mode, with its best weights."""
        return get_model(self.folder, device=device)


def train(model: str | PathLike, **settings: Any) -> TrainedRun:
    """Train a model as ``vt train`` does: the same checks, the same files, the same errors.

    Args:
        model: name of a model, path of a config, or folder of a run.
        **settings: settings by their short names, such as ``data``, ``epochs`` and ``weights``, or by their keys, such
            as ``**{'optim_wrapper.clip_grad.max_norm': 5}``; and the options of ``vt train``, such as ``resume=True``.

    Returns:
        The run.

    Raises:
        UserError: with the line that the command prints.
    """
    with weights_only():
        return TrainedRun(training.train(_arguments('train', [model], settings)).cfg.work_dir)


def open_run(folder: str | PathLike) -> TrainedRun:
    """Return a run that was trained before; a folder without a checkpoint is a UserError."""
    return TrainedRun(folder)


def _arguments(name: str, words: Sequence[str | PathLike], given: dict[str, Any]) -> argparse.Namespace:
    """Return the arguments of a command from keyword arguments: its options, and else settings of the config."""
    command = COMMANDS[name]
    parser = CommandParser(command.description, command.example)
    command.add_arguments(parser)
    args = parser.parse_args([])
    kinds: dict[str, Any] = {action.dest: action for action in parser._actions}
    given = {key: fspath(value) if isinstance(value, PathLike) else value for key, value in given.items()}
    for key, value in given.items():
        if key in vars(args) and key not in ('cfg_options', 'words'):
            choices = kinds[key].choices
            if choices and not {*([value] if isinstance(value, str) else value)} <= {*choices}:
                raise UserError(f'{key}={value} must be {", ".join(choices)}')
            value = 'auto' if key == 'resume' and value is True else value
            setattr(args, key, kinds[key].type(value) if kinds[key].type and value is not None else value)
    args.cfg_options = {key: value for key, value in given.items() if key not in vars(args)}
    args.words = [fspath(word) for word in words]
    read_words(args)
    return args
