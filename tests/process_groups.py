"""Call ``tools/`` in several processes that meet, as torchrun starts them, without the time that torchrun takes."""

import os
import socket
import tempfile
from pathlib import Path

import torch
from forked_tools import ForkedTool
from forked_tools import _context as forked


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def start_processes(count, tool, *arguments, cwd, options=(), env=None):
    """Start ``tools/<tool>``, or a script, in ``count`` processes that form one group; in one alone without a group.

    Returns:
        The processes, by rank.
    """
    meeting = dict(MASTER_ADDR='127.0.0.1', MASTER_PORT=str(free_port()), WORLD_SIZE=str(count)) if count > 1 else {}
    env = os.environ | dict(CUDA_VISIBLE_DEVICES='', OMP_NUM_THREADS='1') | meeting | (env or {})
    places = [dict(RANK=str(rank), LOCAL_RANK=str(rank)) if count > 1 else {} for rank in range(count)]
    return [ForkedTool(tool, *arguments, cwd=cwd, options=options, env=env | place) for place in places]


def run_processes(count, tool, *arguments, timeout=120, **kwargs):
    """The results of :func:`start_processes`, by rank; none of them is left running."""
    processes = start_processes(count, tool, *arguments, **kwargs)
    try:
        return [process.wait(timeout) for process in processes]
    finally:
        for process in processes:
            if process.process.is_alive():
                process.process.kill()


def run_function(count, function, *arguments):
    """What ``function(rank, *arguments)`` returns in each process of a group over gloo; from an importable module."""
    with tempfile.TemporaryDirectory() as folder:
        calls = [(folder, rank, count, function, arguments) for rank in range(count)]
        processes = [forked.Process(target=_call, args=call) for call in calls]
        for process in processes:
            process.start()
        for process in processes:
            process.join(60)
        assert [process.exitcode for process in processes] == [0] * count
        return [torch.load(Path(folder, str(rank))) for rank in range(count)]


def _call(folder, rank, count, function, arguments):
    torch.set_num_threads(1)
    os.environ['LOCAL_RANK'] = str(rank)
    store = torch.distributed.FileStore(f'{folder}/store', count)
    torch.distributed.init_process_group('gloo', store=store, rank=rank, world_size=count)
    torch.save(function(rank, *arguments), Path(folder, str(rank)))
    torch.distributed.destroy_process_group()
