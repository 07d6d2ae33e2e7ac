"""HRFormer: parallel branches of several resolutions that exchange features (Yuan et al., NeurIPS 2021).

Letters: N batch, C channels, H and W size of a branch; each branch has half the resolution of the previous one.
"""

from collections.abc import Sequence

import numpy as np
from mmcv.cnn import ConvModule
from torch import Tensor, nn

from vt.errors import UserError
from vt.models.grid import Size
from vt.models.recomputation import recompute
from vt.models.staged_backbone import StagedBackbone
from vt.models.survey.embeddings.bottleneck import Bottleneck
from vt.registry import MODELS

from .parallel_resolutions import BN, ParallelResolutions

INIT = (dict(type='vt.LayerInit', layer=['Conv2d', 'Linear']),)  # PyTorch's defaults, as in the authors' code


@MODELS.register_module()
class HRFormer(StagedBackbone):
    """HRFormer: a convolutional stem, two bottlenecks, then stages of :class:`ParallelResolutions`.

    The first stage has two branches, and each later stage one more.

    Args:
        stages: a dict per stage: ``channels`` and ``num_heads`` (a number per branch), ``modules`` (number of modules)
            and ``depth`` (blocks per module).
        block: options of all blocks, as in :class:`Stage`.
        image_size: height and width during training, or one number for both.
        in_channels: channels of an image.
        stem_channels: channels of the stem and inner channels of the bottlenecks, whose output has four times as many.
        out_indices: indices of the branches whose maps are returned; all by default.
        drop_path_rate: stochastic depth rate of the last block; rates grow linearly from 0.
        frozen_stages: index of the last frozen stage; the stem and the stages up to it are not trained; -1 for none.
        with_cp: recompute modules in the backward pass to save memory.
        init_cfg: as in mmengine; PyTorch's initialisation by default.

    Raises:
        UserError: a stage has a wrong number of branches, or ``frozen_stages`` exceeds the number of stages.
    """

    def __init__(
        self,
        stages: Sequence[dict],
        block: dict | None = None,
        image_size: int | Size = 224,
        in_channels: int = 3,
        stem_channels: int = 64,
        out_indices: Sequence[int] | None = None,
        drop_path_rate: float = 0.0,
        frozen_stages: int = -1,
        with_cp: bool = False,
        init_cfg: dict | Sequence[dict] = INIT,
    ) -> None:
        super().__init__(list(init_cfg) if isinstance(init_cfg, Sequence) else init_cfg)
        size = (image_size, image_size) if isinstance(image_size, int) else tuple(image_size)
        wide = 4 * stem_channels
        self.stem = nn.Sequential(
            ConvModule(in_channels, stem_channels, 3, stride=2, padding=1, **BN),
            ConvModule(stem_channels, stem_channels, 3, stride=2, padding=1, **BN),
            Bottleneck(stem_channels, wide, stem_channels),
            Bottleneck(wide, wide, stem_channels),
        )
        sizes = [tuple(-(-side // 4) for side in size)]
        drop_paths = np.linspace(0, drop_path_rate, sum(s['modules'] * s['depth'] for s in stages)).tolist()
        self.transitions, self.stages = nn.ModuleList(), nn.ModuleList()
        before = [wide]
        for index, stage in enumerate(stages):
            channels = stage['channels']
            if len(channels) != index + 2 or len(stage['num_heads']) != index + 2:
                raise UserError(
                    f'HRFormer: stage {index} has {len(channels)} channels and {len(stage["num_heads"])} num_heads; '
                    f'both must have {index + 2}, one per branch'
                )
            sizes.append(tuple(-(-side // 2) for side in sizes[-1]))
            self.transitions.append(_transition(before, channels))
            modules = nn.Sequential()
            for _ in range(stage['modules']):
                rates, drop_paths = drop_paths[: stage['depth']], drop_paths[stage['depth'] :]
                modules.append(ParallelResolutions(channels, stage['num_heads'], sizes, rates, block or {}))
            self.stages.append(modules)
            before = channels
        self.out_indices = sorted(index % len(before) for index in out_indices or range(len(before)))
        self.with_cp = with_cp
        self.freeze(frozen_stages)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Images ``(N, in_channels, height, width)`` to a tuple of maps ``(N, C, H, W)``, the finest first."""
        maps = [self.stem(x)]
        for transition, stage in zip(self.transitions, self.stages):
            *finer, coarser = transition.children()  # the new branch starts from the coarsest map
            maps = [convert(x) for convert, x in zip(finer, maps)] + [coarser(maps[-1])]
            for module in stage.children():
                recomputed = self.with_cp and any(x.requires_grad for x in maps)
                maps = recompute(module, maps) if recomputed else module(maps)
        return tuple(maps[index] for index in self.out_indices)

    def layer_starts(self) -> dict[str, int]:
        """Blocks of a module; transitions belong to the blocks that follow, and exchanges to those before them."""
        layers, depth = {'stem.': 0}, 0
        for index, stage in enumerate(self.stages):
            layers[f'transitions.{index}.'] = depth + bool(depth)
            for number, module in enumerate(stage):
                start = f'stages.{index}.{number}.'
                for block in range(len(module.branches[0])):
                    depth += 1
                    layers |= {f'{start}branches.{branch}.{block}.': depth for branch in range(len(module.branches))}
                layers[start] = depth
        return layers

    def stage_parts(self) -> list[tuple[nn.Module, ...]]:
        parts = list(zip(self.transitions, self.stages))
        return [(self.stem, *parts[0]), *parts[1:]]


def _transition(before: Sequence[int], channels: Sequence[int]) -> nn.ModuleList:
    """Layers from the branches of one stage to those of the next, the last of which is new."""
    layers = [
        nn.Identity() if own == wanted else ConvModule(own, wanted, 3, padding=1, **BN)
        for own, wanted in zip(before, channels)
    ]
    return nn.ModuleList([*layers, ConvModule(before[-1], channels[-1], 3, stride=2, padding=1, **BN)])
