"""Small files with values of wrong types and sizes, or that claim more than they have; none would run code.

A kind is one object of a checkpoint, as the instructions of its pickle, or a function that writes a file to a path.
"""

import json
import struct
import zipfile

from checkpoints.instructions import (
    MEGABYTE,
    archive,
    array,
    call,
    checkpoint,
    doubling,
    get,
    history,
    inside,
    legacy,
    named,
    number,
    numbers,
    put,
    storage,
    tensor,
    text,
)

WIDE = tensor(numbers(100_000, 100_000), numbers(0, 0))


OBJECTS = {
    # Calls.
    # What is met many times.
    'lists that double': doubling(90),
    # Depth.
    'deep lists': inside(b']', b'a', 5_000),
    'deep tuples': inside(b'', b'\x85', 5_000),
    'deep dicts': inside(b'}K\x01', b's', 5_000),
    'deep calls': named('numpy.dtype')
    + put(0)
    + b'N'
    + b''.join(b'\x85' + put(1) + get(0) + get(1) + b'R' for _ in range(300)),
    'a long key in deep dicts': b'}' + text('k' * MEGABYTE) + put(0) + (b'}' + get(0)) * 250 + b'N' + b's' * 251,
    'a list in itself': b']' + put(0) + get(0) + b'a',
    'a dict in itself': b'}' + put(0) + b'K\x01' + get(0) + b's',
    'lists in each other': b'(]' + put(0) + b']' + put(1) + get(0) + b'a' + get(0) + get(1) + b'at',
    'an object in its state': call('numpy.dtype') + put(0) + b'(' + get(0) + b'tb',
    # Lengths that are claimed.
    'a text of 4 GB': b'X\xff\xff\xff\xffshort',
    'a text of 8 EB': b'\x8d' + b'\xff' * 7 + b'\x7fshort',
    'bytes of 4 GB that are not there': b'B\xff\xff\xff\xffshort',
    'a bytearray of 8 EB': b'\x96' + b'\xff' * 7 + b'\x7fshort',
    'a number of 2 GB': b'\x8b\xff\xff\xff\x7fshort',
    'a place of the memo': b'N' + b'r\xff\xff\xff\xff',
    # Tensors.
    'a tensor of one number in 10^10 places': WIDE,
    'a tensor larger than its storage': tensor(numbers(10**9)),
    'a tensor behind its storage': tensor(offset=number(10**9)),
    'a tensor before its storage': tensor(offset=number(-1)),
    'a tensor of negative size': tensor(numbers(-4)),
    'a tensor of negative strides': tensor(numbers(4), numbers(-1)),
    'a tensor of endless sizes': tensor(numbers(2**2000, 2**2000), numbers(0, 0)),
    'a tensor of 100,000 dimensions': tensor(b'(' + b'K\x01' * 100_000 + b't', b'(' + b'K\x01' * 100_000 + b't'),
    'a tensor of the size NaN': tensor(b'(G' + struct.pack('>d', float('nan')) + b't'),
    'a tensor of the size true': tensor(b'\x88\x85'),
    'a tensor of no size': tensor(b'N'),
    'a tensor with hooks': tensor(more=b'\x89}K\x01' + named('builtins.set') + b's'),
    'a tensor of bytes as numbers': call(
        'torch._utils._rebuild_tensor_v3',
        storage(16, 'torch.storage.UntypedStorage'),
        number(0),
        numbers(16),
        numbers(1),
        b'\x89',
        call('collections.OrderedDict'),
        named('torch.float64'),
    ),
    'a parameter with a state': call(
        'torch._utils._rebuild_parameter_with_state',
        tensor(),
        b'\x89',
        b'}',
        b'}' + text('numel') + named('builtins.set') + b's',
    ),
    'a parameter of a wide tensor': call(
        'torch._utils._rebuild_parameter', WIDE, b'\x89', call('collections.OrderedDict')
    ),
    'a parameter of a number': call('torch._utils._rebuild_parameter', number(10**9), b'\x89', b'}'),
    'a sparse tensor': call(
        'torch._utils._rebuild_sparse_tensor',
        call('torch.serialization._get_layout', text('torch.sparse_coo')),
        b'(' + tensor() + tensor() + numbers(10**9, 10**9) + b't',
    ),
    'a meta tensor': call(
        'torch._utils._rebuild_meta_tensor_no_storage', named('torch.float32'), numbers(10**15), numbers(1), b'\x89'
    ),
    'a subclass without memory': call(
        'torch._utils._rebuild_wrapper_subclass',
        named('torch.Tensor'),
        named('torch.float32'),
        numbers(10**9),
        numbers(0),
        number(0),
        b'N',
        text('cpu'),
        b'\x89',
    ),
    'a storage longer than its record': tensor(held=storage(10**9)),
    'a storage of negative length': tensor(held=storage(-4)),
    'a storage that is not there': tensor(held=storage(4, key=text('7'))),
    'a storage of no type': tensor(held=storage(4, 'torch.float32')),
    'something else by reference': b'(' + text('module') + text('x' * 100) + b'tQ',
    'a dict whose items are a function': call('collections.OrderedDict')
    + b'}'
    + text('items')
    + named('builtins.set')
    + b'sb',
    # What numpy's and mmengine's objects claim.
    'an array larger than its data': array(numbers(10**9)),
    'an array of negative size': array(numbers(-5)),
    'an array of endless sizes': array(numbers(2**100, 2**100)),
    'an array of wide numbers': array(numbers(1), code='V4000000000'),
    'a history of wide tensors': history(WIDE, WIDE, number(10**18)),
}


