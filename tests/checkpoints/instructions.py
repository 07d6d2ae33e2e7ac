"""Pickles, archives and safetensors files written by hand, one instruction after the other."""

import struct
import zipfile

MEGABYTE = 1_000_000


def text(value):
    value = value.encode()
    return b'X' + len(value).to_bytes(4, 'little') + value


def number(value):
    if 0 <= value < 256:
        return b'K' + bytes([value])
    length = value.bit_length() // 8 + 1
    return b'\x8a' + bytes([length]) + value.to_bytes(length, 'little', signed=True)


def numbers(*values):
    return b'(' + b''.join(map(number, values)) + b't'


def put(index):
    return b'r' + index.to_bytes(4, 'little')


def get(index):
    return b'j' + index.to_bytes(4, 'little')


def named(name):
    module, _, name = name.rpartition('.')
    return f'c{module}\n{name}\n'.encode()


def call(name, *arguments):
    return named(name) + b'(' + b''.join(arguments) + b'tR'


def doubling(levels):
    """Lists, each of which holds the one of the level below twice."""
    parts = [b'](K\x01e', put(0)]
    for level in range(levels):
        parts += [b'](' + get(level) * 2 + b'e', put(level + 1)]
    return b'(' + b''.join(parts) + b't'  # of all levels


def storage(count=4, kind='torch.FloatStorage', key=None):
    return b'(' + text('storage') + named(kind) + (key or text('0')) + text('cpu') + number(count) + b'tQ'


FOUR, ONE, ZERO, NO_HOOKS = numbers(4), numbers(1), number(0), b'\x89' + call('collections.OrderedDict')


def tensor(size=FOUR, stride=ONE, offset=ZERO, held=None, more=NO_HOOKS):
    return call('torch._utils._rebuild_tensor_v2', held or storage(), offset, size, stride, more)


def array(shape, data=b'12345678', code='f8'):
    """As numpy writes an array."""
    held = call('_codecs.encode', text(data.decode('latin1')), text('latin1'))
    return NEW_ARRAY + b'(K\x01' + shape + kind_of_number(code) + b'\x89' + held + b'tb'


def kind_of_number(code):
    return (
        call('numpy.dtype', text(code), b'\x89', b'\x88')
        + b'(K\x03'
        + text('<')
        + b'NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb'
    )


def history(log, count, length):
    state = text('_log_history') + log + text('_count_history') + count + text('max_length') + length
    return named('mmengine.logging.history_buffer.HistoryBuffer') + b')\x81}(' + state + b'ub'


def inside(opening, closing, levels):
    return opening * levels + b'N' + closing * levels


NEW_ARRAY = call('numpy.core.multiarray._reconstruct', named('numpy.ndarray'), b'(K\x00t', b'U\x01b')


def checkpoint(content):
    """The pickle of weights and something more."""
    weights = text('state_dict') + b'}' + text('weight') + tensor() + b's'
    return b'\x80\x02}(' + weights + text('more') + content + b'u.'


def archive(path, pickled, compression=zipfile.ZIP_STORED, **more):
    """An archive as ``torch.save`` writes it, with a storage of four numbers; ``more`` are parts by name."""
    with zipfile.ZipFile(path, 'w', compression) as file:
        for name, content in {'data.pkl': pickled, 'data/0': bytes(16), 'version': b'3\n', **more}.items():
            file.writestr(f'a/{name}', content)


KEYS, FOUR_ZEROS = b'](' + text('0') + b'e', struct.pack('<q', 4) + bytes(16)


def legacy(path, content, keys=KEYS, storages=FOUR_ZEROS):
    """A file from before archives: a number, a version, the system, the checkpoint, names of storages, these."""
    begin = b'\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.' + b'\x80\x02M\xe9\x03.' + b'\x80\x02}.'
    path.write_bytes(begin + content + b'\x80\x02' + keys + b'.' + storages)
