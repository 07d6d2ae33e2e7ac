"""Convert the environment variables of torchrun, SLURM and MPI to those that PyTorch reads."""

import os
import re
import socket

import torch

from vt.errors import UserError

# Variables of each launcher for rank, world size and local rank, and the command that starts it.
LAUNCHERS = dict(
    pytorch=('RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'torchrun, or tools/dist_train.sh'),
    mpi=('OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_SIZE', 'OMPI_COMM_WORLD_LOCAL_RANK', 'mpirun'),
    slurm=('SLURM_PROCID', 'SLURM_NTASKS', 'SLURM_LOCALID', 'srun, or tools/slurm_train.sh'),
)


def number_in(name: str, default: int = 0) -> int:
    """Return the number in an environment variable; the default if it is not set or empty."""
    return int(os.environ.get(name) or default)


def find_launcher() -> str:
    """Return the launcher of this process by its environment: ``'pytorch'``, ``'mpi'``, ``'slurm'`` or ``'none'``."""
    if 'RANK' in os.environ and 'WORLD_SIZE' in os.environ:
        return 'pytorch'
    if number_in('OMPI_COMM_WORLD_SIZE', 1) > 1:
        return 'mpi'
    # SLURM_NTASKS is also set in a batch script, which is not one of the tasks; only srun sets this variable.
    if number_in('SLURM_STEP_NUM_TASKS', 1) > 1:
        return 'slurm'
    return 'none'


def set_process_variables(launcher: str) -> str:
    """Set the environment variables that PyTorch reads from those of a launcher; a second call has no effect.

    Args:
        launcher: ``'pytorch'``, ``'slurm'`` or ``'mpi'``; ``'auto'`` detects it; ``'none'`` is a run of one process,
            whatever the environment.

    Returns:
        ``'none'``, or ``'pytorch'`` for one of several processes, since the environment is now that of torchrun.

    Raises:
        UserError: variables of the launcher are missing, or the address of the main process is unknown.
    """
    launcher = find_launcher() if launcher == 'auto' else launcher
    if launcher == 'none':
        return launcher
    *names, command = LAUNCHERS[launcher]
    for name in names[:2]:
        if name not in os.environ:
            raise UserError(f'--launcher {launcher}: {name} is not set; start the processes with {command}')
    rank, world_size, local_rank = (str(number_in(name)) for name in names)
    if launcher != 'pytorch' and torch.cuda.device_count() == 1:
        local_rank = '0'  # the scheduler gives each process only its own GPU
    os.environ.update(RANK=rank, WORLD_SIZE=world_size, LOCAL_RANK=local_rank)
    os.environ.setdefault('MKL_NUM_THREADS', os.environ.get('OMP_NUM_THREADS', '1'))  # avoids mmengine's warning
    if 'MASTER_ADDR' not in os.environ:
        os.environ['MASTER_ADDR'] = _find_address(launcher)
    job = sum(number_in(name) for name in ('SLURM_JOB_ID', 'SLURM_STEP_ID'))  # jobs may share a machine
    port = 15000 + job % 15000 if launcher == 'slurm' else 29500
    os.environ['MASTER_PORT'] = str(number_in('MASTER_PORT', number_in('PORT', port)))
    try:
        socket.getaddrinfo(os.environ['MASTER_ADDR'], None)
    except OSError as error:  # PyTorch would retry until its timeout
        raise UserError(
            f'there is no machine {os.environ["MASTER_ADDR"]}: set MASTER_ADDR to the name or address of the first '
            'machine'
        ) from error
    return 'pytorch'


def _find_address(launcher: str) -> str:
    if launcher == 'slurm':
        return first_node(os.environ.get('SLURM_STEP_NODELIST') or os.environ.get('SLURM_NODELIST') or '127.0.0.1')
    if launcher == 'mpi' and os.environ.get('OMPI_COMM_WORLD_LOCAL_SIZE') == os.environ['OMPI_COMM_WORLD_SIZE']:
        return '127.0.0.1'
    raise UserError(f'--launcher {launcher}: MASTER_ADDR is not set; set it to the machine of the first process')


def first_node(nodes: str) -> str:
    """Return the first machine of a node list of SLURM: ``'node07'`` of ``'node[07-12,15],gpu1'``."""
    return re.sub(r'\[(\w+)[^\]]*\]', r'\1', nodes).split(',')[0]
