"""Visual Transformer modules after any backbone, or in place of its last stage, as section 4.1 does with ResNet.

Letters: N batch, C_i, H_i and W_i channels and size of map i, C, H and W those of the last,
L tokens, C_T token channels.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from vt.errors import UserError
from vt.models.checks import require_positive
from vt.models.layer_depths import layer_depths
from vt.models.staged_backbone import StagedBackbone
from vt.registry import MODELS

from .vt_stage import MAP_RMS, HasVTStages, require_out_type


class DroppedPart(nn.Module):
    """Placeholder for a removed part: return the input, or several inputs as a tuple."""

    def forward(self, *inputs: Any, **options: Any) -> Any:
        return inputs[0] if len(inputs) == 1 else inputs


@MODELS.register_module()
class VTBackbone(HasVTStages, StagedBackbone):
    """A backbone followed by a stage of Visual Transformer modules on its last map.

    Any backbone that returns maps works: MMPretrain's, timm's (``type='TIMMBackbone', features_only=True``), or those
    of this package. To replace its last stage, configure it to build fewer stages or to return an earlier map, and
    name the unused parts in ``drop``, so that they cost nothing. ::

        backbone=dict(
            type='vt.VTBackbone',
            backbone=dict(type='ConvNeXt', arch='tiny', out_indices=[2], gap_before_final_norm=False),
            drop=('downsample_layers.3', 'stages.3'),
            in_channels=384,
        )

    The scale of the map varies between backbones and between checkpoints, and the token attention is cubic in it. So
    the map is normalised first, each image by its mean and variance over pixels and channels (independent of the
    batch), and the weight of the normalisation starts at the root mean square at which VT-ResNet starts.

    The backbone loads its weights by its own ``init_cfg``. For layer-wise learning rates, the layers of the backbone
    come first, as :func:`vt.models.layer_depths.layer_depths` counts them; each VT module adds one.

    Args:
        backbone: config of the backbone; the modules read the last map that it returns.
        in_channels: C, channels of that map.
        num_modules: number of VT modules.
        drop: names of submodules of the backbone to replace by the identity.
        out_type: ``'tokens'`` for classifiers, or ``'featmap'`` for dense prediction.
        out_indices: for ``'featmap'``, indices of the returned maps: those of the backbone from 0, then the refined map
            of the modules, which is also -1.
        frozen_stages: -1 trains everything, 0 freezes the backbone, 1 freezes the modules too.
        drop_path_rate: stochastic depth rate of the last module; rates grow linearly from 0 over the modules.
        with_cp: recompute modules in the backward pass to save memory.
        init_cfg: as in mmengine, for the whole model.
        num_tokens: L, number of visual tokens.
        token_channels: C_T, channels of a token.
        groups: channel groups of every token-side matrix; the config of a part overrides it.
        **parts: configs of parts: ``tokenizer`` and ``later_tokenizer`` (of the first and of later modules),
            ``relation`` and ``projector``.

    Raises:
        UserError: an unknown ``out_type`` or ``frozen_stages``; in the forward pass, a last output that is not a map of
            ``in_channels`` channels.
    """

    new_by_design = ('norm', 'stage')  # the checkpoint of a plain backbone has neither

    def __init__(
        self,
        backbone: dict,
        in_channels: int,
        num_modules: int = 2,
        drop: Sequence[str] = (),
        out_type: str = 'tokens',
        out_indices: Sequence[int] = (-1,),
        frozen_stages: int = -1,
        drop_path_rate: float = 0.0,
        with_cp: bool = False,
        init_cfg: dict | Sequence[dict] | None = None,
        *,
        num_tokens: int = 16,
        token_channels: int = 1024,
        groups: int = 1,
        **parts,
    ) -> None:
        tokens = dict(num_tokens=num_tokens, token_channels=token_channels, groups=groups)
        super().__init__(init_cfg=init_cfg, **tokens, **parts)
        require_positive(self, num_modules=num_modules)
        require_out_type('VTBackbone', out_type)
        self.backbone = MODELS.build(backbone)
        for name in drop:
            self.backbone.set_submodule(name, DroppedPart(), strict=True)
        self.in_channels = in_channels
        self.out_type = out_type
        self.out_indices = tuple(out_indices)
        self.norm = nn.GroupNorm(1, in_channels)
        nn.init.constant_(self.norm.weight, MAP_RMS)
        drop_paths = torch.linspace(0, drop_path_rate, num_modules + 1)[1:].tolist()
        self.stage = self.build_stage(in_channels, drop_paths, out_type, with_cp)
        self.freeze(frozen_stages)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Compute tokens or maps.

        Args:
            x: images, ``(N, 3, height, width)``.

        Returns:
            A tuple: for ``'tokens'`` the tokens of the last module, ``(N, L, C_T)``; for ``'featmap'`` the maps of
            ``out_indices``, ``(N, C_i, H_i, W_i)``.
        """
        maps = tuple(self.backbone(x))
        if maps[-1].dim() != 4 or maps[-1].shape[1] != self.in_channels:
            raise UserError(
                f'VTBackbone: in_channels={self.in_channels}, but {type(self.backbone).__name__} returns '
                f'{tuple(maps[-1].shape)}; it must return a map (N, {self.in_channels}, H, W)'
            )
        out = self.stage(self.norm(maps[-1]))
        if self.out_type == 'tokens':
            return (out,)
        outs = (*maps, out)
        return tuple(outs[index] for index in self.out_indices)

    def layer_starts(self) -> dict[str, int]:
        layers = {f'backbone.{name}': depth for name, depth in layer_depths(self.backbone).items()}
        number = max(layers.values()) + 1
        return layers | {'norm.': number} | {f'stage.{index}.': number + index for index in range(len(self.stage))}

    def stage_parts(self) -> list[tuple[nn.Module, ...]]:
        return [(self.backbone,), (self.norm, self.stage)]
