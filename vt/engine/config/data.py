"""The data sets of a config: each is built, and its files are listed, once in a process, when it is first needed."""

import copy
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from mmengine.config import Config
from mmengine.dataset import BaseDataset
from mmengine.registry import DATASETS
from mmpretrain.datasets import CustomDataset as PlainCustomDataset

from vt.datasets.class_folders import CustomDataset
from vt.datasets.folder_contents import describe_files, require_class_folders, require_split
from vt.engine.hooks.num_classes import labels_in
from vt.engine.reporting import error_context, in_one_line
from vt.errors import UserError
from vt.private_names import serialize
from vt.registry import dicts_in

from .check_settings import accepted_arguments
from .parts import AUTO, datasets_of, leaves, steps_in

PLAIN = dict(lazy_init=True, serialize_data=False)  # samples as a list, for checks
USES = ('pipeline', 'test_mode')  # arguments that say how samples are used; of class folders, not which there are


class Data:
    """The data sets of a config, by their own configs.

    Args:
        cfg: the config.
    """

    def __init__(self, cfg: Config) -> None:
        self.cfg, self.scope = cfg, cfg.get('default_scope') or 'mmpretrain'
        self._built: list[tuple[dict, Any]] = []

    @property
    def notes(self) -> list[str]:
        """Lines for the log about the data sets that were loaded."""
        return [built.note for _, built in self._built if getattr(built, 'note', '')]

    def kind_of(self, dataset: dict) -> Any:
        """Return the class, or the function, that builds a data set."""
        with DATASETS.switch_scope_and_registry(self.scope) as registry:
            return registry.get(dataset['type']) if isinstance(dataset['type'], str) else dataset['type']

    def build(self, dataset: dict, where: str = 'the data set') -> Any:
        """Return the data set of a config, perhaps without its samples; ``where`` is its place, for messages."""
        known = next((built for config, built in self._built if are_equal(config, dataset)), None)
        if known is None:
            with error_context(f'building {where}'):
                known = self._build(dataset)
            self._built.append((copy_plain(dataset), known))
        return known

    def load(self, dataset: dict, where: str = 'the data set') -> Any:
        """Return the data set of a config with its samples.

        Raises:
            UserError: it cannot be loaded, or is empty.
            OSError: a folder does not exist or cannot be read.
        """
        built, parts = self.build(dataset, where), leaves(dataset)
        with error_context(f'loading {where} ({getattr(self.kind_of(parts[0]), "__name__", "")})'):
            for part in parts:
                self._load(part, where)
            if dataset not in parts and hasattr(built, 'full_init'):
                self._serialize(parts)  # of which wrappers take a part
                built.full_init()
        return built

    def load_for_run(self, dataset: dict) -> Any:
        """Return the data set of a config for a loader; hooks may change its pipeline."""
        loaded = self.load(dataset, f'a data set of type {dataset["type"]}')
        self._serialize(leaves(dataset))
        return copy.copy(loaded)

    def _serialize(self, parts: Sequence[dict]) -> None:
        """Serialise samples, as mmengine does, so that workers share their memory."""
        for part in parts:
            built = self.build(part)
            is_asked = isinstance(built, BaseDataset) and part.get('serialize_data', True)
            if is_asked and not built.serialize_data and isinstance(built.data_list, list):  # else it reads rows itself
                serialize(built)

    def count_labels(self, dataset: dict) -> Counter[int]:
        """Return the number of samples with each label in a data set."""
        built = self.load(dataset)
        counts = getattr(built, 'label_counts', None)
        if counts is None or counts.total() != len(built):
            infos = map(built.get_data_info, range(len(built)))
            counts = Counter(label for info in infos for label in {*labels_in(info)})
        return counts

    def _build(self, dataset: dict) -> Any:
        kind = self.kind_of(dataset)
        parts: dict[str, Any] = {}
        if isinstance(dataset.get('dataset'), dict):
            parts['dataset'] = given(self.build(dataset['dataset']))
        if isinstance(several := dataset.get('datasets'), (list, tuple)):
            parts['datasets'] = [given(self.build(part)) for part in several]
        if kind is PlainCustomDataset:
            parts['type'] = CustomDataset
        if isinstance(kind, type):
            names, takes_any = accepted_arguments(kind)
            takes_any = takes_any and issubclass(kind, BaseDataset)
            parts |= {name: value for name, value in PLAIN.items() if takes_any or name in names}
        with DATASETS.switch_scope_and_registry(self.scope):
            built = DATASETS.build({**dataset, **parts})
        if kind is PlainCustomDataset and (twin := self._listed(dataset)):
            used = {name: getattr(built, name) for name in USES}
            built = copy.copy(twin)
            vars(built).update(used, data_list=[*twin.data_list])
        return built

    def _listed(self, dataset: dict) -> Any:
        """Return a data set of the same class folders, whose samples are used in another way."""
        for config, built in self._built:
            if are_equal({**config, **dict.fromkeys(USES)}, {**dataset, **dict.fromkeys(USES)}):
                self._load(config, 'the data set')
                return built
        return None

    def _load(self, dataset: dict, where: str) -> None:
        """Load a data set without wrappers, or say what is in its folder."""
        built, root = self.build(dataset), dataset.get('data_root')
        if not isinstance(built, BaseDataset):
            return
        if root and '://' not in root and not dataset.get('download'):
            os.scandir(root).close()  # some data sets only use an assertion
        folder = str((built.data_prefix or {}).get('img_path') or '')
        reads_files = any('Load' in str(step.get('type')) for step in steps_in(dataset.get('pipeline')))
        if reads_files and folder and '://' not in folder and not built.ann_file:
            require_split(Path(folder))
        try:
            built.full_init()
        except RuntimeError:
            require_class_folders(built, folder)
            raise
        if not len(built):
            found = describe_files(built, folder) if folder else 'correct it in the config'
            raise UserError(f'{where} is empty: {found}')


