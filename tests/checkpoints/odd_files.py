"""Small files with values of wrong types and sizes, or that claim more than they have; none would run code.

They are written by hand, one instruction of a pickle after the other. A kind is one object of a checkpoint, or a
function that writes a file to a path.
"""

import json
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


def array(shape, code='f8'):
    """As numpy writes an array of one number."""
    kind = call('numpy.dtype', text(code), b'\x89', b'\x88')
    kind += b'(K\x03' + text('<') + b'NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb'
    new = call('numpy.core.multiarray._reconstruct', named('numpy.ndarray'), b'(K\x00t', b'U\x01b')
    data = call('_codecs.encode', text('12345678'), text('latin1'))
    return new + b'(K\x01' + shape + kind + b'\x89' + data + b'tb'


def history(log, count, length):
    state = text('_log_history') + log + text('_count_history') + count + text('max_length') + length
    return named('mmengine.logging.history_buffer.HistoryBuffer') + b')\x81}(' + state + b'ub'


WEIGHTS = text('state_dict') + b'}' + text('weight') + tensor() + b's'


def checkpoint(content):
    """The pickle of weights and something more."""
    return b'\x80\x02}(' + WEIGHTS + text('more') + content + b'u.'


def archive(path, pickled, compression=zipfile.ZIP_STORED):
    """An archive as ``torch.save`` writes it, with a storage of four numbers."""
    with zipfile.ZipFile(path, 'w', compression) as file:
        for name, content in {'data.pkl': pickled, 'data/0': bytes(16), 'version': b'3\n'}.items():
            file.writestr(f'a/{name}', content)


WIDE = tensor(numbers(100_000, 100_000), numbers(0, 0))

OBJECTS = {
    # What is met many times.
    'lists that double': doubling(90),
    # Depth.
    'deep lists': b']' * 5_000 + b'N' + b'a' * 5_000,
    'deep dicts': b'}K\x01' * 5_000 + b'N' + b's' * 5_000,
    'deep calls': named('numpy.dtype') + put(0) + b'N' + (b'\x85' + put(1) + get(0) + get(1) + b'R') * 300,
    'a long key in deep dicts': b'}' + text('k' * MEGABYTE) + put(0) + (b'}' + get(0)) * 250 + b'N' + b's' * 251,
    'a list in itself': b']' + put(0) + get(0) + b'a',
    'a dict in itself': b'}' + put(0) + b'K\x01' + get(0) + b's',
    'an object in its state': call('numpy.dtype') + put(0) + b'(' + get(0) + b'tb',
    # Lengths that are claimed.
    'a text of 4 GB': b'X\xff\xff\xff\xffshort',
    'bytes of 4 GB that are not there': b'B\xff\xff\xff\xffshort',
    'a number of 2 GB': b'\x8b\xff\xff\xff\x7fshort',
    'a place of the memo': b'N' + b'r\xff\xff\xff\xff',
    # Tensors.
    'a tensor of one number in 10^10 places': WIDE,
    'a tensor larger than its storage': tensor(numbers(10**9)),
    'a tensor behind its storage': tensor(offset=number(10**9)),
    'a tensor of negative size': tensor(numbers(-4)),
    'a tensor of endless sizes': tensor(numbers(2**2000, 2**2000), numbers(0, 0)),
    'a tensor of 100,000 dimensions': tensor(b'(' + b'K\x01' * 100_000 + b't', b'(' + b'K\x01' * 100_000 + b't'),
    'a tensor of the size NaN': tensor(b'(G' + struct.pack('>d', float('nan')) + b't'),
    'a tensor with hooks': tensor(more=b'\x89}K\x01' + named('builtins.set') + b's'),
    'a tensor of bytes as numbers': call(
        'torch._utils._rebuild_tensor_v3',
        storage(16, 'torch.storage.UntypedStorage') + ZERO + numbers(16) + ONE + NO_HOOKS + named('torch.float64'),
    ),
    'a parameter of a wide tensor': call('torch._utils._rebuild_parameter', WIDE + NO_HOOKS),
    'a parameter of a number': call('torch._utils._rebuild_parameter', number(10**9), b'\x89', b'}'),
    'a storage longer than its record': tensor(held=storage(10**9)),
    'a storage that is not there': tensor(held=storage(4, key=text('7'))),
    'something else by reference': b'(' + text('module') + text('x' * 100) + b'tQ',
    'a dict whose items are a function': (
        call('collections.OrderedDict') + b'}' + text('items') + named('builtins.set') + b'sb'
    ),
    # What numpy's and mmengine's objects claim.
    'an array larger than its data': array(numbers(10**9)),
    'an array of negative size': array(numbers(-5)),
    'an array of endless sizes': array(numbers(2**100, 2**100)),
    'an array of wide numbers': array(numbers(1), code='V4000000000'),
    'a history of wide tensors': history(WIDE, WIDE, number(10**18)),
}

STORAGE_OF_FOUR = text('storage') + named('torch.FloatStorage') + text('0') + text('cpu') + number(4)


