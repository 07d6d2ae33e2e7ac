"""torchrun with one-line errors: ``python -m vt.engine.processes.torchrun [torchrun's options] SCRIPT ...``."""

import signal
import sys

from torch.distributed import DistError, run
from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
from torch.distributed.elastic.rendezvous import RendezvousError


def main(arguments: list[str] | None = None) -> None:
    """Start processes as torchrun does; on failure, report in one line which process failed first and why."""
    try:
        run.main(arguments)
    except ChildFailedError as error:
        _leave(describe_failure(error))
    except SignalException as error:
        _leave(f'stopped by {error.sigval.name}', 128 + error.sigval)
    except (DistError, RendezvousError) as error:
        words = str(error).splitlines()[0]
        _leave(
            f'could not connect to the other machines ({words}): check that PORT is free, that all machines run, and '
            'that MASTER_ADDR and PORT, or RDZV_ENDPOINT, are the same on all of them'
        )


def describe_failure(error: ChildFailedError) -> str:
    """Return which process failed first, how, and its error message."""
    rank, first = min(error.failures.items(), key=lambda item: _order(item[1]))
    said = first.error_file_data['message']
    how = f'was ended by {first.signal_name()}' if first.exitcode < 0 else f'exit code {first.exitcode}'
    if isinstance(said, dict):
        return f'rank {rank} failed first ({how}): {" ".join(said["message"].split())}'
    return f'rank {rank} failed first ({how}); its log is *_rank{rank}.log in the work directory'


def _order(failure: ProcessFailure) -> tuple[int, bool, bool]:
    """Return a sort key: whole seconds, then processes that were killed before those that reported an error."""
    was_killed = failure.exitcode < 0 and failure.exitcode != -signal.SIGTERM  # torchrun ends the others by SIGTERM
    return failure.timestamp, not was_killed, not isinstance(failure.error_file_data['message'], dict)


def _leave(message: str, code: int = 1) -> None:
    print(f'torchrun: {message}', file=sys.stderr)
    sys.exit(code)


if __name__ == '__main__':
    main()
