"""Recognise the data at a path by its layout: class folders, images and masks, COCO, tables and rows, with splits.

The reader of each layout yields its readings of a folder. One reading is the result. Several are refused, and so is
none, with what is in the folder.
"""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from vt.errors import MissingFileError, UserError
from vt.files import files_below, list_suffixes
from vt.image_bounds import EXTENSIONS
from vt.untrusted_text import check_class_names, composed
from vt.video.dataset import EXTENSIONS as VIDEO_EXTENSIONS

from .class_folders import is_ignored
from .coco_layouts import read_coco_file, read_coco_files
from .folder_contents import MOST_FILES, UNREADABLE
from .image_tables import FILE_HEADERS, Row, check_spelling, find_label_column, first_lines, read_table, sort_names
from .layouts import (
    IMAGE_FOLDERS,
    FoundData,
    Place,
    Reading,
    Request,
    by_split,
    find_images,
    list_splits,
    media_in,
)
from .mask_layouts import read_masks
from .multi_label import MISSING, VALUES, split_labels
from .row_layouts import read_rows
from .table_dataset import SPLITS_FILE, STATE_FILE

TABLES = ('.csv', '.tsv')
SEVERAL = ('labels', 'classes', 'tags')  # headers of a column of several class names
ARCHIVES = ('.zip', '.tar', '.gz', '.tgz', '.bz2', '.xz', '.7z', '.rar')
EXPECTED = 'expected are class folders, images and masks, or images and a table or a JSON file of COCO'


def recognise(
    path: str | os.PathLike,
    classes: Sequence[str] | None = None,
    colours: Mapping[str, Sequence[int]] | str | os.PathLike | None = None,
    task: str | None = None,
) -> FoundData:
    """Return what lies at a path, with the configs of its data sets.

    Args:
        path: a folder, or a table of images.
        classes: class names, in the order of labels.
        colours: red, green and blue of each class in masks, by class name, or the path of a text file with a line
            ``name r g b`` for each class.
        task: the task of the model, which chooses between readings.

    Raises:
        MissingFileError: there is no such path, or no image of a table.
        UserError: the data has no known layout, or several.
    """
    path = str(Path(os.path.expanduser(path))) if os.fspath(path) else ''
    if not os.path.exists(path):
        raise MissingFileError(f'there is no {path or "empty path"}: give a folder of data, or a table of images')
    if classes is not None:
        check_class_names(classes, 'classes')
    is_folder = os.path.isdir(path)
    request = Request(Place(path if is_folder else os.path.dirname(path) or os.curdir), classes, colours)
    if is_folder and {SPLITS_FILE, STATE_FILE} & request.place.files.keys():
        readings = [*read_rows(request)]
    elif is_folder:
        readings = [*_read_class_folders(request), *read_masks(request)]
        readings += [*read_coco_files(request), *_read_tables(request)]
    else:
        readings = [*_read_file(request, path)]
    if not readings:
        raise UserError(f'{path} {_describe_unknown(request)}' if is_folder else request.why[0])
    found = _choose(path, readings, task)
    if colours is not None and not found.mask_loading:
        raise UserError(f'{path} has {found.kind} without masks in colours: remove colours')
    return replace(found, description=f'{path}: {found.kind}, {found.description}')


def _choose(path: str, readings: Sequence[Reading], task: str | None) -> FoundData:
    """Return the only reading, or the only one of the task; a classifier takes images with several labels, too."""
    tasks = ('classification', 'multi-label') if task == 'classification' else (task,)
    fitting = [reading for reading in readings if task is None or reading[0].task in tasks]
    if not fitting:
        what = ' or '.join(f'{found.kind} for {found.task}' for found, _ in readings)
        raise UserError(f'{path} has {what}, but the model is for {task}: choose another, see `vt models`')
    if len(fitting) > 1:
        ways = ' or as '.join(f'{found.kind} for {found.task} ({advice})' for found, advice in fitting)
        raise UserError(f'{path} can be read as {ways}')
    return fitting[0][0]


