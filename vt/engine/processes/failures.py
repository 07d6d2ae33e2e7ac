"""Of several processes that fail, which one was first: its error is the cause, and those of the others follow."""

import torch


def follows_another(error: BaseException) -> bool:
    """Whether this process fails because another one had failed before; every process that fails asks this once.

    The first to ask writes its rank down where the processes met. If that place is gone, so is the main process, which
    was before this one. What breaks with a connection is a ``RuntimeError``; any other error is this process's own.
    """
    return not _is_first() and isinstance(error, RuntimeError)


def _is_first() -> bool:
    if not torch.distributed.is_initialized():
        return True
    rank = str(torch.distributed.get_rank())
    store = torch.distributed.group.WORLD.get_group_store()
    try:
        return store.compare_set('first_failure', '', rank).decode() == rank
    except torch.distributed.DistError:
        return False