def of_legacy(content, **options):
    content = checkpoint(content).replace(text('cpu') + number(4) + b't', text('cpu') + number(4) + b'Nt')
    return lambda path: legacy(path, content, **options)


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


def entries(count, shape='[0]'):
    entry = '{"dtype":"U8","shape":%s,"data_offsets":[0,0]}' % shape  # noqa: UP031
    return b'{' + ','.join(f'"{index}":{entry}' for index in range(count)).encode() + b'}'


def described(**texts):
    """Of a published file."""
    entry = dict(dtype='F32', shape=[1], data_offsets=[0, 4])
    return safetensors(dict(weight=entry, __metadata__=dict(vt='1', **texts)), bytes(4))


def with_history(*parts):
    hub = text('message_hub') + b'}' + text('log_scalars') + b'}' + text('loss') + history(*parts) + b'ss'
    return lambda path: archive(
        path, b'\x80\x02}(' + text('state_dict') + b'}' + text('weight') + tensor() + b's' + hub + b'u.'
    )


WHOLE = {
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
    'no parts': twice(),
    'a pickle that unfolds': lambda path: archive(path, checkpoint(b'(' + b'N' * 10**8 + b't'), zipfile.ZIP_DEFLATED),
    'no pickle': lambda path: archive(path, b''),
    'older: views': of_legacy(
        b'('
        + text('storage')
        + named('torch.FloatStorage')
        + text('0')
        + text('cpu')
        + number(4)
        + b'('
        + text('1')
        + b'K\x00K\x04ttQ'
    ),
    'older: other lengths of storages': of_legacy(b'N', storages=struct.pack('<q', 10**12) + bytes(16)),
    'older: negative lengths of storages': of_legacy(b'N', storages=struct.pack('<q', -1) + bytes(16)),
    'safetensors of a header of 8 EB': lambda path: path.write_bytes(b'\xff' * 7 + b'\x7f{}'),
    'safetensors of endless sizes': safetensors(entries(1, f'[0,{2**62},{2**62}]')),
    'safetensors larger than its data': safetensors(entries(1, f'[{10**12}]')),
    'safetensors of negative sizes': safetensors(entries(1, '[-1]')),
    'safetensors with two of a name': safetensors(
        b'{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}',
        bytes(8),
    ),
    'safetensors that overlap': safetensors(
        b'{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}',
        bytes(4),
    ),
    'safetensors, nested': safetensors(b'{"a":' + b'[' * MEGABYTE),
    'safetensors of deep classes': described(classes='[' * 5_000),
    'safetensors of damaged classes': described(classes='["a", '),
    'safetensors of a number as classes': described(classes='5'),
    'safetensors of a long name': described(classes=json.dumps(['x' * MEGABYTE])),
    'safetensors of a name that clears': described(classes=json.dumps(['\x1b[2J'])),
}
