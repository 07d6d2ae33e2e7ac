"""Index of tar shards: position, label and checksum of each sample's image or video, made once.

``shards.index`` beside the shards is a NumPy array with one row per sample, followed by JSON about the shards and
classes. It is memory-mapped: opening a million samples takes no time and no memory per process.
"""

import json
import os
import re
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from io import BytesIO
from itertools import groupby
from typing import Any, BinaryIO

import numpy as np

from vt.checkpoints.files import write_atomically
from vt.errors import MissingFileError, UserError
from vt.image_bounds import EXTENSIONS
from vt.untrusted_text import check_class_names, printable
from vt.video.dataset import EXTENSIONS as VIDEOS

INDEX, CLASSES = 'shards.index', 'classes.txt'
ROW = [('shard', '<u4'), ('label', '<i4'), ('offset', '<u8'), ('size', '<u4'), ('crc', '<u4')]
NO_LABEL = -1
KEY = re.compile(r'((?:.*/)?[^./][^.]*)\.([^/]+)')  # as in WebDataset: a member's key, and its kind after the first dot
KINDS = {*EXTENSIONS, *VIDEOS}  # of the member that has a sample's image or video
SHARD, PACKED = re.compile(r'\.tar$'), re.compile(r'\.(tgz|tar\.\w+)$')
# Keys of fsspec's file information that change with a file.
VERSIONS = ('etag', 'content-md5', 'last-modified', 'lastmodified', 'updated', 'mtime', 'created')
THREADS = 16


def open_store(root: str) -> tuple[Any, str]:
    """Return fsspec's file system of a folder or address, a new one after a fork, and the folder's path in it."""
    import fsspec

    try:
        return fsspec.core.url_to_fs(root)
    except (ImportError, ValueError) as error:
        advice = "pip install 'visual-transformers[shards]', or what fsspec names for this kind of address"
        raise UserError(f'{root} cannot be read ({printable(error, 200)}): {advice}') from error


def kind_of(root: str) -> str:
    """Return the protocol of an address, such as ``'s3'``; ``''`` for a local folder."""
    return root.rpartition('://')[0]


def find_shards(root: str, known: Sequence[str] = ()) -> dict[str, list]:
    """Return size and version of each shard; a server that does not list folders is asked for the ``known`` names."""
    system, folder = open_store(root)
    system.invalidate_cache()
    try:
        names = [path.rpartition('/')[2] for path in system.ls(folder, detail=False)]
    except FileNotFoundError:
        names = known
    if packed := next(filter(PACKED.search, names), None):
        raise UserError(f'{root}/{packed} is compressed: unpack it to .tar, from which any sample can be read alone')
    names = sorted(filter(SHARD.search, names))
    if not names:
        raise MissingFileError(f'{root} has no shards (*.tar), is not there, or its server does not list it')
    with ThreadPoolExecutor(THREADS) as pool:  # the list of a server has no sizes
        infos = [*pool.map(system.info, [f'{folder}/{name}' for name in names])]
    infos = [{key.lower(): value for key, value in info.items()} for info in infos]
    versions = [str(next((info[key] for key in VERSIONS if info.get(key)), '')) for info in infos]
    return {name: [info['size'], version] for name, info, version in zip(names, infos, versions)}


