"""HRFormer: resolutions beside each other, which exchange what they see (Yuan et al., NeurIPS 2021).

Letters: N batch, B branches, each of half the resolution of the one before, C channels, H and W size of a branch.
"""

from collections.abc import Sequence

import numpy as np
from mmcv.cnn import ConvModule
from mmpretrain.models.backbones.base_backbone import BaseBackbone
from torch import Tensor, nn
from torch.nn.functional import interpolate

from vt.errors import UserError
from vt.registry import MODELS

from ..embeddings.bottleneck import Bottleneck
from ..grid import Size, to_map, to_tokens
from .stage import NORM, PARTS

BN = dict(norm_cfg=dict(type='BN'))
INIT = (
    dict(type='Kaiming', layer='Conv2d'),
    dict(type='TruncNormal', layer='Linear', std=0.02, bias=0.0),
)


class ParallelResolutions(nn.Module):
    """Blocks in each branch, then in each branch the sum of all, made as fine and as wide as it is.

    Args:
        channels: C of each branch.
        num_heads: of each branch.
        sizes: of each branch in training.
        drop_paths: stochastic depth of each block, the same in all branches.
        block: what the blocks have in common.
    """

    def __init__(
        self,
        channels: Sequence[int],
        num_heads: Sequence[int],
        sizes: Sequence[Size],
        drop_paths: Sequence[float],
        block: dict,
    ) -> None:
        super().__init__()
        self.branches = nn.ModuleList()
        for width, heads, size in zip(channels, num_heads, sizes):
            own = dict(type='vt.Block', channels=width, num_heads=heads, size=size, norm_cfg=NORM) | block
            own |= {part: dict(type=name) | own.get(part, {}) for part, name in PARTS.items()}
            self.branches.append(nn.ModuleList(MODELS.build(own | dict(drop_path=rate)) for rate in drop_paths))
        self.exchange = nn.ModuleList(
            nn.ModuleList(_exchange(source, target, channels) for source in range(len(channels)))
            for target in range(len(channels))
        )
        self.act = nn.ReLU()

    def forward(self, maps: list[Tensor]) -> list[Tensor]:
        """Maps ``(N, C, H, W)`` of the branches to others of the same sizes."""
        seen = []
        for x, blocks in zip(maps, self.branches):
            size = tuple(x.shape[2:])
            x = to_tokens(x)
            for block in blocks:
                x = block(x, size)
            seen.append(to_map(x, size))
        # Coarser maps are enlarged by their nearest pixels.
        return [
            self.act(sum(interpolate(convert(x), own.shape[2:]) for x, convert in zip(seen, converters)))
            for own, converters in zip(seen, self.exchange)
        ]


def _exchange(source: int, target: int, channels: Sequence[int]) -> nn.Module:
    """From one branch's map to another's channels, and down to its resolution."""
    own, wanted = channels[source], channels[target]
    if source >= target:
        return nn.Identity() if source == target else ConvModule(own, wanted, 1, act_cfg=None, **BN)
    layers = []
    for step in range(source, target):
        last = step == target - 1
        layers.append(ConvModule(own, own, 3, stride=2, padding=1, groups=own, act_cfg=None, **BN))
        layers.append(ConvModule(own, wanted if last else own, 1, act_cfg=None if last else dict(type='ReLU'), **BN))
    return nn.Sequential(*layers)


@MODELS.register_module()
class HRFormer(BaseBackbone):
    """Two convolutions of stride 2, bottlenecks, then stages of :class:`ParallelResolutions`, each with a branch more.

    Args:
        stages: of each its branches' ``channels`` and ``num_heads``, and its ``depth`` of blocks in each of its
            ``modules``.
        block: what the blocks have in common, as in :class:`Stage`.
        image_size: height and width in training, one number for both.
        in_channels: of an image.
        stem_channels: of the convolutions, and inside of the bottlenecks, which give four times as many.
        num_bottlenecks: before the branches.
        out_indices: branches whose map is returned, all by default.
        drop_path_rate: stochastic depth of the last block; rates grow linearly from 0.
        init_cfg: as in mmengine.

    Raises:
        UserError: a stage with other branches than one more than the stage before.
    """

    def __init__(
        self,
        stages: Sequence[dict],
        block: dict | None = None,
        image_size: int | Size = 224,
        in_channels: int = 3,
        stem_channels: int = 64,
        num_bottlenecks: int = 2,
        out_indices: Sequence[int] | None = None,
        drop_path_rate: float = 0.0,
        init_cfg: dict | Sequence[dict] = INIT,
    ) -> None:
        super().__init__(list(init_cfg) if isinstance(init_cfg, Sequence) else init_cfg)
        size = (image_size, image_size) if isinstance(image_size, int) else tuple(image_size)
        wide = 4 * stem_channels
        self.stem = nn.Sequential(
            ConvModule(in_channels, stem_channels, 3, stride=2, padding=1, **BN),
            ConvModule(stem_channels, stem_channels, 3, stride=2, padding=1, **BN),
            *(Bottleneck(wide if index else stem_channels, wide, stem_channels) for index in range(num_bottlenecks)),
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
                    f'it has {index + 2} branches, and needs as many of both'
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

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Images ``(N, in_channels, height, width)`` to maps ``(N, C, H, W)``, the finest first."""
        maps = [self.stem(x)]
        for transition, stage in zip(self.transitions, self.stages):
            *finer, coarser = transition  # the new branch comes of the coarsest map there is
            maps = stage([convert(x) for convert, x in zip(finer, maps)] + [coarser(maps[-1])])
        return tuple(maps[index] for index in self.out_indices)

    def train(self, mode: bool = True) -> 'HRFormer':
        """Switch modes; MMPretrain's returns nothing."""
        super().train(mode)
        return self


def _transition(before: Sequence[int], channels: Sequence[int]) -> nn.ModuleList:
    """To the branches of the next stage, the last of which is new."""
    layers = [
        nn.Identity() if own == wanted else ConvModule(own, wanted, 3, padding=1, **BN)
        for own, wanted in zip(before, channels)
    ]
    return nn.ModuleList([*layers, ConvModule(before[-1], channels[-1], 3, stride=2, padding=1, **BN)])
