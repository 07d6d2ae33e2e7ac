"""torchrun whose failures are one line: ``python -m vt.engine.processes.torchrun [torchrun's options] SCRIPT ...``."""

import logging
import os
import signal
import sys

from torch.distributed import DistError, run
from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.elastic.rendezvous import RendezvousError

from .distributed_errors import describe_distributed

# What it hands on to the processes: its own, and the one that SLURM sends early.
SIGNALS = 'SIGTERM,SIGINT,SIGHUP,SIGQUIT,SIGUSR1'


def main(arguments: list[str] | None = None) -> None:
    """Start processes as torchrun does. If one fails, say in one line which was first and why, and exit with 1.

    Args:
        arguments: those of torchrun, the script and its own arguments; by default the command line's.
    """
    # Otherwise processes that are started again find the addresses of those that ended, and may wait for them.
    os.environ.setdefault('TORCH_DISABLE_SHARE_RDZV_TCP_STORE', '1')
    os.environ.setdefault('PET_SIGNALS_TO_HANDLE', SIGNALS)
    if 'LOGLEVEL' not in os.environ:
        _log_restarts_only()
    try:
        run.main(arguments)
    except ChildFailedError as error:
        _leave(describe_failure(error))
    except SignalException as error:
        number = signal.Signals(error.sigval)
        _leave(f'stopped by {number.name}', 128 + number)
    except (DistError, RendezvousError, OSError, ValueError) as error:
        message = ' '.join(str(error).split())
        _leave(describe_distributed(message) or message or type(error).__name__)


def describe_failure(error: ChildFailedError) -> str:
    """Which process failed first, how, what it said, and how many have failed after it on their own."""
    rank, first = error.get_first_failure()
    said = first.error_file_data['message']
    said = said.get('message') if isinstance(said, dict) else None
    how = f'was ended by {first.signal_name()}' if first.exitcode < 0 else f'exit code {first.exitcode}'
    count = sum(failure is not first and failure.exitcode != -signal.SIGTERM for failure in error.failures.values())
    others = f', {count} more after it' if count else ''
    what = f': {" ".join(said.split())}' if said else f'; its log is *_rank{rank}.log in the work directory'
    return f'rank {rank} failed first ({how}){others}{what}'


def _leave(message: str, code: int = 1) -> None:
    print(f'torchrun: {message}', file=sys.stderr)
    sys.exit(code)


def _log_restarts_only() -> None:
    """Leave out what torchrun logs of its own, but for starting all processes again; ``LOGLEVEL`` shows all of it."""
    for name in list(logging.root.manager.loggerDict):
        if name.startswith(('torch.distributed.elastic', 'torch.distributed.launcher')):
            logging.getLogger(name).setLevel(logging.CRITICAL)
    agent = logging.getLogger('torch.distributed.elastic.agent.server.api')
    agent.setLevel(logging.INFO)
    agent.propagate = False
    handler = logging.StreamHandler()
    handler.addFilter(lambda record: 'will restart worker group' in record.msg)
    handler.setFormatter(logging.Formatter('torchrun: %(message)s'))
    agent.handlers = [handler]


if __name__ == '__main__':
    main()
