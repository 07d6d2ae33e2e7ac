"""Call ``tools/`` many times without importing everything each time: real processes, forked from one that has it all.

A fork has its own process number, files and signals, so it can be killed, and resumed by another one, as any process.
"""

import ast
import atexit
import multiprocessing
import os
import runpy
import signal
import sys
import tempfile
import time
from pathlib import Path
from subprocess import CompletedProcess

from tool_runner import ROOT

PRELOADED = ['torch', *(f'vt.commands.{name}' for name in ('train', 'test', 'predict'))]
PRELOADED += ['mmpretrain.models', 'mmpretrain.datasets', 'mmseg.models']
PRELOADED += ['matplotlib.pyplot', 'scipy.stats', 'sklearn.datasets']
_context = multiprocessing.get_context('forkserver')
_context.set_forkserver_preload(PRELOADED)


class ForkedTool:
    """``tools/<tool>`` in a process of its own, with what it has printed so far."""

    def __init__(self, tool, *arguments, cwd, options=(), env=None):
        arguments = [str(argument) for argument in arguments]
        if options:
            arguments += ['--cfg-options', *options]
        self.folder = tempfile.TemporaryDirectory()
        self.outputs = [Path(self.folder.name) / name for name in ('stdout', 'stderr')]
        target = (str(ROOT / 'tools' / tool), arguments, str(cwd), dict(env or os.environ), *self.outputs)
        self.process = _context.Process(target=_run, args=target)
        self.process.start()

    @property
    def stdout(self):
        return self.outputs[0].read_text() if self.outputs[0].exists() else ''

    @property
    def stderr(self):
        return self.outputs[1].read_text() if self.outputs[1].exists() else ''

    def send_signal(self, number):
        if self.process.is_alive():
            os.kill(self.process.pid, number)

    def wait_for(self, text):
        """Until it has printed a text."""
        while text not in self.stdout and self.process.is_alive():
            time.sleep(0.01)
        assert text in self.stdout, self.stderr

    def wait(self, timeout=None):
        """Its result, as of ``subprocess.run``; the exit code of a killed process is the signal's number below zero."""
        self.process.join(timeout)
        return CompletedProcess(self.process.name, self.process.exitcode, self.stdout, self.stderr)


def run_forked(tool, *arguments, cwd, options=(), env=None):
    """As ``tool_runner.run``."""
    return ForkedTool(tool, *arguments, cwd=cwd, options=options, env=env).wait()


def fork_command(command, stdout, env, **kwargs):
    """In the place of ``subprocess.run`` for ``python tools/TOOL ...``."""
    result = run_forked(*command[1:], cwd=Path.cwd(), env=env)
    stdout.write(result.stdout + result.stderr)
    return result


CHANGES = (os.mkdir, os.replace, os.unlink, os.rmdir)
CALLS = ('open', 'write', 'write_record', 'close', 'fsync', 'replace', 'rename', 'mkdir', 'unlink', 'rmdir', 'flock')


def steps_of(function, *arguments, killed_at=None, names_only=False):
    """The number of times that a file is about to change or has changed, at one of which the process may be killed.

    With ``names_only`` when files and folders are made, renamed and removed.
    """
    steps = 0

    def trace(frame, event, called):
        nonlocal steps
        is_change = event in ('c_call', 'c_return') and called.__name__ in CALLS
        steps += is_change and not (names_only and called not in CHANGES)
        if steps == killed_at:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(trace)
    function(*arguments)
    sys.setprofile(None)
    return steps


def leave_configs_unformatted():
    """mmengine formats the text of a run's config for its log and for each checkpoint: half of a short run's time."""
    from yapf.yapflib import yapf_api

    def check_syntax(text, **style):
        ast.parse(text)
        return text, True

    yapf_api.FormatCode = check_syntax


def _run(path, arguments, cwd, env, stdout, stderr):
    for stream, output in ((sys.stdout, stdout), (sys.stderr, stderr)):
        os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream.fileno())
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    leave_configs_unformatted()
    tempfile.tempdir = None  # which the environment may name
    multiprocessing.set_start_method('fork', force=True)  # as in a process that a user starts
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored under nohup
    sys.argv = [path, *arguments]
    try:
        runpy.run_path(path, run_name='__main__')
    finally:
        atexit._run_exitfuncs()  # multiprocessing leaves them out
