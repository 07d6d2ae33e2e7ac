"""Backbones whose first stages can be frozen, and whose layers are counted."""

from collections.abc import Iterable, Sequence
from typing import Self

from mmpretrain.models.backbones.base_backbone import BaseBackbone
from torch import nn

from vt.errors import UserError


class StagedBackbone(BaseBackbone):
    """Base class of backbones with ``frozen_stages``, the index of the last frozen stage; -1 for none."""

    frozen_stages: int

    def stage_parts(self) -> Sequence[Iterable[nn.Module]]:
        """Parts of each stage, in the order in which stages are frozen; subclasses implement it."""
        raise NotImplementedError

    def layer_starts(self) -> dict[str, int]:
        """Layers from 0, by the prefix of their parameters' names; the longest matching prefix counts.

        Subclasses implement it. Other names belong to the layer after the last one, as does what comes after the
        backbone.
        """
        raise NotImplementedError(f'{type(self).__name__} does not count its layers')

    def get_layer_depth(self, param_name: str, prefix: str = '') -> tuple[int, int]:
        """Depth of a parameter and number of layers, for MMPretrain's layer-wise learning-rate decay."""
        layers = self.layer_starts()
        last = max(layers.values()) + 1
        found = [start for start in layers if param_name.startswith(prefix + start)]
        return (layers[max(found, key=len)] if found else last), last + 1

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

    def train(self, mode: bool = True) -> Self:
        """Switch modes; frozen stages stay in evaluation mode."""
        super().train(mode)
        for stage in self.stage_parts()[: self.frozen_stages + 1]:
            for part in stage:
                part.eval()
        return self
