"""Videos of one's own: lists, class folders, and Kinetics' comma-separated values, a clip of YouTube a line."""

import csv
import os
from dataclasses import dataclass, field
from pathlib import Path

from mmengine.logging import MMLogger
from mmpretrain.datasets import CustomDataset

from vt.errors import FileError, MissingFileError, UserError
from vt.registry import DATASETS
from vt.untrusted_text import printable

EXTENSIONS = ('.mp4', '.mkv', '.webm', '.avi', '.mov', '.m4v', '.mpg', '.mpeg')
NEEDED = ('youtube_id', 'time_start', 'time_end')  # columns of Kinetics' lists


@DATASETS.register_module()
class VideoDataset(CustomDataset):
    """Video files with a label each, in one of three layouts, chosen by ``ann_file``.

    - A list, any name but ``.csv``: a line is a path below ``data_prefix``, a space and a label.
    - None: a folder a class below ``data_prefix``; the classes are its folders in alphabetical order.
    - Kinetics' list, ``.csv`` with ``label,youtube_id,time_start,time_end,split``: files are named
      ``<youtube_id>_000010_000020.mp4`` and lie in class folders below ``data_prefix`` or in it; the classes are the
      list's labels in alphabetical order, or ``classes``.

    Files are looked for when the lists are read, before a run begins. Samples hold ``img_path``, the video's path, as
    OpenMMLab names the file of a sample, and ``gt_label``; :class:`vt.video.LoadClips` begins the pipeline.

    Args:
        data_root: of ``ann_file`` and ``data_prefix``.
        data_prefix: folder of the videos.
        ann_file: the list.
        with_label: whether there are labels; without them a list has a path a line.
        extensions: of files that are videos.
        missing: what happens where a listed file is not there: ``'refuse'``, or ``'skip'``, since of Kinetics some are
            no longer to be had.
        **kwargs: other options of :class:`mmpretrain.datasets.BaseDataset`, such as ``pipeline`` and ``classes``.

    Raises:
        UserError: nothing is listed, a line doesn't parse, a label is none of the classes, ``missing`` has another
            value; the error names the file and the line.
        MissingFileError: the list, a folder, or a listed file is not there.
    """

    def __init__(
        self,
        data_root: str = '',
        data_prefix: str | dict = '',
        ann_file: str = '',
        with_label: bool = True,
        extensions: tuple[str, ...] = EXTENSIONS,
        missing: str = 'refuse',
        **kwargs,
    ) -> None:
        if not (data_root or data_prefix or ann_file):
            raise UserError('VideoDataset: set data_root, the folder of the videos')
        if missing not in ('refuse', 'skip'):
            raise UserError(f"VideoDataset: missing='{missing}' is neither 'refuse' nor 'skip'")
        self.missing = missing
        path = Path(data_root or '', ann_file)
        named = 'classes' in kwargs or 'classes' in (kwargs.get('metainfo') or {})
        if path.suffix == '.csv' and path.is_file() and with_label and not named:
            kwargs['classes'] = sorted(set(read_kinetics(path).labels))
        super().__init__(data_root, data_prefix, ann_file, with_label, extensions, **kwargs)

    @property
    def is_kinetics(self) -> bool:
        """Whether the list is one of Kinetics'."""
        return str(self.ann_file).endswith('.csv')

    def load_data_list(self) -> list[dict]:
        """One dict a video that is there, in the order of the list."""
        if self.is_kinetics:
            return self._there(self._list_kinetics())
        if self.ann_file:
            return self._there(super().load_data_list())
        if not Path(self.img_prefix).is_dir():
            raise MissingFileError(f'there is no folder {self.img_prefix}: set data_root and data_prefix')
        if not files_by_stem(Path(self.img_prefix), self.extensions):
            raise FileError(f'{self.img_prefix} holds no videos: no file ends in {", ".join(sorted(self.extensions))}')
        return super().load_data_list()

    def _list_kinetics(self) -> list[dict]:
        path = Path(self.ann_file)
        if not path.is_file():
            raise MissingFileError(f'there is no {path}: put it there, or correct ann_file')
        found = read_kinetics(path, self.CLASSES, self.with_label)
        for line, message in found.problems[:1]:
            raise UserError(f'{path}{f", line {line}" if line else ""} {message}')
        files = files_by_stem(Path(self.img_prefix), self.extensions)
        infos = [dict(img_path=files.get(stem, os.path.join(self.img_prefix, f'{stem}.mp4'))) for stem in found.stems]
        for info, label in zip(infos, found.labels):
            info['gt_label'] = self.class_to_idx[label]
        return infos

    def _there(self, infos: list[dict]) -> list[dict]:
        """Those whose files are there; each folder is listed once."""
        folders = {os.path.dirname(info['img_path']) for info in infos}
        names = {folder: {*os.listdir(folder or '.')} for folder in folders if os.path.isdir(folder or '.')}
        split = {info['img_path']: os.path.split(info['img_path']) for info in infos}
        absent = {path for path, (folder, name) in split.items() if name not in names.get(folder, ())}
        there = [info for info in infos if info['img_path'] not in absent]
        if not absent:
            return infos
        message = f'{len(infos) - len(there)} of {len(infos)} listed videos are not there, the first is {min(absent)}'
        if not there or self.missing == 'refuse':
            remedy = "correct data_root and data_prefix, or leave them out with missing='skip'"
            raise MissingFileError(f'{message}: {remedy}')
        MMLogger.get_current_instance().warning(printable(f'{message}; they are left out'))
        return there


