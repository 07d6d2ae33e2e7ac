"""HRFormer: resolutions beside each other, which exchange what they see (Yuan et al., NeurIPS 2021).

Letters: N batch, C channels, H and W size of a branch; each has half the resolution of the one before.
"""

from collections.abc import Sequence

import numpy as np
from mmcv.cnn import ConvModule
from mmpretrain.models.backbones.base_backbone import BaseBackbone
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from vt.checkpoints.old_names import load_old_names
from vt.errors import UserError
from vt.registry import MODELS

from ..embeddings.bottleneck import Bottleneck
from ..grid import Size, TokenPart
from .contract import check_part
from .parallel_resolutions import BN, ParallelResolutions

INIT = (
    dict(type='Kaiming', layer='Conv2d'),
    dict(type='TruncNormal', layer='Linear', std=0.02, bias=0.0),
)


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
        align_corners: coarser maps are doubled in size to their nearest pixels, then resized bilinearly with aligned
            corners where that is not the size (the authors' code for classes and segmentation); False doubles and
            resizes bilinearly, without (their code for poses).
        out_indices: branches whose map is returned, all by default.
        drop_path_rate: stochastic depth of the last block; rates grow linearly from 0.
        frozen_stages: the stem and the stages up to this one are not trained; -1 for none.
        with_cp: recompute modules in the backward pass to save memory; batch normalisations see each batch twice then.
        init_cfg: as in mmengine.

    Raises:
        UserError: a stage with other branches than one more than the stage before; a frozen stage that is not there.
    """

    def __init__(
        self,
        stages: Sequence[dict],
        block: dict | None = None,
        image_size: int | Size = 224,
        in_channels: int = 3,
        stem_channels: int = 64,
        num_bottlenecks: int = 2,
        align_corners: bool = True,
        out_indices: Sequence[int] | None = None,
        drop_path_rate: float = 0.0,
        frozen_stages: int = -1,
        with_cp: bool = False,
        init_cfg: dict | Sequence[dict] = INIT,
    ) -> None:
        super().__init__(list(init_cfg) if isinstance(init_cfg, Sequence) else init_cfg)
        if frozen_stages >= len(stages):
            raise UserError(f'HRFormer: frozen_stages={frozen_stages} of {len(stages)} stages; the last is one less')
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
                modules.append(
                    ParallelResolutions(channels, stage['num_heads'], sizes, rates, block or {}, align_corners)
                )
            self.stages.append(modules)
            before = channels
        self.out_indices = sorted(index % len(before) for index in out_indices or range(len(before)))
        self.frozen_stages = frozen_stages
        self.with_cp = with_cp
        for part in self.modules():
            if isinstance(part, TokenPart):
                check_part(part, 'HRFormer: a branch has', 0, has_messengers=False)
        load_old_names(self)
        self._freeze()

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Images ``(N, in_channels, height, width)`` to maps ``(N, C, H, W)``, the finest first."""
        maps = [self.stem(x)]
        for transition, stage in zip(self.transitions, self.stages):
            *finer, coarser = transition  # the new branch comes of the coarsest map there is
            maps = [convert(x) for convert, x in zip(finer, maps)] + [coarser(maps[-1])]
            for module in stage:
                recomputed = self.with_cp and any(x.requires_grad for x in maps)
                maps = checkpoint(module, maps, use_reentrant=False) if recomputed else module(maps)
        return tuple(maps[index] for index in self.out_indices)

    def get_layer_depth(self, param_name: str, prefix: str = '') -> tuple[int, int]:
        """Depth of a parameter and number of layers, for MMPretrain's layer-wise learning-rate decay.

        As in :class:`TokenBackbone`: the stem and the first transition are layer 0, another transition counts as the
        first blocks behind it, and what a module's branches exchange as its last blocks.
        """
        depths = [[len(module.branches[0]) for module in stage] for stage in self.stages]
        num_layers = sum(map(sum, depths)) + 2
        part, _, rest = param_name.removeprefix(prefix).partition('.')
        if part == 'stem':
            return 0, num_layers
        if part not in ('transitions', 'stages'):
            return num_layers - 1, num_layers
        index, module, *rest = rest.split('.')
        before = sum(map(sum, depths[: int(index)]))
        if part == 'transitions':
            return before + bool(before), num_layers
        before += sum(depths[int(index)][: int(module)])
        inside = int(rest[2]) + 1 if rest[0] == 'branches' else depths[int(index)][int(module)]
        return before + inside, num_layers

    def train(self, mode: bool = True) -> 'HRFormer':
        """Switch modes; frozen stages stay in evaluation mode."""
        super().train(mode)
        self._freeze()
        return self

    def _freeze(self) -> None:
        number = max(0, self.frozen_stages + 1)
        for part in (*[self.stem][:number], *self.transitions[:number], *self.stages[:number]):
            part.eval()
            part.requires_grad_(False)


def _transition(before: Sequence[int], channels: Sequence[int]) -> nn.ModuleList:
    """To the branches of the next stage, the last of which is new."""
    layers = [
        nn.Identity() if own == wanted else ConvModule(own, wanted, 3, padding=1, **BN)
        for own, wanted in zip(before, channels)
    ]
    return nn.ModuleList([*layers, ConvModule(before[-1], channels[-1], 3, stride=2, padding=1, **BN)])
