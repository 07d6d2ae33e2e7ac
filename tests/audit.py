"""What the interpreter tells of code that reads untrusted files: imports, opened files, processes, addresses."""

import contextlib
import os
import sys

WATCHED = ('import', 'exec', 'compile', 'open', 'os', 'subprocess', 'socket', 'urllib', 'pickle', 'marshal', 'ctypes')
WATCHED += ('shutil', 'tempfile', 'glob', 'ftplib', 'http', 'webbrowser', 'sqlite3', 'mmap', 'pty', 'builtins')
QUIET = ('os.listdir', 'os.scandir', 'builtins.id')


class Watch:
    """Notes the interpreter's events within its blocks, but for opened files of a folder.

    What happens in a block of ``harmless()``, such as imports on first use, is not noted again in one of ``events()``.
    """

    def __init__(self, folder):
        self.folder, self.harmless_events, self.noted = os.path.realpath(folder), set(), None
        sys.addaudithook(self._note)  # for good: hooks cannot be removed

    @contextlib.contextmanager
    def harmless(self):
        with self.events() as noted:
            yield
        self.harmless_events.update(noted)

    @contextlib.contextmanager
    def events(self):
        self.noted = noted = []
        try:
            yield noted
        finally:
            self.noted = None

    def _note(self, event, arguments):
        if self.noted is None or event in QUIET or event.partition('.')[0] not in WATCHED:
            return
        what = getattr(arguments[0], 'co_filename', None) or str(arguments[0])[:200] if arguments else ''
        is_own = event == 'open' and os.path.realpath(what).startswith(self.folder)
        if not is_own and (event, what) not in self.harmless_events:
            self.noted.append((event, what))