def write_index(root: str, out: str | None = None) -> int:
    """Read all shards of a folder once, write their index, and return the number of samples.

    The label of a sample is the whole number in its ``.cls``, or ``label`` of its ``.json``. The names of the classes
    are read from ``classes.txt`` beside the shards, one name per line, if it exists.

    Args:
        root: folder or address of the shards, ``*.tar``.
        out: path of the index, if it cannot be beside the shards.

    Raises:
        UserError: a shard is damaged or compressed; a sample has no image, several images, or no label while others
            have one.
    """
    states, (system, folder), classes = find_shards(root), open_store(root), None
    if system.isfile(f'{folder}/{CLASSES}'):
        try:
            classes = system.cat_file(f'{folder}/{CLASSES}').decode('utf-8-sig').splitlines()
        except UnicodeDecodeError as error:
            raise UserError(f'{root}/{CLASSES} is not text in UTF-8: save it as UTF-8') from error
        check_class_names(classes, f'{root}/{CLASSES}')
    with ThreadPoolExecutor(THREADS) as pool:
        rows = np.concatenate([*pool.map(partial(_scan, root), range(len(states)), states)])
    without = rows['label'] == NO_LABEL
    if without.any() and not without.all():
        odd = rows[without.argmax()]
        raise UserError(f'{root}/{[*states][odd["shard"]]}: {printable(odd["name"].decode(), 100)} has no label')
    content = BytesIO()
    np.lib.format.write_array(content, rows)
    content.write(json.dumps(dict(classes=classes, shards=states, store=kind_of(root))).encode())
    if out or not kind_of(root):
        write_atomically(out or f'{folder}/{INDEX}', content.getvalue(), follow=bool(out))
    else:
        system.pipe_file(f'{folder}/{INDEX}', content.getvalue())
    return len(rows)


def _scan(root: str, shard: int, name: str) -> np.ndarray:
    """Return the rows of a shard's samples."""
    where, rows, last = f'{root}/{name}', [], 'its start'
    system, folder = open_store(root)
    try:
        with system.open(f'{folder}/{name}') as file, tarfile.open(fileobj=file, mode='r:') as tar:
            for key, kinds in _samples(tar, where):
                sample = f'{where}: the sample {printable(key, 100)} has {", ".join(kinds)}'
                images = [member for kind, member in kinds.items() if f'.{kind}' in KINDS]
                if len(images) != 1:
                    raise UserError(f'{sample}, {len(images)} images or videos: each sample must have one')
                label = next((_label(tar, kinds[kind], sample) for kind in ('cls', 'json') if kind in kinds), NO_LABEL)
                content, last = _content(tar, images[0]), images[0].name
                rows.append((shard, label, images[0].offset_data, len(content), zlib.crc32(content), last.encode()))
            file.seek(tar.offset)
            if file.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
                raise tarfile.ReadError('no end of an archive')
    except tarfile.TarError as error:
        raise UserError(f'{where} is cut off or damaged after {printable(last, 100)}: {error}') from error
    if not rows:
        raise UserError(f'{where} has no samples: remove it')
    return np.array(rows, [*ROW, ('name', f'S{max(len(name) for *_, name in rows)}')])


def _samples(tar: tarfile.TarFile, where: str) -> Iterator[tuple[str, dict[str, tarfile.TarInfo]]]:
    """Yield the key of each sample and its members by kind, as WebDataset reads them."""
    found = ((KEY.fullmatch(member.name), member) for member in tar if not member.isdir())
    named = ((match, member) for match, member in found if match and not member.name.startswith('__'))
    for key, members in groupby(named, lambda pair: pair[0][1]):
        kinds = {}
        for match, member in members:
            if not member.isreg() or member.issparse() or match[2].lower() in kinds:
                raise UserError(f'{where} has {printable(member.name, 100)} twice, or as a link: store each file once')
            kinds[match[2].lower()] = member
        yield key, kinds


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(member)
    return file.read() if file else b''


def _label(tar: tarfile.TarFile, member: tarfile.TarInfo, sample: str) -> int:
    try:
        value = json.loads(_content(tar, member))
    except (ValueError, RecursionError):
        value = None
    value = value.get('label', NO_LABEL) if isinstance(value, dict) else value
    if type(value) is not int or not NO_LABEL <= value < 2**31:
        raise UserError(f'{sample}, but no whole number from 0 as label')
    return value


