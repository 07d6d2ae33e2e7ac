"""What processes tell each other in passing, so that none waits for the others."""

import torch
from mmengine.runner import Runner
from torch import distributed

from .distributed import control_group


class Agreement:
    """The largest of the numbers that the processes tell, read some time after it was told.

    Every process tells and reads at the same places of the run. Told at one iteration and read at the next, the number
    has arrived by then.

    Args:
        runner: all processes make this together.

    Attributes:
        is_alone: whether there is one process, which need not wait for the next iteration.
    """

    def __init__(self, runner: Runner) -> None:
        self._group = control_group(runner)
        self._told: tuple[torch.Tensor, distributed.Work | None] | None = None
        self.is_alone = self._group is None

    def tell(self, number: int) -> None:
        """Tell the others a number; what was told before must have been read."""
        told, work = torch.tensor(number), None
        if not self.is_alone:
            work = distributed.all_reduce(told, distributed.ReduceOp.MAX, group=self._group, async_op=True)
        self._told = told, work

    def read(self) -> int | None:
        """The largest number that was told last; None if none was since the last reading."""
        if self._told is None:
            return None
        (told, work), self._told = self._told, None
        if work is not None:
            work.wait()
        return int(told)

    def wait(self) -> None:
        """Wait for all processes to come here."""
        if not self.is_alone:
            distributed.barrier(group=self._group)
