"""VT-FPN: a feature pyramid whose levels exchange visual tokens (paper, section 4.2).

Letters: N batch, C_i, H_i and W_i channels and size of input i, C output channels, L tokens per level, C_T
token channels.
"""

from collections.abc import Sequence

import torch
from mmseg.models.necks import FPN
from torch import Tensor, nn
from torch.nn.functional import max_pool2d, relu

from vt.errors import UserError
from vt.models.checks import require_with
from vt.models.grid import Identity
from vt.ops.maps import in_shape_of, to_pixels
from vt.registry import MODELS

from .vt_module import PROJECTOR, RELATION, TOKENIZER

UPSAMPLE = dict(mode='nearest')  # FPN's default


@MODELS.register_module()
class VTFPN(FPN):
    """VT-FPN, a drop-in replacement for FPN with the same arguments, inputs and outputs.

    A 1x1 lateral convolution maps each level to ``out_channels``, a tokenizer per level computes tokens, one relation
    processes the tokens of all levels, and a projector per level writes its tokens back. FPN passes information between
    neighbouring levels, from the top down, and applies a 3x3 convolution to each. Here all levels exchange information
    at once through a few tokens, and the lateral convolutions are the only ones.

    The lateral convolutions, their initialisation and the extra levels are those of FPN. The paper gives no
    initialisation. W_V of the projectors starts at a tenth of its usual scale: at the start all pixels of a level read
    nearly the same mixture of tokens, which would hide the differences between pixels. The other VT parts are
    initialised as their docstrings say.

    Args:
        in_channels: channels of each input.
        out_channels: C.
        num_outs: number of outputs; by default that of the levels. A larger number adds levels on top, as in FPN.
        num_tokens: L, number of visual tokens per level.
        token_channels: C_T, channels of a token.
        groups: channel groups of every token-side matrix; the config of a part overrides it. The equations have one
            group, which is 2.04 GFLOPs at 473x473 (2.0 in the paper); 4 groups are 1.94, and a quarter of the
            parameters of these matrices.
        tokenizer: config of the tokenizers; here and in the next two, missing options are those of the default.
        relation: config of what relates the tokens of all levels, the transformer of section 3.2; None for none.
        projector: config of the projectors; None for none.
        **fpn: other options of :class:`mmseg.models.FPN`: ``start_level``, ``end_level`` (exclusive; MMDetection's is
            inclusive), ``add_extra_convs``, ``extra_convs_on_inputs``, ``relu_before_extra_convs``,
            ``no_norm_on_lateral``, ``conv_cfg``, ``norm_cfg``, ``act_cfg``, ``init_cfg``. ``upsample_cfg`` must be the
            default, because nothing is upsampled.

    Raises:
        UserError: levels that do not exist; sizes that are not divisible; another ``upsample_cfg``; options of extra
            levels without extra levels; in the forward pass, a wrong number of inputs.
    """

    def __init__(
        self,
        in_channels: Sequence[int],
        out_channels: int = 256,
        num_outs: int | None = None,
        num_tokens: int = 8,
        token_channels: int = 1024,
        groups: int = 4,
        tokenizer: dict = TOKENIZER,
        relation: dict | None = RELATION,
        projector: dict | None = PROJECTOR,
        **fpn,
    ) -> None:
        end = fpn.get('end_level', -1)
        num_levels = (len(in_channels) if end == -1 else end) - fpn.get('start_level', 0)
        if num_outs is None:
            num_outs = num_levels
        if fpn.get('upsample_cfg', UPSAMPLE) != UPSAMPLE:
            raise UserError(f'VTFPN: upsample_cfg={fpn["upsample_cfg"]} has no effect, nothing is upsampled; remove it')
        require_with('VTFPN', 'add_extra_convs', fpn.get('add_extra_convs'), num_outs=num_outs > num_levels)
        for name in ('extra_convs_on_inputs', 'relu_before_extra_convs'):
            require_with('VTFPN', name, fpn.get(name), add_extra_convs=fpn.get('add_extra_convs'))
        super().__init__(list(in_channels), out_channels, num_outs, **fpn)
        del self.fpn_convs[:num_levels]  # the 3x3 convolutions of FPN, except those of extra levels

        widths = dict(in_channels=out_channels, token_channels=token_channels, groups=groups)
        tokenizer = TOKENIZER | dict(num_tokens=num_tokens) | widths | tokenizer
        if relation is not None:
            relation = RELATION | dict(token_channels=token_channels, groups=groups) | relation
        self.tokenizers = nn.ModuleList(MODELS.build(tokenizer) for _ in range(num_levels))
        self.relation = MODELS.build(relation) if relation else nn.Identity()
        if projector is not None:
            projector = PROJECTOR | dict(value_gain=0.1) | widths | projector
        self.projectors = nn.ModuleList(MODELS.build(projector) if projector else Identity() for _ in range(num_levels))

    def forward(self, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Compute the pyramid.

        Args:
            inputs: a map per entry of ``in_channels``, ``(N, C_i, H_i, W_i)``, of any sizes.

        Returns:
            ``num_outs`` maps, ``(N, C, H_i, W_i)``.
        """
        if len(inputs) != len(self.in_channels):
            raise UserError(f'VTFPN: the input has {len(inputs)} maps, but in_channels has {len(self.in_channels)}')
        laterals, outs = self.relate_levels(inputs[self.start_level : self.start_level + len(self.tokenizers)])
        return (*outs, *self._extra_levels(inputs, laterals, outs))

    def relate_levels(self, maps: Sequence[Tensor]) -> tuple[Sequence[Tensor], list[Tensor]]:
        """Compute the levels, from the lateral convolutions to the projectors.

        :class:`vt.models.visual_transformers.fused_levels.FusedVTFPN` computes the same in fewer operations.

        Args:
            maps: map of each level, ``(N, C_i, H_i, W_i)``.

        Returns:
            The lateral maps, ``(N, C, H_i, W_i)``, or their pixels; and the maps with the tokens projected onto them.
        """
        laterals, tokens = [], []
        # The coarsest level is computed first, so the backward pass starts with the finest and frees its large maps
        # before the other levels need memory for gradients.
        for convolve, tokenize, x in reversed([*zip(self.lateral_convs, self.tokenizers, maps)]):
            laterals.insert(0, convolve(x))  # N, C, H_i, W_i
            tokens.insert(0, tokenize(laterals[0]))  # N, L, C_T
        related = self.relation(torch.cat(tokens, dim=1)).split([level.shape[1] for level in tokens], dim=1)
        return laterals, [project(x, level) for project, x, level in zip(self.projectors, laterals, related)]

    def _extra_levels(self, inputs: Sequence[Tensor], laterals: Sequence[Tensor], outs: list[Tensor]) -> list[Tensor]:
        """Compute the extra levels of detectors, by subsampling or by a sequence of strided convolutions."""
        x, extra = outs[-1], []
        if not self.add_extra_convs:
            for _ in range(self.num_outs - len(outs)):
                extra.append(x := max_pool2d(x, 1, stride=2))
            return extra
        if self.add_extra_convs == 'on_input':
            x = inputs[self.backbone_end_level - 1]
        elif self.add_extra_convs == 'on_lateral':
            x = in_shape_of(x, to_pixels(laterals[-1]))
        for convolve in self.fpn_convs:
            extra.append(x := convolve(relu(x) if extra and self.relu_before_extra_convs else x))
        return extra
