"""Run a tool in a process that may do less than a root user's.

    limited_tool.py LIMIT TOOL [ARGUMENT ...]

LIMIT is ``rights`` (those of files hold, for root too), ``file-size`` (no file above half a megabyte), ``name`` (of a
user without one, who has root's rights) or ``memory`` (2 GB more than a process takes that has done nothing; the file
``peak`` tells what it took at most, in KB).
"""

import atexit
import ctypes
import os
import resource
import runpy
import sys
from pathlib import Path

from bad_input.hostile_images import limited_memory

VERSION_3 = 0x20080522  # of the kernel's sets of capabilities
HALF_A_MEGABYTE = 2**19


def drop_rights():
    header, nothing = (ctypes.c_uint32 * 2)(VERSION_3, 0), (ctypes.c_uint32 * 6)()
    assert ctypes.CDLL(None).capset(header, nothing) == 0


def limit_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (HALF_A_MEGABYTE, HALF_A_MEGABYTE))


def limit_memory():
    limited_memory(2 * 2**30).__enter__()
    peak = Path('peak').absolute()
    atexit.register(lambda: peak.write_text(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)))


if __name__ == '__main__':
    limits = dict(rights=drop_rights, memory=limit_memory, name=lambda: os.setresuid(54321, 0, 0))
    (limits | {'file-size': limit_files})[sys.argv[1]]()
    sys.argv = sys.argv[2:]
    sys.path.insert(0, os.path.dirname(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name='__main__')