def _describe_unknown(request: Request) -> str:
    """Return what is in a folder without a known layout, and what to do."""
    folders = [*request.place.folders]
    below = [path for path in islice(files_below(request.root), MOST_FILES) if not is_ignored(os.path.basename(path))]
    suffixes = Counter(Path(path).suffix.lower() for path in below)
    if not below:
        return f'has no files: {EXPECTED}'
    named = f'the folders {", ".join(folders[:3])}{", ..." * (len(folders) > 3)} and ' if folders else ''
    what = f'has {named}the files {list_suffixes(suffixes)}'
    readable = suffixes.keys() & {*EXTENSIONS, *VIDEO_EXTENSIONS}
    if not readable and (unreadable := sorted(suffixes.keys() & UNREADABLE)):
        return f'{what}: {unreadable[0].upper()[1:]} is not supported, convert such files to JPEG or PNG'
    if request.why:
        return f'{what}: {request.why[0]}'
    if readable and len(folders) == 1 and Place(request.place.folders[folders[0]]).folders:
        return f'{what}: give the folder in it, {request.place.folders[folders[0]]}, if the data is there'
    if readable:
        return f'{what}: no classes; move the files into class folders, or add a table with the columns file and label'
    return f'{what}: {EXPECTED}'


def _read_class_folders(request: Request) -> Iterator[Reading]:
    """Yield the readings as class folders of images and of videos, in folders of splits or not."""
    place, splits = request.place, request.place.splits
    if place.find(IMAGE_FOLDERS) or any(Place(place.folders[name]).find(IMAGE_FOLDERS) for name in splits.values()):
        return
    are_classes = request.classes is not None and {*request.classes} == {*place.folders}
    if not splits or are_classes:
        splits = {'train': ''}
    elif files := [name for name, path in place.folders.items() if name not in splits.values() and media_in(path)[0]]:
        split = next(iter(splits.values()))
        advice = f'if {split} is a split, move {files[0]} out or into it; if it is a class, rename it or give classes'
        request.why.append(f'{split}, the name of a split, is beside {files[0]}: {advice}')
        return
    elif 'train' not in splits:
        request.why.append(f'there is {", ".join(splits.values())}, but no folder train')
        return
    media, number = set(), 0
    for name in splits.values():
        folder = Place(os.path.join(request.root, name))
        found = {name: media_in(path) for name, path in folder.folders.items()}
        if not any(below for _, below in found.values()) and not name:
            return
        if problem := _why_no_classes(folder, found, are_classes):
            request.why.append(problem)
            return
        media |= {below for _, below in found.values() if below}
        number = number or len(found)
    if request.classes is not None and len(request.classes) != number:
        raise UserError(f'{request.root} has {number} class folders, but classes has {len(request.classes)} names')
    names = dict(metainfo=dict(classes=[*request.classes])) if request.classes else {}
    kinds = dict(
        image=('class folders', 'classification', dict(type='CustomDataset', extensions=[*EXTENSIONS])),
        video=('videos in class folders', 'video', dict(type='vt.VideoDataset')),
    )
    for medium in sorted(media):
        kind, task, dataset = kinds[medium]
        datasets = {
            split: dict(dataset, data_root=request.root, data_prefix=name) | names for split, name in splits.items()
        }
        advice = (
            f'keep only {medium}s in its folders' if len(media) > 1 else 'move the tables and annotations out of it'
        )
        yield FoundData(kind, task, datasets, f'{number} classes, {list_splits(datasets)}'), advice


def _why_no_classes(folder: Place, found: Mapping[str, tuple], are_classes: bool) -> str | None:
    """Return why folders are no classes, given the media in each, and in it or below it; None if they are."""
    media = {below for _, below in found.values()}
    odd = [name for name, (_, below) in found.items() if not below and Place(folder.folders[name]).files]
    if media <= {None}:
        return f'{folder.path} has no folders of images or videos'
    if 'video' in media and folder.ignored:
        return f'{folder.ignored[0]} would be a class of videos: remove it'
    if are_classes:
        return None
    if not any(own for own, _ in found.values()):
        return f'the classes must be the folders in {folder.path}, but there are further folders in {min(found)}'
    if odd:
        return f'{folder.folders[odd[0]]} has files, but no images or videos, so it is no class: move it elsewhere'
    return f'{folder.path} has only one class, {min(found)}' if len(found) == 1 else None


def _read_file(request: Request, path: str) -> Iterator[Reading]:
    """Yield the readings of a file."""
    suffix = os.path.splitext(path)[1].lower()
    if suffix in TABLES:
        return _read_labels(request, {'': os.path.basename(path)})
    if suffix == '.json':
        return read_coco_file(request, path)
    if suffix in ARCHIVES:
        raise UserError(f'{path} is an archive: unpack it, and give the folder')
    raise UserError(f'{path} is a file, but neither a CSV nor a TSV table: give a folder of data, or a table of images')


