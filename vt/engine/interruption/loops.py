"""An epoch that can begin in the middle."""

from mmengine.runner import EpochBasedTrainLoop as WholeEpochsLoop
from torch.utils.data import BatchSampler

from vt.registry import LOOPS

from .seeds import NumberedSampler


@LOOPS.register_module()
class EpochBasedTrainLoop(WholeEpochsLoop):
    """mmengine's loop over epochs; after an interruption its first epoch leaves out the batches that were trained on.

    Attributes:
        begin: how many batches of the next epoch to leave out.
        start: the current epoch and the iteration that it began at.
    """

    begin = 0
    start = (0, 0)

    def run_epoch(self) -> None:
        sampler = getattr(self.dataloader.batch_sampler, 'sampler', None)
        # Of other samplers of batches only the data set knows what they leave out: its samples are loaded for nothing.
        self._skips = type(self.dataloader.batch_sampler) is BatchSampler and isinstance(sampler, NumberedSampler)
        if self._skips:
            sampler.begin = self.begin * self.dataloader.batch_sampler.batch_size
        self.start = self.epoch, self.iter - self.begin
        super().run_epoch()
        self.begin = 0

    def run_iter(self, idx: int, data_batch: dict) -> None:
        if self._skips:
            super().run_iter(idx + self.begin, data_batch)
        elif idx >= self.begin:
            super().run_iter(idx, data_batch)
