"""Who may ask the page for something, and how much may be uploaded: middleware of its server."""

from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]
HOSTS = ('127.0.0.1', 'localhost')
BLOCK = 2**20  # bytes that an upload of unknown length takes at a time


class SameOrigin:
    """Refuse what other pages of a browser ask for; a link to the page may be followed.

    A browser names the page that asks in ``Origin``, and in ``Sec-Fetch-Site`` how it is related; other programs of
    this machine send neither.

    Args:
        app: what is asked.
        port: of the page.
    """

    def __init__(self, app: App, port: int) -> None:
        self.app = app
        self.origins = {f'http://{host}:{port}' for host in HOSTS}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer 403, or hand it on."""
        if scope['type'] == 'lifespan' or self._is_own(scope):
            await self.app(scope, receive, send)
        elif scope['type'] == 'websocket':
            await send(dict(type='websocket.close', code=1008))
        else:
            await PlainTextResponse('This page answers to itself alone.', 403)(scope, receive, send)

    def _is_own(self, scope: Message) -> bool:
        headers = Headers(scope=scope)
        origin, site = headers.get('origin'), headers.get('sec-fetch-site', 'none')
        if origin is not None:  # a page on a port that leads here, as by ssh -L, has that port as its host
            return origin in self.origins or (bool(headers.get('host')) and origin == f'http://{headers["host"]}')
        followed = scope.get('method') == 'GET' and scope['path'] == '/' and headers.get('sec-fetch-dest') == 'document'
        return site in ('none', 'same-origin') or followed


class TooMuchError(Exception):
    """An upload that has no room."""


class UploadLimit:
    """Limit what uploads take of the disk together, before it is written.

    Args:
        app: what is asked; an upload is written into ``folder`` and then moved into a folder below it.
        folder: of the uploads, and of what is drawn.
        most: bytes.
        files: how many; one request may have 1,000 more.
    """

    def __init__(self, app: App, folder: Path, most: int, files: int) -> None:
        self.app, self.folder, self.most, self.files = app, folder, most, files
        self.taken: dict[int, int] = {}  # bytes of the uploads that go on, by their numbers

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer 413, or hand it on."""
        if scope['type'] != 'http' or not scope['path'].rstrip('/').endswith('/upload'):
            await self.app(scope, receive, send)
            return
        number, received = id(scope), 0
        self.taken[number] = 0

        async def count() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get('body', b''))
            if received > self.taken[number]:
                self._take(number, max(received - self.taken[number], BLOCK))
            return message

        try:
            self._take(number, _length(scope))
            await self.app(scope, count, send)
        except TooMuchError:
            line = f'The uploads of this page may have {self.most // 2**20} MB and {self.files} files together.'
            await PlainTextResponse(line, 413)(scope, receive, send)
        finally:
            del self.taken[number]
            if not self.taken:
                self._remove_unfinished()

    def _take(self, number: int, size: int) -> None:
        sizes = [file.stat().st_size for file in self.folder.glob('*/**/*') if file.is_file()]
        if sum(sizes) + sum(self.taken.values()) + size > self.most or len(sizes) >= self.files:
            raise TooMuchError
        self.taken[number] += size

    def _remove_unfinished(self) -> None:
        """Take away what an upload that was cut off has left."""
        for file in self.folder.glob('*'):
            if file.is_file():
                file.unlink(missing_ok=True)


def _length(scope: Message) -> int:
    text = Headers(scope=scope).get('content-length', '0')
    return int(text) if text.isdecimal() else 0
