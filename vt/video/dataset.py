"""Data sets of video files: lists, class folders, and the CSV lists of Kinetics."""

import csv
import os
import re
from pathlib import Path

from mmpretrain.datasets import CustomDataset

from vt.errors import MissingFileError, UserError
from vt.files import files_below, read_lines
from vt.private_names import name_classes
from vt.registry import DATASETS
from vt.untrusted_text import composed, printable

# Suffixes of video files in lower case; upper case matches too.
EXTENSIONS = ('.mp4', '.mkv', '.webm', '.avi', '.mov', '.m4v', '.mpg', '.mpeg')
EXTENSIONS += ('.3gp', '.flv', '.m2ts', '.mts', '.ogv', '.ts', '.vob', '.wmv')


@DATASETS.register_module()
class VideoDataset(CustomDataset):
    """Video files with one label each, in one of three layouts, selected by ``ann_file``.

    - A list: each line is a path below ``data_prefix``, a space or a comma, and the number of a class.
    - No list: one folder per class below ``data_prefix``; the classes are the folders in alphabetical order.
    - A list of Kinetics with the header ``label,youtube_id,time_start,time_end,split``: files are named
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
        UserError: a line of a list has another form, or a label of a list of Kinetics is not a class.
        MissingFileError: no video of such a list exists.
    """

    def __init__(self, data_root: str = '', extensions: tuple[str, ...] = EXTENSIONS, **kwargs) -> None:
        super().__init__(data_root, extensions=extensions, **kwargs)

    def load_data_list(self) -> list[dict]:
        """Return a dict per video, in the order of the list."""
        if not self.ann_file:
            return super().load_data_list()
        lines = [line.strip() for line in read_lines(self.ann_file)]
        table = csv.DictReader(filter(None, map(composed, lines)))
        header = {*(table.fieldnames or ())}
        if 'youtube_id' not in header:
            return [self._read_line(line, number) for number, line in enumerate(lines, 1) if line]
        columns = {'time_start', 'time_end'} | ({'label'} if self.with_label else set())
        if absent := columns - header:
            raise UserError(f'{self.ann_file} is a list of Kinetics without the columns {", ".join(sorted(absent))}')
        rows = [*table]
        files = {Path(path).stem: path for path in sorted(files_below(self.img_prefix)) if self.is_valid_file(path)}
        if self.with_label:
            name_classes(self, tuple(sorted({row['label'] for row in rows})))
        infos = []
        for row in rows:
            start, end = (int(float(row[name])) for name in ('time_start', 'time_end'))
            path = files.get(f'{row["youtube_id"]}_{start:06d}_{end:06d}')
            if self.with_label and row['label'] not in self.class_to_idx:
                raise UserError(f'{self.ann_file} has the label {printable(row["label"], 80)!r}, which is not a class')
            label = dict(gt_label=self.class_to_idx[row['label']]) if self.with_label else {}
            infos += [dict(img_path=path) | label] if path else []
        absent = f'{len(rows) - len(infos)} of {len(rows)} videos of {self.ann_file} are not in {self.img_prefix}'
        if not infos:
            raise MissingFileError(f'{absent}: correct data_root and data_prefix')
        self.absent = absent if len(infos) < len(rows) else None  # for the check of files that are left out
        return infos

    def _read_line(self, line: str, number: int) -> dict:
        """Return the video of a line that is a path, with a label or without."""
        found = re.fullmatch(r'"?(.+?)"?' + r'\s*[\s,;]\s*(\d+)' * self.with_label, line)
        if found is None:
            form = "a path and a class index, such as 'dogs/a.mp4 1' or 'dogs/a.mp4,1'"
            kinetics = 'or the header must be label,youtube_id,time_start,time_end,split'
            words = f'{self.ann_file}, line {number} is {printable(line, 80)!r}'
            raise UserError(f'{words}: a line must be {form}, {kinetics}')
        info = dict(img_path=os.path.join(self.img_prefix, found[1]))
        return info | dict(gt_label=int(found[2])) if self.with_label else info
