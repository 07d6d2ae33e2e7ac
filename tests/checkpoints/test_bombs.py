"""Files that would take all memory or time are refused in one line before they do; what is accepted stays small."""

import json
import os
import random
import resource
import subprocess
import sys
import zipfile
from functools import partial

import pytest
import torch
from checkpoints.bombs import BOMB_FILES, HARMLESS, LARGE, OBJECTS
from checkpoints.instructions import MEGABYTE, archive, call, checkpoint, number
from mmengine.logging import HistoryBuffer
from tool_runner import ROOT

from vt.checkpoints.loading import weights_only
from vt.checkpoints.reading import load_checkpoint
from vt.errors import UserError

GIGABYTE = 10**9


def bounded(function, *arguments):
    """What a function raised, if anything, the seconds that it computed, and by how many MB memory grew; forked."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        with open(writing, 'w') as results:
            results.write(json.dumps(_measured(function, *arguments)))
        os._exit(0)
    os.close(writing)
    with open(reading) as results:
        content = results.read()
    _, status = os.waitpid(child, 0)
    assert (status, bool(content)) == (0, True), f'it ended by {os.waitstatus_to_exitcode(status)}'
    return json.loads(content)


def _measured(function, *arguments):
    with open('/proc/self/statm') as pages:
        taken = int(pages.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + 2 * GIGABYTE,) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
    before = resource.getrusage(resource.RUSAGE_SELF)
    try:
        error = function(*arguments) and None
    except Exception as raised:
        error = f'{type(raised).__name__}: {raised}'
    after = resource.getrusage(resource.RUSAGE_SELF)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return error, seconds, (after.ru_maxrss - before.ru_maxrss) / 1000


FILES = {kind: lambda path, held=held: archive(path, checkpoint(held)) for kind, held in OBJECTS.items()} | BOMB_FILES


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('kind', FILES)
def test_it_is_one_line_and_takes_nothing(kind, tmp_path):
    path = tmp_path / ('a.safetensors' if 'safetensors' in kind else 'a.pth')
    FILES[kind](path)
    error, seconds, megabytes = bounded(load_checkpoint, path)
    assert (seconds < 15, megabytes < 120) == (True, True), (seconds, megabytes)
    if kind in HARMLESS:
        assert error is None
    else:
        assert error.startswith(('CheckpointError: ', 'UserError: '))
        assert str(path) in error
        assert error.isprintable()
        assert len(error) < 600 + len(str(path))


@pytest.mark.parametrize('kind', LARGE)
def test_the_most_that_is_read_is_little(kind, tmp_path):
    path = tmp_path / 'a.pth'
    archive(path, checkpoint(LARGE[kind]))
    error, seconds, megabytes = bounded(load_checkpoint, path)
    assert error is None
    assert (seconds < 30, megabytes < 200) == (True, True), (seconds, megabytes)


def test_without_the_bounds_it_takes_all(tmp_path):
    """What PyTorch's own weights-only reader does."""
    archive(tmp_path / 'a.pth', checkpoint(call('builtins.bytearray', number(GIGABYTE))))
    error, _, megabytes = bounded(lambda: torch.load(tmp_path / 'a.pth', weights_only=True))
    assert error is None
    assert megabytes > 500


def test_the_flag_still_trusts(tmp_path):
    archive(tmp_path / 'a.pth', checkpoint(call('builtins.bytearray', number(MEGABYTE))))
    with weights_only(unless=True):
        assert len(load_checkpoint(tmp_path / 'a.pth')['more']) == MEGABYTE


@pytest.mark.parametrize('tool', [['publish.py', '{}', 'out.safetensors'], ['test.py', '{config}', '{}']])
def test_tools_end_in_one_line(tool, tmp_path):
    """In a process of its own, which may not have the memory that the file asks for."""
    path, config = tmp_path / 'a.pth', ROOT / 'configs/vt_resnet/vt-resnet18_digits.py'
    archive(path, checkpoint(call('builtins.bytearray', number(16 * GIGABYTE))))
    command = [sys.executable, ROOT / 'tools' / tool[0], *(part.format(path, config=config) for part in tool[1:])]
    limit = (12 * GIGABYTE, resource.getrlimit(resource.RLIMIT_AS)[1])
    limited = partial(resource.setrlimit, resource.RLIMIT_AS, limit)
    process = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, preexec_fn=limited)
    lines = [line for line in process.stderr.splitlines() if line.startswith('error: ')]
    assert process.returncode == 1
    assert len(lines) == 1
    assert 'it asks for builtins.bytearray' in lines[0]


def real_checkpoint(path, **options):
    """With what mmengine's own files hold."""
    layer = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(layer.parameters())
    layer(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    held = dict(
        meta=dict(epoch=1, iter=2, dataset_meta=dict(classes=('a', 'b'), palette=[[0, 0, 0], [1, 2, 3]])),
        state_dict=layer.state_dict(),
        optimizer=optimizer.state_dict(),
        message_hub=dict(log_scalars=dict(loss=HistoryBuffer([1.0, 0.5], [1, 1])), runtime_info={}, resumed_keys={}),
    )
    torch.save(held, path, **options)
    return path


def changed(content, chance):
    """A pickle with a few bytes changed, put in, taken out or repeated."""
    content = bytearray(content)
    for _ in range(chance.choice([1, 1, 2, 5])):
        place, length = chance.randrange(len(content)), chance.randrange(1, 9)
        kind = chance.randrange(4)
        if kind == 0:
            content[place] = chance.choice(
                b'(.)}]]tRbsuaeQNK\x81\x85\x86\x87\x88\x89hq\x8aMJXG' + bytes([chance.randrange(256)])
            )
        elif kind == 1:
            del content[place : place + length]
        else:
            other = chance.randrange(len(content)) if kind == 2 else place
            content[other:other] = content[place : place + length] * chance.choice([1, 1, 3, 1000])
    return bytes(content)


def load_changed(path, count, seed):
    """Load a checkpoint that is changed again and again; how many were accepted. Nothing but a UserError is raised."""
    with zipfile.ZipFile(path) as whole:
        parts = {name.partition('/')[2]: whole.read(name) for name in whole.namelist()}
    pickled, chance, accepted = parts.pop('data.pkl'), random.Random(seed), 0
    for _ in range(count):
        archive(path, changed(pickled, chance), **parts)
        try:
            accepted += isinstance(load_checkpoint(path), dict)
        except UserError as error:
            assert '\n' not in str(error), error  # noqa: PT017
    assert 0 < accepted < count
    return accepted


@pytest.mark.filterwarnings('ignore')
def test_whatever_is_changed_in_a_checkpoint(tmp_path):
    path = real_checkpoint(tmp_path / 'a.pth')
    load_checkpoint(path)
    error, seconds, megabytes = bounded(load_changed, path, 400, 0)
    assert error is None
    assert (seconds < 60, megabytes < 300) == (True, True), (seconds, megabytes)