def _read_tables(request: Request) -> Iterator[Reading]:
    """Yield the readings as images with the only table in a folder, or with a table for each split."""
    tables = []
    for name in request.place.files:
        if name.lower().endswith(TABLES):
            try:
                if read_table(os.path.join(request.root, name)).file_header.lower() in FILE_HEADERS:
                    tables.append(name)
                else:
                    request.why.append(f'{name} has no column named file')
            except UserError as error:
                request.why.append(str(error))
    splits = by_split(request.root, {os.path.splitext(name)[0]: name for name in tables})
    if 'train' in splits and len(splits) == len(tables):
        yield from _read_labels(request, splits)
    elif len(tables) == 1:
        yield from _read_labels(request, {'': tables[0]})
    elif tables:
        given = os.path.join(request.root, tables[0])
        raise UserError(f'{request.root} has the tables {", ".join(tables)}: give one of them, such as {given}')


def _read_labels(request: Request, tables: Mapping[str, str]) -> Iterator[Reading]:
    """Yield the readings of tables, by split or all in one, as one label or several labels per image."""
    root, only = request.root, tables.get('')
    read = {split: read_table(os.path.join(root, name), with_splits=bool(only)) for split, name in tables.items()}
    rows: dict[str, list[Row]] = {split: table.rows for split, table in read.items()}
    if only:
        found = {row.split or 'train' for row in rows['']}
        rows = {
            split: [row for row in rows[''] if row.split in (None, split)]
            for split in ('train', 'val', 'test')
            if split in found
        }
    train = os.path.join(root, only or tables['train'])
    if 'train' not in rows:
        raise UserError(f'{train} has no images of the split train')
    header = next(iter(read.values())).names
    shared = {}
    for split, own in rows.items():
        name = only or tables[split]
        prefix = find_images(request, os.path.join(root, name), [row.file for row in own], split)
        shared[split] = dict(data_root=root, ann_file=name, data_prefix=prefix)
        shared[split] |= dict(split=split) if own[0].split else {}
    for task, kind, names, advice in _label_readings(request, train, header, rows['train']):
        classes = [*(request.classes or names)]
        given = dict(metainfo=dict(classes=classes)) if request.classes or len(rows) > 1 else {}
        datasets = {split: dict(type=kind) | each | given for split, each in shared.items()}
        numbers = f'{len(classes)} classes, {sum(map(len, rows.values())):,} images, {list_splits(datasets)}'
        yield FoundData('table', task, datasets, f'{advice[0]}, {numbers}'), advice[1]


def _label_readings(
    request: Request, path: str, header: Sequence[str], rows: Sequence[Row]
) -> Iterator[tuple[str, str, list[str], tuple[str, str]]]:
    """Yield task, type of data set, class names, and description and advice, of each reading of a table."""
    column = find_label_column(header)
    if column is None:
        values = {cell.strip().lower() for row in rows for cell in row.cells}
        if len(header) > 1 and values <= {*VALUES, *MISSING}:
            yield 'multi-label', 'vt.MultiLabelImages', sort_names(header), ('a column per class', f'give {path}')
        else:
            advice = 'name one column label (one per image) or labels (several), or write 0 and 1 in a column per class'
            request.why.append(f'{path} has the columns {", ".join(header)} beside the files: {advice}')
        return
    name, cells = header[column], [composed(row.cells[column].strip()) for row in rows]
    is_plural, are_separated = name.lower() in SEVERAL, any({*';|'} & {*cell} for cell in cells)
    description = f'labels in the column {name}'
    if not is_plural or (all(cells) and not are_separated and not any(',' in cell for cell in cells)):
        check_spelling(path, first_lines(rows, ([cell] for cell in cells)), None)
        advice = f'rename the column {name} to label' if is_plural else f'give {path}, without ; and | in labels'
        yield 'classification', 'vt.ImageTable', sort_names(cells), (description, advice)
    if is_plural or are_separated:
        if len(header) > 1:
            raise UserError(f'{path} has {", ".join(header)} beside the files: remove the columns except {name}')
        lines = first_lines(rows, map(split_labels, cells))
        check_spelling(path, lines, None)
        advice = (
            f'give {path}, with some image of several labels' if is_plural else f'rename the column {name} to labels'
        )
        yield 'multi-label', 'vt.MultiLabelImages', sort_names(lines), (description, advice)
