"""Data sets of video files: lists, class folders, and the CSV lists of Kinetics."""

import csv
from pathlib import Path

from mmpretrain.datasets import CustomDataset

from vt.errors import MissingFileError, UserError
from vt.files import files_below
from vt.registry import DATASETS
from vt.untrusted_text import composed, printable

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
      of the list in alphabetical order, or ``classes``. Listed videos without a file are left out, since some no longer
      exist; a warning has their number.

    Samples have ``img_path``, the path of the video (the key that OpenMMLab uses for files), and ``gt_label``. The
    pipeline starts with :class:`vt.video.LoadClips`.

    Args:
        data_root: folder of ``ann_file`` and ``data_prefix``.
        extensions: suffixes of video files.
        **kwargs: other options of :class:`mmpretrain.datasets.CustomDataset`, such as ``data_prefix``, ``ann_file``,
            ``with_label``, ``pipeline`` and ``classes``.

    Raises:
        UserError: a label of a list of Kinetics is not a class.
        MissingFileError: no video of such a list exists.
    """

    def __init__(self, data_root: str = '', extensions: tuple[str, ...] = EXTENSIONS, **kwargs) -> None:
        super().__init__(data_root, extensions=extensions, **kwargs)

    def load_data_list(self) -> list[dict]:
        """Return a dict per video, in the order of the list."""
        if not str(self.ann_file).lower().endswith('.csv'):
            return super().load_data_list()
        lines = composed(Path(self.ann_file).read_text(encoding='utf-8-sig')).splitlines()
        rows = [*csv.DictReader(map(str.strip, lines))]  # which skips empty lines
        files = {Path(path).stem: path for path in sorted(files_below(self.img_prefix)) if self.is_valid_file(path)}
        if self.with_label:
            self._metainfo.setdefault('classes', tuple(sorted({row['label'] for row in rows})))
        infos = []
        for row in rows:
            start, end = (int(float(row[name])) for name in ('time_start', 'time_end'))
            path = files.get(f'{row["youtube_id"]}_{start:06d}_{end:06d}')
            if self.with_label and row['label'] not in self.class_to_idx:
                raise UserError(f'{self.ann_file} has the label {printable(row["label"], 80)!r}, which is no class')
            label = dict(gt_label=self.class_to_idx[row['label']]) if self.with_label else {}
            infos += [dict(img_path=path) | label] if path else []
        absent = f'{len(rows) - len(infos)} of {len(rows)} videos of {self.ann_file} are not in {self.img_prefix}'
        if not infos:
            raise MissingFileError(f'{absent}: correct data_root and data_prefix')
        self.absent = absent if len(infos) < len(rows) else None  # for the check of files that are left out
        return infos
