"""Middleware of the page's server: origins that may send requests, and limits of uploads."""

from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

HOSTS = ('127.0.0.1', 'localhost')


class SameOrigin:
    """Reject requests of other web pages in the user's browser with status 403, except links to this page.

    A browser states the page that sends a request in ``Origin``, and its relation in ``Sec-Fetch-Site``. Other programs
    on this machine send neither.

    Args:
        app: the application.
        port: port of the page.
    """

    def __init__(self, app: ASGIApp, port: int) -> None:
        self.app = app
        self.origins = {f'http://{host}:{port}' for host in HOSTS}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer 403."""
        if scope['type'] == 'lifespan' or self._is_own(scope):
            await self.app(scope, receive, send)
        elif scope['type'] == 'websocket':
            await send(dict(type='websocket.close', code=1008))
        else:
            await PlainTextResponse('Requests of other pages are not allowed.', 403)(scope, receive, send)

    def _is_own(self, scope: Scope) -> bool:
        headers = Headers(scope=scope)
        origin, site = headers.get('origin'), headers.get('sec-fetch-site', 'none')
        if origin is not None:  # with a forwarded port (ssh -L), the host has the other port
            return origin in self.origins or (bool(headers.get('host')) and origin == f'http://{headers["host"]}')
        followed = scope.get('method') == 'GET' and scope['path'] == '/' and headers.get('sec-fetch-dest') == 'document'
        return site in ('none', 'same-origin') or followed


class UploadLimit:
    """Limit the total size and number of uploads before they are written; uploads must state their length.

    Args:
        app: the application; it writes an upload into ``folder`` and then moves it into a subfolder.
        folder: folder of the uploads and of figures.
        most: maximum size of all uploads in bytes.
        files: maximum number of files; a single request may exceed it by 1,000.
    """

    def __init__(self, app: ASGIApp, folder: Path, most: int, files: int) -> None:
        self.app, self.folder, self.most, self.files = app, folder, most, files
        self.begun: dict[int, int] = {}  # bytes of each upload in progress

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer 413."""
        if scope['type'] != 'http' or not scope['path'].rstrip('/').endswith('/upload'):
            await self.app(scope, receive, send)
        elif not self._has_room(headers := Headers(scope=scope)):
            line = f'The uploads of this page are limited to {self.most // 2**20} MB and {self.files} files in total.'
            await PlainTextResponse(line, 413)(scope, receive, send)
        else:
            self.begun[id(scope)] = int(headers['content-length'])
            try:
                await self.app(scope, receive, send)
            finally:
                del self.begun[id(scope)]
                if not self.begun:
                    self._remove_unfinished()

    def _has_room(self, headers: Headers) -> bool:
        length = headers.get('content-length', '')  # the server enforces it, except for chunked requests
        if 'transfer-encoding' in headers or not length.isdecimal():
            return False
        sizes = [file.stat().st_size for file in self.folder.glob('*/**/*') if file.is_file()]
        return sum(sizes) + sum(self.begun.values()) + int(length) <= self.most and len(sizes) < self.files

    def _remove_unfinished(self) -> None:
        """Remove the files of interrupted uploads."""
        for file in self.folder.glob('*'):
            if file.is_file():
                file.unlink(missing_ok=True)
