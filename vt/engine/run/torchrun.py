"""torchrun with one-line errors: ``python -m vt.engine.run.torchrun [torchrun's options] SCRIPT ...``."""

import sys

from torch.distributed import DistError, run
from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.elastic.rendezvous import RendezvousError


def main() -> None:
    """Start processes as torchrun does; on failure, report in one line which process failed first and why."""
    try:
        run.main()
    except ChildFailedError as error:
        rank, first = error.get_first_failure()
        how = f'was ended by {first.signal_name()}' if first.exitcode < 0 else f'exit code {first.exitcode}'
        said = first.message['message'] if isinstance(first.message, dict) else first.message
        why = f'{" ".join(said.split())}; its log is *_rank{rank}.log in the work directory'
        _leave(f'rank {rank} failed first ({how}): {why}')
    except SignalException as error:
        _leave(f'stopped by {error.sigval.name}', 128 + error.sigval)
    except (DistError, RendezvousError) as error:
        words = str(error).splitlines()[0]
        _leave(f'could not connect to the other machines ({words}): check PORT, MASTER_ADDR and RDZV_ENDPOINT on all')


def _leave(message: str, code: int = 1) -> None:
    print(f'torchrun: {message}', file=sys.stderr)
    sys.exit(code)


if __name__ == '__main__':
    main()
