"""An epoch that can begin in the middle."""

from collections.abc import Iterator

from mmengine.runner import EpochBasedTrainLoop as WholeEpochsLoop
from torch.utils.data import BatchSampler

from vt.registry import LOOPS

from .seeds import NumberedSampler


@LOOPS.register_module()
class EpochBasedTrainLoop(WholeEpochsLoop):
    """mmengine's loop over epochs; after an interruption its first epoch leaves out the batches that were trained on.

    Attributes:
        begin: how many batches of the next epoch to leave out.
        batches: batches of the current epoch that were trained on.
    """

    begin = batches = 0

    def run_epoch(self) -> None:
        self.runner.call_hook('before_train_epoch')
        self.runner.model.train()
        for index, batch in self._remaining_batches():
            self.batches = index + 1
            self.run_iter(index, batch)
        self.batches = 0
        self.runner.call_hook('after_train_epoch')
        self._epoch += 1

    def _remaining_batches(self) -> Iterator[tuple[int, dict]]:
        """The batches of an epoch with their numbers, from the first one that is left."""
        begin, self.begin = self.begin, 0
        sampler = getattr(self.dataloader.batch_sampler, 'sampler', None)
        if type(self.dataloader.batch_sampler) is BatchSampler and isinstance(sampler, NumberedSampler):
            sampler.begin = begin * self.dataloader.batch_sampler.batch_size
            yield from enumerate(self.dataloader, begin)
        else:  # only the data set knows what such a sampler leaves out
            for index, batch in enumerate(self.dataloader):
                if index >= begin:
                    yield index, batch