def copy_plain(value: Any) -> Any:
    """Copy the dicts and lists of a config; other objects stay the same."""
    if isinstance(value, dict):
        return {key: copy_plain(item) for key, item in value.items()}
    return type(value)(map(copy_plain, value)) if isinstance(value, (list, tuple)) else value


def are_equal(one: Any, other: Any) -> bool:
    """Return whether two configs are equal, also with arrays in them."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(are_equal(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(are_equal, one, other))
    is_array = isinstance(one, np.ndarray) or isinstance(other, np.ndarray)
    return np.array_equal(one, other) if is_array else one == other


def given(built: Any) -> dict:
    """Return a config from which a wrapper, or a loader, gets a data set that is built already."""
    return dict(type=lambda **_: built, lazy_init=True)


def apply_num_classes(data: Data, classes: Sequence[str] | None = None) -> None:
    """Replace ``num_classes='auto'`` in the model of the config and its preprocessor by a number, in place.

    The classes are those of a checkpoint, if given, or of the first of the data sets, inside wrappers, that can be
    read. Without names of classes there is a UserError.
    """
    model = data.cfg.get('model') or {}
    places = [model, data.cfg.get('data_preprocessor')]
    parts = [part for part in dicts_in(places) if part.get('num_classes') == AUTO]
    if not parts:
        return
    number = (model.get('head') or {}).get('num_classes')
    if not isinstance(number, int):  # else the preprocessor alone is undecided
        number = len(classes or _classes_of_data(data))
    for part in parts:
        part['num_classes'] = number


def _classes_of_data(data: Data) -> Sequence[str]:
    errors: list[Exception] = []
    for dataset in datasets_of(data.cfg):
        try:
            built = data.build(dataset)
            if not built.metainfo.get('classes'):  # of folders and tables they are known only now
                data.load(dataset)
        except Exception as error:
            errors.append(error)
            continue
        if classes := built.metainfo.get('classes'):
            return classes
    why = f' ({in_one_line(errors[0])})' if errors else ', which have none'
    raise UserError(f"num_classes='{AUTO}' requires the class names of the data{why}: give data=PATH, or a number")