@dataclass
class KineticsList:
    """What a list of Kinetics says.

    Attributes:
        stems: of the files, ``<youtube_id>_<start>_<end>`` with six digits a time, as the usual downloads name them.
        labels: class names, one a file; empty where the list has none, as that of the held-out test.
        problems: lines that don't parse, None for the whole file, and what is wrong with them.
    """

    stems: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    problems: list[tuple[int | None, str]] = field(default_factory=list)


def read_kinetics(path: Path, classes: tuple[str, ...] | None = None, with_label: bool = True) -> KineticsList:
    """Read a list whose columns are ``label,youtube_id,time_start,time_end,split``; others are left alone.

    Args:
        path: of the list.
        classes: that labels must be of; None takes those of the list.
        with_label: whether there is a label to read.
    """
    needed, found = (*NEEDED, 'label') if with_label else NEEDED, KineticsList()
    try:
        rows = csv.DictReader(path.read_text(encoding='utf-8-sig').splitlines())
    except UnicodeDecodeError:
        return KineticsList(problems=[(None, 'is not a text in UTF-8')])
    if not rows.fieldnames:
        return KineticsList(problems=[(None, 'is empty')])
    for name in needed:
        if name not in rows.fieldnames:
            message = f'has no column {name}: the first line must name {",".join(needed)}'
            return KineticsList(problems=[(1, message)])
    for row in rows:
        wrong = _check_row(row, needed, classes)
        if wrong:
            found.problems.append((rows.line_num, wrong))
            continue
        start, end = (int(float(row[name])) for name in ('time_start', 'time_end'))
        found.stems.append(f'{row["youtube_id"]}_{start:06d}_{end:06d}')
        found.labels += [row['label']] if with_label else []
    if not found.stems and not found.problems:
        found.problems.append((None, 'lists no videos'))
    return found


def _check_row(row: dict[str, str | None], needed: tuple[str, ...], classes: tuple[str, ...] | None) -> str | None:
    """What is wrong with a line."""
    for name in needed:
        if not row[name]:
            return f'has no {name}'
    for name in ('time_start', 'time_end'):
        seconds = row[name] or ''
        if not seconds.replace('.', '', 1).isdecimal():
            return f'has {name}={seconds[:40]!r}: seconds are needed'
    label = row.get('label')
    if classes is not None and label and label not in classes:
        return f'has the label {label[:80]!r}, which is none of the {len(classes)} classes'
    return None


def files_by_stem(folder: Path, extensions: tuple[str, ...]) -> dict[str, str]:
    """Paths below a folder, in class folders or not, by their names without a suffix."""
    paths = sorted(path for path in folder.rglob('*') if path.suffix.lower() in extensions and path.is_file())
    return {path.stem: str(path) for path in paths}
