"""torchrun whose failures are one line: ``python -m vt.engine.processes.torchrun [torchrun's options] SCRIPT ...``."""

import signal
import sys

from torch.distributed import DistError, run
from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
from torch.distributed.elastic.rendezvous import RendezvousError


def main(arguments: list[str] | None = None) -> None:
    """Start processes as torchrun does. If one fails, say in one line which was first and why, and exit with 1."""
    try:
        run.main(arguments)
    except ChildFailedError as error:
        _leave(describe_failure(error))
    except SignalException as error:
        _leave(f'stopped by {error.sigval.name}', 128 + error.sigval)
    except (DistError, RendezvousError) as error:
        words = str(error).splitlines()[0]
        _leave(
            f'could not meet ({words}); is PORT free, are the other machines up, and are MASTER_ADDR and PORT, or '
            'RDZV_ENDPOINT, the same on all of them?'
        )


def describe_failure(error: ChildFailedError) -> str:
    """Which process failed first, how, and what it said."""
    rank, first = min(error.failures.items(), key=lambda item: _order(item[1]))
    said = first.error_file_data['message']
    how = f'was ended by {first.signal_name()}' if first.exitcode < 0 else f'exit code {first.exitcode}'
    if isinstance(said, dict):
        return f'rank {rank} failed first ({how}): {" ".join(said["message"].split())}'
    return f'rank {rank} failed first ({how}); its log is *_rank{rank}.log in the work directory'


def _order(failure: ProcessFailure) -> tuple[int, bool, bool]:
    """By whole seconds; in one of these a process that was killed comes before one that had time to say why."""
    was_killed = failure.exitcode < 0 and failure.exitcode != -signal.SIGTERM  # by that torchrun ends the others
    return failure.timestamp, not was_killed, not isinstance(failure.error_file_data['message'], dict)


def _leave(message: str, code: int = 1) -> None:
    print(f'torchrun: {message}', file=sys.stderr)
    sys.exit(code)


if __name__ == '__main__':
    main()