class ShardIndex:
    """An opened index; its rows are memory-mapped if it is a local file.

    Args:
        root: folder or address of the shards.
        path: path of the index, ``''`` for the one beside the shards.

    Attributes:
        rows: shard, label, offset, size, checksum and name of each sample.
        shards: name of each shard with its size and version.
        classes: names of the classes, or None.

    Raises:
        MissingFileError: there is no index.
        UserError: it is damaged, or shards were changed, added or removed after it was made.
    """

    def __init__(self, root: str, path: str = '') -> None:
        self.root, self.path = root, path or (f'{root}/{INDEX}' if not kind_of(root) else '')
        self.again = f'run python tools/shard.py --index {root}'
        where = self.path or f'{root}/{INDEX}'
        system, folder = open_store(root)
        try:
            with open(self.path, 'rb') if self.path else BytesIO(system.cat_file(f'{folder}/{INDEX}')) as file:
                rows = np.load(self.path or file, mmap_mode='r' if self.path else None, allow_pickle=False)
                if self.path:
                    file.seek(rows.offset + rows.nbytes)
                about = json.loads(file.read())
            self.rows, self.classes, self.shards = np.asarray(rows), about['classes'], [*about['shards'].items()]
            self.store = about['store']
            if rows.dtype.descr[:-1] != ROW:
                raise ValueError('of another version')
        except FileNotFoundError as error:
            raise MissingFileError(f'there is no {where}, the index of the shards: {self.again}') from error
        except (ValueError, KeyError, AttributeError, TypeError, EOFError, RecursionError) as error:
            raise UserError(f'{where} is damaged ({printable(error, 100)}): {self.again}') from error
        self._compare()

    def __reduce__(self) -> tuple:
        return ShardIndex, (self.root, self.path)  # unpickled in another process, it maps the file there

    def _compare(self) -> None:
        """Raise UserError if the shards are not those of the index; copies with other times are accepted.

        If the shards were indexed in another kind of store, only sizes are compared here, and the checksum of each
        sample when it is read.
        """
        states = dict(self.shards)
        found = find_shards(self.root, [*states])
        for name in sorted(found.keys() ^ states.keys()):
            raise UserError(f'{self.root}/{name} is {"new" if name in found else "gone"} since the index: {self.again}')
        for shard, (name, state) in enumerate(self.shards):
            same = found[name][0] == state[0]
            if same and found[name] != state and self.store == kind_of(self.root):
                first, after = np.searchsorted(self.rows['shard'], [shard, shard + 1])
                ends = [int(first), int(after) - 1]
                same = not any(self.damage(row, content) for row, content in zip(ends, self.fetch(ends)))
            if not same:
                raise UserError(f'{self.root}/{name} has changed since the index was made: {self.again}')

    def fetch(self, rows: Sequence[int]) -> list[bytes]:
        """Return the content of members; remote ones are fetched in parallel."""
        found = [self.rows[row].item() for row in rows]
        spans = [(*self.shards[shard], offset, offset + size) for shard, _, offset, size, *_ in found]
        if not kind_of(self.root):
            return [_read(f'{self.root}/{name}', state[1], first, last) for name, state, first, last in spans]
        system, folder = open_store(self.root)
        names, _, firsts, lasts = zip(*spans)
        return system.cat_ranges([f'{folder}/{name}' for name in names], [*firsts], [*lasts], on_error='raise')

    def damage(self, row: int, content: bytes) -> str | None:
        """Describe what is wrong with the content of a member, None if it is intact."""
        *_, size, crc, _ = self.rows[row].item()
        if len(content) != size:
            return f'has {len(content):,} of {size:,} bytes: it is cut off, or its server sends no parts of files'
        return None if zlib.crc32(content) == crc else 'is damaged, or of another shard: its checksum differs'


def _read(path: str, version: str, first: int, last: int) -> bytes:
    file = _open(path, version)  # keep the file open while reading: another thread may evict it from the cache
    return os.pread(file.fileno(), last - first, first)


@lru_cache(64)
def _open(path: str, version: str) -> BinaryIO:
    return open(path, 'rb', buffering=0)  # closed when no thread reads it any more