def of_legacy(content, length=4):
    """From before archives: a number, a version, the system, the checkpoint, names of storages, these."""
    begin = b'\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.' + b'\x80\x02M\xe9\x03.' + b'\x80\x02}.'
    pickled = checkpoint(content).replace(STORAGE_OF_FOUR + b't', STORAGE_OF_FOUR + b'Nt')
    return lambda path: path.write_bytes(
        begin + pickled + b'\x80\x02](' + text('0') + b'e.' + struct.pack('<q', length) + bytes(16)
    )


def parts(count):
    """Names of one record, many times."""

    def write(path):
        archive(path, checkpoint(b'N'))
        content = path.read_bytes()
        *_, entries, length, place, _ = struct.unpack('<4s4H2IH', content[-22:])
        entry = content[place : place + 46 + len('a/data.pkl')]
        end = struct.pack('<4s4H2IH', b'PK\x05\x06', 0, 0, entries, entries, length + len(entry) * count, place, 0)
        path.write_bytes(content[:-22] + entry * count + end)

    return write


def two_directories(path):
    """Python reads the directory before the end, PyTorch the one at the place that the end names."""
    hostile, harmless = path.with_name('hostile'), path.with_name('harmless')
    archive(hostile, checkpoint(b']' * 100))
    archive(harmless, checkpoint(b'N'))
    path.write_bytes(hostile.read_bytes()[:-22] + harmless.read_bytes()[:-22] + hostile.read_bytes()[-22:])


def twice(*names):
    def write(path):
        with zipfile.ZipFile(path, 'w') as file:
            for name in names:
                file.writestr(name, checkpoint(b'N'))
            file.writestr('a/data/0', bytes(16))

    return write


def safetensors(header, data=b''):
    def write(path):
        content = header if isinstance(header, bytes) else json.dumps(header).encode()
        path.write_bytes(len(content).to_bytes(8, 'little') + content + data)

    return write


def of_shape(shape):
    return safetensors(b'{"0":{"dtype":"U8","shape":%s,"data_offsets":[0,0]}}' % shape.encode())


FOUR_BYTES = b'{"dtype":"U8","shape":[4],"data_offsets":[0,4]}'


def described(**texts):
    """Of a published file."""
    entry = dict(dtype='F32', shape=[1], data_offsets=[0, 4])
    return safetensors(dict(weight=entry, __metadata__=dict(vt='1', **texts)), bytes(4))


def with_history(*parts):
    hub = text('message_hub') + b'}' + text('log_scalars') + b'}' + text('loss') + history(*parts) + b'ss'
    return lambda path: archive(path, b'\x80\x02}(' + WEIGHTS + hub + b'u.')


FILES = {kind: lambda path, held=held: archive(path, checkpoint(held)) for kind, held in OBJECTS.items()}
FILES |= {
    'a history of a negative length': with_history(tensor(), tensor(), number(-1)),
    'a history of other counts': with_history(tensor(), tensor(numbers(2)), number(5)),
    'a history of numbers': with_history(number(5), tensor(), number(5)),
    'a history of lists': with_history(b']', b']', number(5)),
    'parts that overlap': parts(1000),
    'two directories': two_directories,
    'a part twice': twice('a/data.pkl', 'a/data.pkl'),
    'a part in capitals': twice('a/data.pkl', 'a/DATA.PKL'),
    'a part outside': twice('a/data.pkl', 'b/data.pkl'),
    'a name that ends early': twice('a/data.pkl\0', 'a/data.pkl'),
    'a pickle that unfolds': lambda path: archive(path, checkpoint(b'(' + b'N' * 10**8 + b't'), zipfile.ZIP_DEFLATED),
    'no pickle': lambda path: archive(path, b''),
    'older: views': of_legacy(b'(' + STORAGE_OF_FOUR + b'(' + text('1') + b'K\x00K\x04ttQ'),
    'older: other lengths of storages': of_legacy(b'N', 10**12),
    'safetensors of a header of 8 EB': lambda path: path.write_bytes(b'\xff' * 7 + b'\x7f{}'),
    'safetensors of endless sizes': of_shape(f'[0,{2**62},{2**62}]'),
    'safetensors larger than its data': of_shape(f'[{10**12}]'),
    'safetensors with two of a name': safetensors(b'{"a":%s,"a":%s}' % (FOUR_BYTES, FOUR_BYTES), bytes(8)),
    'safetensors that overlap': safetensors(b'{"a":%s,"b":%s}' % (FOUR_BYTES, FOUR_BYTES), bytes(4)),
    'safetensors, nested': safetensors(b'{"a":' + b'[' * MEGABYTE),
    'safetensors of deep classes': described(classes='[' * 5_000),
    'safetensors of damaged classes': described(classes='["a", '),
    'safetensors of a number as classes': described(classes='5'),
    'safetensors of a long name': described(classes=json.dumps(['x' * MEGABYTE])),
    'safetensors of a name that clears': described(classes=json.dumps(['\x1b[2J'])),
}
