"""Backbones whose first stages can be frozen."""

from collections.abc import Iterable, Sequence

from mmpretrain.models.backbones.base_backbone import BaseBackbone
from torch import nn

from vt.errors import UserError


class FrozenStages(BaseBackbone):
    """Base class of backbones with ``frozen_stages``, the index of the last frozen stage; -1 for none."""

    frozen_stages: int

    def stage_parts(self) -> Sequence[Iterable[nn.Module]]:
        """Parts of each stage, in the order in which stages are frozen; subclasses implement it."""
        raise NotImplementedError

    def freeze(self, frozen_stages: int) -> None:
        """Freeze the stages up to ``frozen_stages``, and raise ``UserError`` if it does not exist."""
        last = len(self.stage_parts()) - 1
        if not -1 <= frozen_stages <= last:
            raise UserError(f'{type(self).__name__}: frozen_stages={frozen_stages} does not exist; the last is {last}')
        self.frozen_stages = frozen_stages
        for stage in self.stage_parts()[: frozen_stages + 1]:
            for part in stage:
                part.eval()
                part.requires_grad_(False)

    def train(self, mode: bool = True) -> 'FrozenStages':
        """Switch modes; frozen stages stay in evaluation mode."""
        super().train(mode)
        self.freeze(self.frozen_stages)
        return self
