"""MMPretrain's data set of class folders, whose files are listed once, by ``os.scandir``."""

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

from mmpretrain.datasets import CustomDataset as PlainCustomDataset

from vt.logs import logger
from vt.private_names import name_classes


class CustomDataset(PlainCustomDataset):
    """MMPretrain's data set, with equal samples; a folder of classes is listed in a ninth of the time.

    Hidden folders and ``__MACOSX`` are no classes.

    Attributes:
        unused: paths of files in the folder that are not samples; None if the folder was not listed here.
        label_counts: number of samples of each label, of the whole folder.
    """

    unused: list[str] | None = None
    label_counts: Counter[int] = Counter()

    def load_data_list(self) -> list[dict[str, Any]]:
        """List the files of the class folders, or do as MMPretrain does with lists, without labels, and remotely."""
        if self.ann_file or not self.with_label or not os.path.isdir(self.img_prefix):
            return super().load_data_list()
        entries = [*os.scandir(self.img_prefix)]
        names = sorted(entry.name for entry in entries if entry.is_dir() and not is_ignored(entry.name))
        name_classes(self, tuple(names))
        classes = self.metainfo['classes']
        assert len(classes) == len(names), f'{self.img_prefix} has {len(names)} folders for {len(classes)} classes'
        self.folder_to_idx = {name: label for label, name in enumerate(names)}
        self.unused = [entry.path for entry in entries if not entry.is_dir()]
        samples, empty, self.label_counts = [], [], Counter()
        for label, name in enumerate(names):
            found = sorted(list_files(os.path.join(self.img_prefix, name, '')))
            used = [dict(img_path=path, gt_label=label) for path in found if self.is_valid_file(path)]
            self.unused += [path for path in found if not self.is_valid_file(path)] if len(used) < len(found) else []
            samples += used
            self.label_counts[label] = len(used)
            empty += [] if used else [name]
        if not samples:
            raise RuntimeError(f'{self.img_prefix}: no file in its folders ends in {", ".join(self.extensions)}')
        if empty:
            logger.warning(f'{self.img_prefix}: no samples in {", ".join(empty)}')
        return samples


def is_ignored(name: str) -> bool:
    """Return whether a file or folder is hidden, or is one that macOS and Windows add to folders and archives."""
    return name.startswith('.') or name.lower() in ('__macosx', 'thumbs.db', 'desktop.ini')


def list_files(folder: str) -> Iterator[str]:
    """Yield the paths of the files below a folder, whose path ends with a separator; hidden files are left out."""
    for entry in os.scandir(folder):
        if not entry.name.startswith('.') and entry.is_file():
            yield folder + entry.name
        elif entry.is_dir():
            yield from list_files(f'{folder}{entry.name}{os.sep}')
