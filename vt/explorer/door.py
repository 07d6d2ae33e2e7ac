"""Who may ask the page for something, and how much may be uploaded: middleware of its server."""

from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

HOSTS = ('127.0.0.1', 'localhost')


class SameOrigin:
    """Refuse what other pages of a browser ask for; a link to the page may be followed.

    A browser names the page that asks in ``Origin``, and in ``Sec-Fetch-Site`` how it is related; other programs of
    this machine send neither.

    Args:
        app: what is asked.
        port: of the page.
    """

    def __init__(self, app: ASGIApp, port: int) -> None:
        self.app = app
        self.origins = {f'http://{host}:{port}' for host in HOSTS}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 403, or hand it on."""
        if scope['type'] == 'lifespan' or self._is_own(scope):
            await self.app(scope, receive, send)
        elif scope['type'] == 'websocket':
            await send(dict(type='websocket.close', code=1008))
        else:
            await PlainTextResponse('This page answers to itself alone.', 403)(scope, receive, send)

    def _is_own(self, scope: Scope) -> bool:
        headers = Headers(scope=scope)
        origin, site = headers.get('origin'), headers.get('sec-fetch-site', 'none')
        if origin is not None:  # a page on a port that leads here, as by ssh -L, has that port as its host
            return origin in self.origins or (bool(headers.get('host')) and origin == f'http://{headers["host"]}')
        followed = scope.get('method') == 'GET' and scope['path'] == '/' and headers.get('sec-fetch-dest') == 'document'
        return site in ('none', 'same-origin') or followed


class UploadLimit:
    """Limit what uploads take of the disk together, before it is written; one that hides its length is refused.

    Args:
        app: what is asked; an upload is written into ``folder`` and then moved into a folder below it.
        folder: of the uploads, and of what is drawn.
        most: bytes.
        files: how many; one request may have 1,000 more.
    """

    def __init__(self, app: ASGIApp, folder: Path, most: int, files: int) -> None:
        self.app, self.folder, self.most, self.files = app, folder, most, files
        self.begun: dict[int, int] = {}  # bytes of the uploads that go on, by their numbers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 413, or hand it on."""
        if scope['type'] != 'http' or not scope['path'].rstrip('/').endswith('/upload'):
            await self.app(scope, receive, send)
        elif not self._has_room(headers := Headers(scope=scope)):
            line = f'The uploads of this page may have {self.most // 2**20} MB and {self.files} files together.'
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
        length = headers.get('content-length', '')  # which the server holds a request to, unless it comes in chunks
        if 'transfer-encoding' in headers or not length.isdecimal():
            return False
        sizes = [file.stat().st_size for file in self.folder.glob('*/**/*') if file.is_file()]
        return sum(sizes) + sum(self.begun.values()) + int(length) <= self.most and len(sizes) < self.files

    def _remove_unfinished(self) -> None:
        """Take away what an upload that was cut off has left."""
        for file in self.folder.glob('*'):
            if file.is_file():
                file.unlink(missing_ok=True)
