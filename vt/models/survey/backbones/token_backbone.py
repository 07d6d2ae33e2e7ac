"""A backbone built from parts: a vision transformer is a list of stages, whose parts are named in its config.

Letters: N batch, K class tokens, P tokens of a stage's grid, ``(H, W)`` or ``(T, H, W)``, C channels.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from mmcv.cnn import build_norm_layer
from torch import Tensor, nn

from vt.checkpoints.weights import load_init_cfg
from vt.errors import UserError
from vt.models.grid import Size, split_class_tokens, to_map
from vt.models.staged_backbone import StagedBackbone
from vt.registry import MODELS

from .stage import NORM, SameTokens, Stage

INIT = (dict(type='TruncNormal', layer='Linear', std=0.02, bias=0.0),)


@MODELS.register_module()
class TokenBackbone(StagedBackbone):
    """A vision transformer built from the parts in a config; published models are in ``configs/_base_/models``.

    Args:
        stages: options of each :class:`Stage`.
        every_stage: options of all stages; those of a stage override them, dicts are merged one level deep.
        image_size: size during training: height and width, one number for both, or frames, height and width for
            videos. Positions are resized for other sizes.
        in_channels: channels of an image or a frame.
        out_type: the output of a stage: ``'class_tokens'``, the class token ``(N, C)``, or a tuple if there are
            several; ``'average'``, the mean of the grid's tokens ``(N, C)``; ``'map'``, ``(N, C, H, W)`` or
            ``(N, C, T, H, W)``; ``'tokens'``, all tokens ``(N, K + P, C)``; ``'layers'``, the class token after each
            block ``(N, depth, C)``; ``'messengers'``, the mean of the messengers ``(N, C)``.
        out_indices: indices of the stages whose output is returned; the last one by default.
        norm_outputs: normalise the outputs of stages that have no final normalisation.
        drop_path_rate: stochastic depth rate of the last block; rates grow linearly from 0.
        frozen_stages: index of the last frozen stage; the stages up to it are not trained; -1 for none.
        with_cp: recompute blocks in the backward pass to save memory.
        layer_inits: initialisers applied after those of ``init_cfg``, such as :class:`vt.LayerInit`; not used if
            ``init_cfg`` loads a checkpoint.
        init_cfg: as in mmengine; linear layers are drawn with a standard deviation of 0.02 by default.

    Raises:
        UserError: an unknown stage; a ``drop_path_rate`` without effect; no class token for a part or an output that
            needs one; sizes that are not divisible.
    """

    OUTPUTS = dict(
        class_tokens=lambda x, size: _unpack(split_class_tokens(x, size)[0].unbind(1)),
        average=lambda x, size: split_class_tokens(x, size)[1].mean(dim=1),
        map=lambda x, size: to_map(split_class_tokens(x, size)[1], size),
        tokens=lambda x, size: x,
        layers=lambda x, size: x,  # forward passes the stacked class tokens
        messengers=lambda x, size: split_class_tokens(x, size)[0].mean(dim=1),
    )
    stages: Any  # nn.ModuleList of Stage

    def __init__(
        self,
        stages: Sequence[dict],
        every_stage: dict | None = None,
        image_size: int | Size = 224,
        in_channels: int = 3,
        out_type: str = 'average',
        out_indices: Sequence[int] = (-1,),
        norm_outputs: bool = False,
        drop_path_rate: float = 0.0,
        frozen_stages: int = -1,
        with_cp: bool = False,
        layer_inits: Sequence[dict] = (),
        init_cfg: dict | Sequence[dict] = INIT,
    ) -> None:
        if isinstance(init_cfg, dict) and init_cfg['type'] == 'Pretrained':
            super().__init__(init_cfg)
        else:
            super().__init__([*([init_cfg] if isinstance(init_cfg, dict) else init_cfg or ()), *layer_inits])
        if wrong := [index for index in out_indices if not -len(stages) <= index < len(stages)]:
            raise UserError(f'TokenBackbone: out_indices={wrong} do not exist; the stages are 0 to {len(stages) - 1}')
        size = (image_size, image_size) if isinstance(image_size, int) else tuple(image_size)
        self.image_size = size
        stages = merge_options(every_stage or {}, stages)
        if drop_path_rate and all('drop_path' in stage for stage in stages):
            raise UserError(
                f'TokenBackbone: drop_path_rate={drop_path_rate} has no effect, every stage sets drop_path: remove it'
            )
        drop_paths = np.linspace(0, drop_path_rate, sum(stage['depth'] for stage in stages)).tolist()
        self.stages = nn.ModuleList()
        for options in stages:
            rates, drop_paths = drop_paths[: options['depth']], drop_paths[options['depth'] :]
            stage = Stage(in_channels, size, drop_paths=rates, **options)
            in_channels, size = stage.out_channels, stage.out_size
            self.stages.append(stage)
        self._check_class_tokens(out_type)
        self.out_type = out_type
        self.out_indices = sorted(index % len(stages) for index in out_indices)
        self.with_cp = with_cp
        self.out_norms = nn.ModuleDict()
        for index in self.out_indices:
            if norm_outputs and isinstance(self.stages[index].norm, nn.Identity):
                norm_cfg = stages[index].get('norm_cfg', NORM)
                self.out_norms[str(index)] = build_norm_layer(norm_cfg, self.stages[index].out_channels)[1]
        self.freeze(frozen_stages)

    def _check_class_tokens(self, out_type: str) -> None:
        """Raise ``UserError`` if tokens of the grid would be taken for class tokens."""
        number = 0
        for index, stage in enumerate(self.stages):
            own = 0 if stage.class_tokens is None else stage.class_tokens.shape[1]
            number = own + (number if isinstance(stage.embed, SameTokens) else 0)
            if number != 1 and any(getattr(part, 'updates_class_tokens_alone', False) for part in stage.modules()):
                raise UserError(
                    f'TokenBackbone: stage {index} has {number} class tokens, but ClassAttention requires 1: set '
                    'class_tokens=1 for this stage'
                )
        if out_type in ('class_tokens', 'layers') and not number:
            raise UserError(f'TokenBackbone: out_type={out_type!r}, but the last stage has no class token')

    loads_itself = True  # the file in init_cfg, in init_weights

    def init_weights(self) -> None:
        """Initialise the weights, or load them from the checkpoint of ``init_cfg``."""
        if isinstance(self.init_cfg, dict) and self.init_cfg['type'] == 'Pretrained':
            load_init_cfg(self, self.init_cfg)
            self.is_init = True
        else:
            super().init_weights()

    def forward(self, x: Tensor) -> tuple:
        """Run the backbone.

        Args:
            x: images ``(N, in_channels, height, width)``, or videos ``(N, in_channels, frames, height, width)``.

        Returns:
            A tuple with the output of each stage of ``out_indices``, as ``out_type`` says.
        """
        size, outs = tuple(x.shape[2:]), []
        for index, stage in enumerate(self.stages):
            if index and not stage.embed.takes_tokens:
                x = to_map(split_class_tokens(x, size)[1], size)
            classes = [] if self.out_type == 'layers' else None
            x, size = stage(x, size, self.with_cp, classes)
            if index in self.out_indices and classes:
                outs.append(torch.stack(classes, dim=1))
            elif index in self.out_indices:
                x_out = self.out_norms[str(index)](x) if str(index) in self.out_norms else x
                outs.append(self.OUTPUTS[self.out_type](x_out, size))
        return tuple(outs)

    def layer_starts(self) -> dict[str, int]:
        """What is before the blocks of a stage belongs to its first block, that of the first stage to layer 0."""
        layers, depth = {}, 0
        for index, stage in enumerate(self.stages):
            layers |= {f'stages.{index}.{part}': depth + bool(depth) for part in ('embed', 'class_tokens', 'position')}
            for block in range(len(stage.blocks)):
                depth += 1
                layers |= {f'stages.{index}.{part}.{block}.': depth for part in ('blocks', 'peg')}
            if index < len(self.stages) - 1:
                layers[f'stages.{index}.norm'] = depth
        return layers

    def stage_parts(self) -> list[tuple[nn.Module, ...]]:
        return [(stage,) for stage in self.stages]


def merge_options(shared: dict, stages: Sequence[dict]) -> list[dict]:
    """Merge the options of each stage into those that all stages share; dicts are merged one level deep."""
    merged = []
    for own in stages:
        both = {key for key, value in own.items() if isinstance(value, dict) and isinstance(shared.get(key), dict)}
        merged.append({**shared, **own} | {key: {**shared[key], **own[key]} for key in both})
    return merged


def _unpack(items: tuple) -> Any:
    """Return the only item, or the tuple if there are several."""
    return items[0] if len(items) == 1 else items
