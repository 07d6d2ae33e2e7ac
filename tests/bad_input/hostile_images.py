"""Small files whose images take gigabytes, or that no decoder takes for an image."""

import contextlib
import os
import resource
import struct
import zlib
from pathlib import Path

import cv2
import numpy as np
from bad_input.images import DAMAGED, RGB, encode


def png(width, height, depth=8, colour=0, whole=True):
    """A black PNG that was never unpacked; without its pixels if not ``whole``."""
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    pack, row = zlib.compressobj(1), bytes(1 + -(-width * depth * channels // 8))
    pixels = b''.join(pack.compress(row) for _ in range(height if whole else 1)) + pack.flush()
    header = struct.pack('>IIBBBBB', width, height, depth, colour, 0, 0, 0)
    palette = [(b'PLTE', bytes(6))] if colour == 3 else []
    chunks = [(b'IHDR', header), *palette, (b'IDAT', pixels), (b'IEND', b'')]
    return b'\x89PNG\r\n\x1a\n' + b''.join(map(chunk, *zip(*chunks)))


def chunk(kind, content):
    return struct.pack('>I', len(content)) + kind + content + struct.pack('>I', zlib.crc32(kind + content))


def bmp(width, height, compression=0):
    """A BMP without pixels; compression 1 is of runs, and ends at once."""
    header = struct.pack('<IiiHHIIiiII', 40, width, height, 1, 8, compression, 4, 1, 1, 256, 0)
    return b'BM' + struct.pack('<IHHI', 1082, 0, 0, 1078) + header + bytes(1024) + b'\0\1\0\1'


def tiff(width, height, bits=8, compression=1):
    """A TIFF of one strip, without pixels."""
    tags = {256: width, 257: height, 258: bits, 259: compression, 262: 1, 273: 200, 277: 1, 278: height, 279: 8}
    entries = b''.join(struct.pack('<HHII', tag, 4, 1, value) for tag, value in tags.items())
    return (b'II*\0' + struct.pack('<IH', 8, len(tags)) + entries + bytes(4)).ljust(208, b'\0')


def jpeg_claiming(width, height):
    """A JPEG whose header names other sides than its pixels."""
    content = bytearray(encode(RGB, 'JPEG'))
    place = content.index(b'\xff\xc0') + 5
    content[place : place + 4] = struct.pack('>HH', height, width)
    return bytes(content)


def gif_claiming(width, height):
    content = bytearray(encode(RGB, 'GIF'))
    content[6:10] = struct.pack('<HH', width, height)
    return bytes(content)


def jpeg_of(width, height):
    return cv2.imencode('.jpg', np.zeros((height, width), np.uint8))[1].tobytes()


def text_bomb():
    content = encode(RGB)
    return content[:33] + chunk(b'zTXt', b'Comment\0\0' + zlib.compress(bytes(50_000_000))) + content[33:]


# Name and content of files that take gigabytes once decoded, or enlarged to a shorter side of 256 pixels.
UNFOLDING = {
    'a long line': ('line.png', lambda: png(50_000, 1, colour=2)),
    'a long line of JPEG': ('line.jpg', lambda: jpeg_of(60_000, 2)),
    'a strip': ('strip.png', lambda: png(30_000, 200)),
    'a bit a pixel, below the limit of OpenCV': ('fewer bits.png', lambda: png(30_000, 30_000, depth=1)),
    'a palette': ('palette.png', lambda: png(20_000, 20_000, depth=1, colour=3)),
    '16 bits and alpha': ('deep.png', lambda: png(14_000, 14_000, depth=16, colour=6, whole=False)),
    'JPEG': ('large.jpg', lambda: jpeg_of(13_500, 13_300)),
    'a header of JPEG': ('claims.jpg', lambda: jpeg_claiming(65_500, 65_500)),
    'a header of GIF': ('claims.png', lambda: gif_claiming(65_535, 65_535)),
    'BMP': ('claims.bmp', lambda: bmp(30_000, 30_000)),
    'BMP of runs': ('runs.bmp', lambda: bmp(30_000, 30_000, compression=1)),
    'BMP of a line': ('line.bmp', lambda: bmp(2_000_000_000, 1, compression=1)),
    'TIFF': ('claims.tif', lambda: tiff(60_000, 60_000)),
    'TIFF of a bit a pixel': ('bits.tif', lambda: tiff(200_000, 200_000, bits=1, compression=8)),
    'PPM': ('claims.ppm', lambda: b'P6 40000 40000 255\n\0\0\0'),
    'PBM': ('bits.ppm', lambda: b'P4 90000 90000\n\0\0\0'),
    'PGM in text': ('text.ppm', lambda: b'P2 50000 50000 255\n0 0 0'),
    'HDR': ('radiance.png', lambda: b'#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 30000 +X 30000\n' + bytes(40)),
    'PFM': ('floats.png', lambda: b'PF\n30000 30000\n-1.0\n' + bytes(40)),
    'Sun raster': ('sun.png', lambda: struct.pack('>8I', 0x59A66A95, 30_000, 30_000, 24, 8, 2, 0, 0) + bytes(40)),
    'WebP': ('claims.webp', lambda: b'RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0' + b'\xff\xff\xff' * 2 + bytes(8)),
}
# Files that are no images, in other ways than those of ``DAMAGED``.
REFUSED = {
    'a text of 50 MB': ('text bomb.png', text_bomb),
    'no width': ('flat.bmp', lambda: bmp(0, 10)),
    'a height below zero that has no counterpart': ('below.bmp', lambda: bmp(10, -(2**31))),
    'a header alone': ('header.png', lambda: png(40, 40)[:33]),
    'a signature alone': ('signature.png', lambda: b'\x89PNG\r\n\x1a\n'),
    'HTML': ('page.jpg', lambda: b'<html><img src="http://a.example/b.jpg"></html>'),
    'a zip': ('archive.png', lambda: b'PK\x03\x04' + bytes(100)),
    'random bytes': ('random.webp', lambda: np.random.default_rng(0).bytes(3000)),
}


def write_all(folder):
    """Write every one of them, and those of ``DAMAGED``; their paths."""
    contents = {name: make() for name, make in (UNFOLDING | REFUSED).values()}
    contents |= {f'{number} {name}': content for number, (name, content) in enumerate(DAMAGED.values())}
    for name, content in contents.items():
        assert len(content) < 3_000_000
        (folder / name).write_bytes(content)
    return [folder / name for name in contents]


@contextlib.contextmanager
def limited_memory(num_bytes):
    """Let this process take so many bytes more than it has."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path('/proc/self/statm').read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * os.sysconf('SC_PAGE_SIZE') + num_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
