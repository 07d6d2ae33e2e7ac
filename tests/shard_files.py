"""Shards that a test writes itself, and a server that sends parts of files."""

import os
import tarfile
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO

import cv2
import numpy as np
from local_server import running


def make_image(seed):
    return np.random.default_rng(seed).integers(0, 256, (24, 30, 3), np.uint8)


def encode(seed):
    return cv2.imencode('.png', make_image(seed))[1].tobytes()


def write_tar(path, members):
    """A tar of members by their names."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, 'w') as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, BytesIO(content))


def write_shards(folder, seeds=range(6), per_shard=3):
    """An image and its label, the seed's rest by 3, a sample."""
    for seed in seeds:
        shard = [each for each in seeds if each // per_shard == seed // per_shard]
        members = [(f'{each:04}.{kind}', content) for each in shard for kind, content in of_sample(each)]
        write_tar(folder / f'{seed // per_shard:06}.tar', members)


def of_sample(seed):
    return ('png', encode(seed)), ('cls', str(seed % 3).encode())


class Handler(SimpleHTTPRequestHandler):
    """Files of a folder, or the parts that are asked for."""

    protocol_version = 'HTTP/1.1'

    def do_GET(self):
        if 'Range' not in self.headers or not self.server.sends_parts:
            return super().do_GET()
        first, last = map(int, self.headers['Range'].removeprefix('bytes=').split('-'))
        with open(self.translate_path(self.path), 'rb') as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(first)
            content = file.read(last - first + 1)
        self.server.parts += 1
        self.send_response(206)
        self.send_header('Content-Range', f'bytes {first}-{first + len(content) - 1}/{size}')
        self.send_header('Content-Length', str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@contextmanager
def serve(folder, sends_parts=True):
    """A server of a folder: its ``parts`` are how many it sent."""
    server = ThreadingHTTPServer(('127.0.0.1', 0), partial(Handler, directory=str(folder)))
    server.sends_parts, server.parts, server.address = sends_parts, 0, f'http://127.0.0.1:{server.server_port}'
    with running(server):
        yield server
