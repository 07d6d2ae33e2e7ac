"""What PyTorch says in a process of a group when others don't do as it does."""

import time
from datetime import timedelta

import torch
from torch import distributed, nn


def all_reduce_late(rank):
    """The message of the process that waits in vain for the other one."""
    group = distributed.new_group(timeout=timedelta(seconds=1))
    if rank == 1:
        time.sleep(3)
        return None
    try:
        distributed.all_reduce(torch.zeros(1), group=group)
    except RuntimeError as error:
        return str(error)


def leave_parameters_out(rank):
    """The message about a model whose second layer takes no part in the loss."""
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1)))
    model.module.forward = model.module[0].forward
    try:
        for _ in range(2):
            model(torch.ones(1, 1)).sum().backward()
    except RuntimeError as error:
        return str(error)
