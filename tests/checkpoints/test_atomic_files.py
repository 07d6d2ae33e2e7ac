"""Files are written whole or not at all: under SIGKILL, on a full disk, and in a folder that is read-only."""

import contextlib
import errno
import multiprocessing
import os
import resource
import signal
import stat
import tempfile
from functools import partial
from pathlib import Path

import pytest
import torch
from checkpoints.small_models import build_runner
from forked_tools import steps_of
from mmengine.runner import save_checkpoint

from vt.checkpoints.reading import load_checkpoint
from vt.engine.reporting import describe
from vt.engine.run.work_directory import lock_folder
from vt.files import atomic_write, write_atomically

fork = multiprocessing.get_context('fork')


def checkpoint_of(iteration):
    weights = torch.full((2**15,), float(iteration))
    return dict(
        meta=dict(epoch=iteration, iter=iteration),
        state_dict=dict(weight=weights),
        message_hub=dict(log_scalars={}, runtime_info={}, resumed_keys={}),
    )


def save(checkpoint, path):
    """As both runners do."""
    with atomic_write(path) as part:
        save_checkpoint(checkpoint, str(part))


def write_both(folder, iteration):
    """As a run does: the file, then ``last_checkpoint``."""
    save(checkpoint_of(iteration), folder / 'iter.pth')
    write_atomically(folder / 'last_checkpoint', f'{folder}/iter_{iteration}.pth')


def in_child(function, *arguments):
    """What a function returns, or the text of its OSError, in a process of its own; None if it is killed."""
    receiver, sender = fork.Pipe(duplex=False)

    def call():
        try:
            sender.send(function(*arguments))
        except OSError as error:
            sender.send((type(error).__name__, str(error)))

    process = fork.Process(target=call)
    process.start()
    sender.close()
    with contextlib.suppress(EOFError):
        return receiver.recv()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    return None


KILLS = 50


def test_a_kill_at_any_moment_leaves_whole_files(tmp_path):
    write_both(tmp_path, 0)
    steps = in_child(steps_of, write_both, tmp_path, 0)
    assert steps >= KILLS
    iterations = []
    for kill in range(1, KILLS + 1):
        in_child(partial(steps_of, killed_at=kill * steps // KILLS), write_both, tmp_path, kill)
        loaded = load_checkpoint(tmp_path / 'iter.pth')
        iterations.append(loaded['meta']['iter'])
        assert loaded['state_dict']['weight'].eq(iterations[-1]).all()
        assert (tmp_path / 'last_checkpoint').read_text() in {f'{tmp_path}/iter_{each}.pth' for each in range(kill + 1)}
        assert len([*tmp_path.glob('.*')]) <= 1  # what killed writes leave does not pile up
    in_child(write_both, tmp_path, KILLS)
    assert sorted(path.name for path in tmp_path.iterdir()) == ['iter.pth', 'last_checkpoint']
    assert iterations[0] == 0
    assert iterations[-1] == KILLS  # killed after the file took its name
    assert iterations == sorted(iterations)


def test_a_runner_writes_so(tmp_path):
    """The file that a run replaces keeps its content to the end."""
    runner = build_runner(tmp_path, dict(type='SGD', lr=0.1))
    runner.train()
    path, older = tmp_path / 'epoch_1.pth', tmp_path / 'older'
    os.link(path, older)
    content = path.read_bytes()
    runner.save_checkpoint(str(tmp_path), path.name, meta=dict(epoch=1, iter=5))
    assert load_checkpoint(path)['meta']['iter'] == 5
    assert older.read_bytes() == content  # another file has taken the name
    assert not list(tmp_path.glob('.*'))


@pytest.mark.parametrize('target', ['target', '/dev/null'])
def test_what_a_link_leads_to_is_written(target, tmp_path):
    (tmp_path / 'target').write_text('mine')
    (tmp_path / 'link').symlink_to(target)
    write_atomically(tmp_path / 'link', 'text')
    assert (tmp_path / 'link').is_symlink()
    assert (tmp_path / 'target').read_text() == ('text' if target == 'target' else 'mine')
    assert not Path('/dev/null').is_file()


def test_unfinished_files_of_the_living_stay_and_those_of_the_killed_go(tmp_path):
    def leave():
        with atomic_write(tmp_path / 'killed') as part:
            part.write_text('half')
            os.kill(os.getpid(), signal.SIGKILL)

    mine = tmp_path / '.mine.part'
    mine.mkdir()
    for name in ('in_use.lock', 'notes.txt'):
        (mine / name).write_text('mine')
    (tmp_path / '.vt-linked.part').symlink_to(mine)
    assert in_child(leave) is in_child(leave) is None
    (killed,) = {*tmp_path.iterdir()} - {mine, tmp_path / '.vt-linked.part'}  # the second one has removed the first's
    (killed / 'linked').symlink_to(mine)
    with atomic_write(tmp_path / 'living') as part:
        part.write_text('whole')
        in_child(write_atomically, tmp_path / 'file', 'whole')
        assert part.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ['.mine.part', '.vt-linked.part', 'file', 'living']
    assert sorted(path.name for path in mine.iterdir()) == ['in_use.lock', 'notes.txt']


@pytest.mark.parametrize('name', ['run.lock', '.vt-left.part/in_use.lock'])
@pytest.mark.parametrize('kind', ['pipe', 'folder', 'device'])
def test_a_lock_that_is_no_file_is_one_line_and_nothing_waits(kind, name, tmp_path):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    if kind == 'device' and os.geteuid():
        pytest.skip('a device needs a root user')
    makers = dict(pipe=os.mkfifo, folder=os.mkdir, device=partial(os.mknod, mode=stat.S_IFCHR | 0o600, device=0x103))
    makers[kind](path)
    write_atomically(tmp_path / 'file', 'whole')
    assert (tmp_path / 'file').read_text() == 'whole'
    assert path.exists()
    if name == 'run.lock':
        with pytest.raises(OSError, match=r'run\.lock') as caught, lock_folder(tmp_path):
            pass
        assert 'remove it' in describe(caught.value)


def save_on_a_full_disk(path):
    """A limit on the size of files stops a write in its middle, as a full disk does."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, 2**16))
    save(checkpoint_of(2), path)


def save_as_nobody(path):
    if os.geteuid() == 0:
        os.setuid(65534)
    save(checkpoint_of(2), path)


@pytest.fixture
def folder():
    """A folder that other users can enter."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o555)
        yield Path(name)
        Path(name).chmod(0o755)


@pytest.mark.parametrize(('way', 'kind'), [(save_on_a_full_disk, errno.EFBIG), (save_as_nobody, errno.EACCES)])
def test_what_can_not_be_written_leaves_the_previous_file(way, kind, folder):
    path = folder / 'iter_1.pth'
    folder.chmod(0o755)
    save(checkpoint_of(1), path)
    folder.chmod(0o555)
    name, message = in_child(way, path)
    assert name == 'FileError'
    assert '\n' not in message
    assert message.startswith(f'{path} could not be written ({os.strerror(kind)})')
    assert 'the existing file is unchanged: free space there' in message
    assert load_checkpoint(path)['state_dict']['weight'].eq(1).all()
    assert [file.name for file in folder.iterdir()] == ['iter_1.pth']
