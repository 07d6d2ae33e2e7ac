"""Videos of one's own: lists, class folders, and Kinetics' comma-separated values, a clip of YouTube a line."""

import os
from collections.abc import Iterable
from pathlib import Path

from mmengine.logging import MMLogger
from mmpretrain.datasets import CustomDataset

from vt.errors import FileError, MissingFileError, UserError
from vt.registry import DATASETS
from vt.untrusted_text import printable

from .lists import check_lines, files_by_stem, read_kinetics

# Suffixes, in lower case; those of files in upper case are the same.
EXTENSIONS = ('.mp4', '.mkv', '.webm', '.avi', '.mov', '.m4v', '.mpg', '.mpeg')
EXTENSIONS += ('.3gp', '.flv', '.m2ts', '.mts', '.ogv', '.ts', '.vob', '.wmv')


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
        if isinstance(extensions, str) or not all(str(suffix).startswith('.') for suffix in extensions):
            raise UserError(f"VideoDataset: extensions={extensions!r} must be a list of suffixes such as ['.mp4']")
        self.missing = missing
        path = Path(data_root or '', ann_file)
        named = 'classes' in kwargs or 'classes' in (kwargs.get('metainfo') or {})
        if path.suffix.lower() == '.csv' and path.is_file() and with_label and not named:
            kwargs['classes'] = sorted(set(read_kinetics(path).labels))
        super().__init__(data_root, data_prefix, ann_file, with_label, extensions, **kwargs)

    @property
    def is_kinetics(self) -> bool:
        """Whether the list is one of Kinetics'."""
        return str(self.ann_file).lower().endswith('.csv')

    def load_data_list(self) -> list[dict]:
        """One dict a video that is there, in the order of the list."""
        if self.is_kinetics:
            return self._there(self._list_kinetics())
        if self.ann_file:
            number = None if self.CLASSES is None else len(self.CLASSES)
            self._refuse(check_lines(self._list().read_bytes(), self.with_label, number))
            return self._there(super().load_data_list())
        folder = Path(self.img_prefix)
        if not folder.is_dir():
            raise MissingFileError(f'there is no folder {self.img_prefix}: set data_root and data_prefix')
        files = files_by_stem(folder, self.extensions)
        if not files:
            raise FileError(f'{self.img_prefix} holds no videos: no file ends in {", ".join(sorted(self.extensions))}')
        if self.with_label and all(Path(file).parent == folder for file in files.values()):
            raise FileError(
                f'{self.img_prefix} holds videos and no folder a class: move them into such, or set ann_file'
            )
        return super().load_data_list()

    def _list(self) -> Path:
        """The path of the list; a MissingFileError if it is not there."""
        path = Path(self.ann_file)
        if not path.is_file():
            raise MissingFileError(f'there is no {path}: put it there, or correct ann_file')
        return path

    def _refuse(self, problems: Iterable[tuple[int | None, str]]) -> None:
        for line, message in problems:
            raise UserError(f'{self.ann_file}{f", line {line}" if line else ""} {message}')

    def _list_kinetics(self) -> list[dict]:
        found = read_kinetics(self._list(), self.CLASSES, self.with_label)
        self._refuse(found.problems)
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
        first = printable(min(absent), 300)
        message = f'{len(infos) - len(there)} of {len(infos)} listed videos are not there, the first is {first}'
        if not there or self.missing == 'refuse':
            remedy = "correct data_root and data_prefix, or leave them out with missing='skip'"
            raise MissingFileError(f'{message}: {remedy}')
        MMLogger.get_current_instance().warning(printable(f'{message}; they are left out'))
        return there
