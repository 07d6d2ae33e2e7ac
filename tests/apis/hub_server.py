"""A hub on this machine: repositories in memory, the few addresses that pushing and fetching a model ask for."""

import base64
import hashlib
import json
import re
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from local_server import running

TOKEN = 'Bearer hf_of_this_test'


class Hub(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        if self.headers.get('Authorization') != TOKEN:
            return self.answer({'error': 'Invalid username or password.'}, status=401)
        if self.path == '/api/repos/create':
            name = json.loads(body)
            self.server.repositories.setdefault(f'me/{name["name"]}', {})
            return self.answer(dict(url=f'{self.server.address}/me/{name["name"]}'))
        if self.path == '/api/validate-yaml':
            return self.answer(dict(errors=[], warnings=[]))
        repository, action = re.fullmatch(r'/api/models/(me/\w+)/(preupload|commit)/main', self.path).groups()
        if action == 'preupload':
            names = [file['path'] for file in json.loads(body)['files']]
            return self.answer(
                dict(files=[dict(path=name, uploadMode='regular', shouldIgnore=False) for name in names])
            )
        for line in map(json.loads, body.splitlines()):
            if line['key'] == 'file':
                content = base64.b64decode(line['value']['content'])
                self.server.repositories[repository][line['value']['path']] = content
        url = f'{self.server.address}/{repository}/commit/{self.sha(repository)}'
        return self.answer(dict(commitUrl=url, commitOid=self.sha(repository), success=True))

    def do_GET(self):
        fetched = re.fullmatch(r'/(me/\w+)/resolve/\w+/(.+)', self.path)
        files = self.server.repositories.get(fetched and fetched[1])
        if files is None:
            return self.answer(dict(error='Repository not found'), 404, {'X-Error-Code': 'RepoNotFound'})
        if fetched[2] not in files:
            return self.answer(dict(error='Entry not found'), 404, {'X-Error-Code': 'EntryNotFound'})
        content = files[fetched[2]]
        etag = hashlib.sha1(content).hexdigest()
        return self.answer(content, headers={'ETag': f'"{etag}"', 'X-Repo-Commit': self.sha(fetched[1])})

    do_HEAD = do_GET

    def sha(self, repository):
        return hashlib.sha1(repr(sorted(self.server.repositories[repository].items())).encode()).hexdigest()

    def answer(self, content, status=200, headers=()):
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {'Content-Length': len(data), **dict(headers)}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(data)

    def log_message(self, *_):
        pass


@contextmanager
def serve():
    """The hub at ``server.address``, with its ``repositories``: by their names, the contents of files by theirs."""
    server = ThreadingHTTPServer(('127.0.0.1', 0), Hub)
    server.address, server.repositories = f'http://127.0.0.1:{server.server_port}', {}
    with running(server):
        yield server
