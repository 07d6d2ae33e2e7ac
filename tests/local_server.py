"""A server on this machine for the time of a test."""

import threading
from contextlib import contextmanager


@contextmanager
def running(server):
    """Let a server answer in a thread, and close it at the end."""
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
