"""Files are written whole or not at all: under SIGKILL, on a full disk, and in a folder that is read-only."""

import errno
import multiprocessing
import os
import random
import resource
import signal
import tempfile
import time
from pathlib import Path

import pytest
import torch
from checkpoints.small_models import build_runner
from mmengine.runner import save_checkpoint

from vt.checkpoints.reading import find_newest_checkpoint, load_checkpoint, read_position
from vt.files import replacing, write_atomically

fork = multiprocessing.get_context('fork')


def checkpoint_of(iteration, megabytes=2):
    weights = torch.full((megabytes * 2**18,), float(iteration))
    return dict(
        meta=dict(epoch=iteration, iter=iteration),
        state_dict=dict(weight=weights),
        message_hub=dict(log_scalars={}, runtime_info={}, resumed_keys={}),
    )


def save(checkpoint, path):
    """As both runners do."""
    with replacing(path) as part:
        save_checkpoint(checkpoint, str(part))


def train(folder, begin, started):
    """Write checkpoints as fast as it goes, as a run does: file, ``last_checkpoint``, then the third last one goes."""
    started.set()
    iteration = begin
    while True:
        iteration += 1
        save(checkpoint_of(iteration), folder / f'iter_{iteration}.pth')
        write_atomically(folder / 'last_checkpoint', f'{folder}/iter_{iteration}.pth')
        (folder / f'iter_{iteration - 2}.pth').unlink(missing_ok=True)


def killed_after(seconds, target, *arguments):
    started = fork.Event()
    process = fork.Process(target=target, args=(*arguments, started))
    process.start()
    started.wait()
    time.sleep(seconds)
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL


def unfinished(folder):
    return {(part.name, part.stat().st_mtime_ns) for part in folder.glob('.*.part/iter_*.pth')}


@pytest.mark.parametrize('kills', [15, pytest.param(50, marks=pytest.mark.slow)])
def test_a_kill_at_any_moment_leaves_a_whole_newest_checkpoint(kills, tmp_path):
    """Until so many kills have met a write, and more writes went on between them; other kills count for nothing."""
    moments = random.Random(0)
    newest, met, before = 0, 0, set()
    begin = time.monotonic()
    save(checkpoint_of(0), tmp_path / 'iter_0.pth')
    span = 5 * (time.monotonic() - begin)  # of a few writes, on whatever disk
    while met < kills or newest <= kills:
        killed_after(moments.uniform(0, span), train, tmp_path, newest)
        path, damaged = find_newest_checkpoint(tmp_path)
        assert not damaged
        loaded = load_checkpoint(path)
        assert loaded['meta']['iter'] >= newest
        span *= 1 if loaded['meta']['iter'] > newest else 1.2  # the disk is busier than it was
        newest = loaded['meta']['iter']
        assert loaded['state_dict']['weight'].eq(newest).all()
        named = tmp_path / 'last_checkpoint'
        assert not named.exists() or isinstance(read_position(named.read_text()), tuple)
        met += bool(unfinished(tmp_path) - before)
        before = unfinished(tmp_path)
        assert len(before) <= 2  # what killed writes leave does not pile up


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


def test_links_and_devices_that_a_person_names_stay_what_they_are(tmp_path):
    (tmp_path / 'link').symlink_to(tmp_path / 'target')
    write_atomically(tmp_path / 'link', 'text', follow=True)
    assert (tmp_path / 'link').is_symlink()
    assert (tmp_path / 'target').read_text() == 'text'
    write_atomically('/dev/null', b'text', follow=True)
    assert not Path('/dev/null').is_file()


@pytest.mark.parametrize('target', ['target', 'folder', 'none', '/dev/null'])
def test_a_link_in_place_of_a_file_is_replaced(target, tmp_path):
    (tmp_path / 'target').write_text('mine')
    (tmp_path / 'folder').mkdir()
    (tmp_path / 'link').symlink_to(target)
    write_atomically(tmp_path / 'link', 'text')
    assert not (tmp_path / 'link').is_symlink()
    assert (tmp_path / 'link').read_text() == 'text'
    assert (tmp_path / 'target').read_text() == 'mine'
    assert sorted(path.name for path in tmp_path.iterdir()) == ['folder', 'link', 'target']


def test_two_writers_of_a_file_each_write_their_own(tmp_path):
    path = tmp_path / 'file'
    with replacing(path) as first, first.open('w') as file:
        file.write('fir')
        with replacing(path) as second:
            second.write_text('second')
        assert path.read_text() == 'second'
        file.write('st')
    assert path.read_text() == 'first'
    assert [*tmp_path.iterdir()] == [path]


def test_unfinished_files_of_the_living_stay_and_those_of_the_killed_go(tmp_path):
    def leave():
        with replacing(tmp_path / 'killed') as part:
            part.write_text('half')
            os.kill(os.getpid(), signal.SIGKILL)

    def write():
        write_atomically(tmp_path / 'file', 'whole')

    (tmp_path / '.mine.part').mkdir()
    for function in (leave, leave):
        (process := fork.Process(target=function)).start()
        process.join()
    assert len([*tmp_path.iterdir()]) == 2  # the second one has removed what the first one left
    with replacing(tmp_path / 'living') as part:
        part.write_text('whole')
        (process := fork.Process(target=write)).start()
        process.join()
        assert part.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ['.mine.part', 'file', 'living']


def in_child(function, *arguments):
    """The error's text of a function that is called in a process of its own."""
    queue = fork.SimpleQueue()

    def call():
        try:
            function(*arguments)
        except OSError as error:
            queue.put((type(error).__name__, str(error)))
        else:
            queue.put(None)

    process = fork.Process(target=call)
    process.start()
    result = queue.get()
    process.join()
    return result


def save_on_a_full_disk(path):
    """A limit on the size of files stops a write in its middle, as a full disk does."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))
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
