"""Blocks in parallel branches of several resolutions, which exchange their features (HRFormer).

Letters: N batch, C channels, H and W size of a branch; each branch has half the resolution of the previous one.
"""

from collections.abc import Sequence

from mmcv.cnn import ConvModule
from torch import Tensor, nn
from torch.nn.functional import interpolate

from vt.models.checks import build_part
from vt.models.grid import Size, to_map, to_tokens

from .stage import NORM, PARTS

BN = dict(norm_cfg=dict(type='BN'))


class ParallelResolutions(nn.Module):
    """Apply blocks to each branch, then replace each branch by the sum of all branches, resized to it.

    Coarser maps are enlarged by nearest neighbours, then resized bilinearly with aligned corners if sizes still differ
    (the authors' code for classification and segmentation).

    Args:
        channels: C of each branch.
        num_heads: number of heads of each branch.
        sizes: map size of each branch during training.
        drop_paths: stochastic depth rate of each block, the same in all branches.
        block: options of all blocks.
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
            own |= {part: dict(type=name) | block.get(part, {}) for part, name in PARTS.items()}
            self.branches.append(nn.ModuleList(build_part(own | dict(drop_path=rate)) for rate in drop_paths))
        self.exchange = nn.ModuleList(
            nn.ModuleList(_exchange(source, target, channels) for source in range(len(channels)))
            for target in range(len(channels))
        )
        self.act = nn.ReLU()

    def forward(self, maps: list[Tensor]) -> list[Tensor]:
        """Maps ``(N, C, H, W)``, one per branch, to maps of the same shapes."""
        seen = []
        for x, blocks in zip(maps, self.branches):
            size = tuple(x.shape[2:])
            x = to_tokens(x)
            for block in blocks.children():
                x = block(x, size)
            seen.append(to_map(x, size))
        return [
            self.act(sum(_enlarge(convert(x), k - target, own) for k, (x, convert) in enumerate(zip(seen, layers))))
            for target, (own, layers) in enumerate(zip(seen, self.exchange))
        ]


def _enlarge(x: Tensor, steps: int, like: Tensor) -> Tensor:
    """Upsample a map from ``steps`` branches further down to the size of ``like``; other maps are unchanged."""
    if steps <= 0:
        return x
    x, size = interpolate(x, scale_factor=2**steps, mode='nearest'), like.shape[2:]
    return x if x.shape[2:] == size else interpolate(x, size, mode='bilinear', align_corners=True)


def _exchange(source: int, target: int, channels: Sequence[int]) -> nn.Module:
    """Layers from one branch to the channels and, for a coarser one, the resolution of another."""
    own, wanted = channels[source], channels[target]
    if source >= target:
        return nn.Identity() if source == target else ConvModule(own, wanted, 1, act_cfg=None, **BN)
    layers = []
    for step in range(source, target):
        last = step == target - 1
        layers.append(ConvModule(own, own, 3, stride=2, padding=1, groups=own, act_cfg=None, **BN))
        layers.append(ConvModule(own, wanted if last else own, 1, act_cfg=None if last else dict(type='ReLU'), **BN))
    return nn.Sequential(*layers)
