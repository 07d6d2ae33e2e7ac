"""Data sets of video files: lists, class folders, and the CSV lists of Kinetics."""

import os
from pathlib import Path

from mmengine.logging import MMLogger
from mmpretrain.datasets import CustomDataset

from vt.errors import FileError, MissingFileError, UserError
from vt.folders import find_similar
from vt.registry import DATASETS
from vt.untrusted_text import printable

from .lists import files_by_stem, read_kinetics, read_list

# Suffixes of video files in lower case; upper case matches too.
EXTENSIONS = ('.mp4', '.mkv', '.webm', '.avi', '.mov', '.m4v', '.mpg', '.mpeg')
EXTENSIONS += ('.3gp', '.flv', '.m2ts', '.mts', '.ogv', '.ts', '.vob', '.wmv')


@DATASETS.register_module()
class VideoDataset(CustomDataset):
    """Video files with one label each, in one of three layouts, selected by ``ann_file``.

    - A list with any suffix but ``.csv``: each line is a path below ``data_prefix``, a space and a label.
    - No list: one folder per class below ``data_prefix``; the classes are the folders in alphabetical order.
    - A list of Kinetics, ``.csv`` with ``label,youtube_id,time_start,time_end,split``: files are named
      ``<youtube_id>_000010_000020.mp4`` and are in ``data_prefix``, in class folders or not; the classes are the labels
      of the list in alphabetical order, or ``classes``.

    The existence of all files is checked when the data set is loaded, before a run starts. Samples have ``img_path``,
    the path of the video (the key that OpenMMLab uses for files), and ``gt_label``. The pipeline starts with
    :class:`vt.video.LoadClips`.

    Args:
        data_root: folder of ``ann_file`` and ``data_prefix``.
        data_prefix: folder of the videos.
        ann_file: path of the list.
        with_label: whether there are labels; without labels a list has one path per line.
        extensions: suffixes of video files.
        missing: what to do if a listed file does not exist: ``'refuse'`` with an error, or ``'skip'``, for videos of
            Kinetics that are no longer available.
        **kwargs: other options of :class:`mmpretrain.datasets.BaseDataset`, such as ``pipeline`` and ``classes``.

    Raises:
        UserError: the list is empty, a line can't be parsed, a label is not a class, ``missing`` has another value;
            the message names the file and the line.
        MissingFileError: a folder or a listed file does not exist.
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
            raise UserError('VideoDataset: no data: set data_root, the folder of the videos')
        if missing not in ('refuse', 'skip'):
            raise UserError(f"VideoDataset: missing='{missing}' is neither 'refuse' nor 'skip'")
        self.missing = missing
        path = Path(data_root or '', ann_file)
        named = 'classes' in kwargs or 'classes' in (kwargs.get('metainfo') or {})
        if path.suffix.lower() == '.csv' and path.is_file() and with_label and not named:
            kwargs['classes'] = sorted({label for _, label in read_kinetics(path, with_label)})
        super().__init__(data_root, data_prefix, ann_file, with_label, extensions, **kwargs)

    @property
    def is_kinetics(self) -> bool:
        """Whether the list is a list of Kinetics."""
        return str(self.ann_file).lower().endswith('.csv')

    def load_data_list(self) -> list[dict]:
        """Return a dict per existing video, in the order of the list."""
        if self.ann_file:
            return self._there(self._listed())
        folder = Path(self.img_prefix)
        if not folder.is_dir():
            raise MissingFileError(f'there is no folder {self.img_prefix}: set data_root and data_prefix')
        files = files_by_stem(folder, self.extensions)
        if not files:
            raise FileError(f'{self.img_prefix} has no videos: no file ends in {", ".join(sorted(self.extensions))}')
        if self.with_label and all(Path(file).parent == folder for file in files.values()):
            raise FileError(
                f'{self.img_prefix} has videos, but no class folders: move them into class folders, or set ann_file'
            )
        return super().load_data_list()

    def _listed(self) -> list[dict]:
        """Return a dict per video of the list; labels of Kinetics become numbers."""
        rows = (read_kinetics if self.is_kinetics else read_list)(Path(self.ann_file), self.with_label)
        files = files_by_stem(Path(self.img_prefix), self.extensions) if self.is_kinetics else {}
        infos = []
        for name, label in rows:
            if isinstance(label, str) and label not in self.class_to_idx:
                raise UserError(f'{self.ann_file}: {name} has the label {printable(label, 80)!r}, which is no class')
            path = files.get(name, os.path.join(self.img_prefix, f'{name}.mp4' if self.is_kinetics else name))
            number = self.class_to_idx[label] if isinstance(label, str) else label
            infos.append(dict(img_path=path) | (dict(gt_label=number) if self.with_label else {}))
        return infos

    def _there(self, infos: list[dict]) -> list[dict]:
        """Return the samples whose files exist; each folder is listed once."""
        folders = {os.path.dirname(info['img_path']) for info in infos}
        names = {folder: {*os.listdir(folder or '.')} for folder in folders if os.path.isdir(folder or '.')}
        split = {info['img_path']: os.path.split(info['img_path']) for info in infos}
        absent = {path for path, (folder, name) in split.items() if name not in names.get(folder, ())}
        there = [info for info in infos if info['img_path'] not in absent]
        if not absent:
            return infos
        first = printable(min(absent), 300) + find_similar(min(absent))
        message = f'{len(infos) - len(there)} of {len(infos)} listed videos do not exist, the first is {first}'
        if not there or self.missing == 'refuse':
            remedy = "correct data_root and data_prefix, or skip these videos with missing='skip'"
            raise MissingFileError(f'{message}: {remedy}')
        MMLogger.get_current_instance().warning(printable(f'{message}; they are skipped'))
        return there
