"""VT-FPN: a feature pyramid whose levels exchange visual tokens (paper, section 4.2).

Letters: N batch, C output channels, H_i and W_i size of level i, L tokens a level, C_T token channels.
"""

from collections.abc import Sequence

import torch
from mmseg.models.necks import FPN
from torch import Tensor, nn
from torch.nn.functional import max_pool2d, relu
from torch.overrides import has_torch_function

from vt.errors import UserError
from vt.registry import MODELS

from ..checks import require_with
from ..grouped_linear import GroupedLinear
from ..vt_module import NoProjector
from .side_by_side import are_published, has_listeners, relate_levels

# The published model: every part as its equation says.
TOKENIZER = dict(type='vt.FilterTokenizer')
RELATION = dict(type='vt.TokenTransformer')
PROJECTOR = dict(type='vt.Projector', value_gain=0.1)
UPSAMPLE = dict(mode='nearest')  # FPN's default


@MODELS.register_module()
class VTFPN(FPN):
    """A neck in FPN's place, with its arguments, its inputs and its outputs.

    A 1x1 lateral convolution brings each level to ``out_channels``. A tokenizer a level groups the level's pixels into
    tokens, one relation takes the tokens of all levels together, and a projector a level writes its tokens back. Where
    FPN adds up neighbouring levels from the top down and smooths each with a 3x3 convolution, here every level hears of
    every other one at once, through a few tokens, and nothing but the lateral convolution is as wide as the map.

    The lateral convolutions, their initialisation and the extra levels of detectors are FPN's. The VT parts start as
    their docstrings say, but the projectors' W_V at a tenth of its scale: all pixels of a level read nearly the same
    mixture of tokens at first, which differs from image to image and would drown what tells the pixels apart. The paper
    gives no initialisation.

    Args:
        in_channels: channels of each input.
        out_channels: C.
        num_outs: number of outputs; more than there are levels gives extra ones on top, as in FPN. As many as there are
            levels by default.
        num_tokens: L, visual tokens of a level.
        token_channels: C_T, channels of a token.
        groups: channel groups of every token-side matrix; a part's own config wins. Four bring the neck to the paper's
            2.0 GFLOPs at 473x473, where the full matrices (``groups=1``), on 32 tokens of 1024 channels, weigh most.
        tokenizer: config of every level's tokenizer; in this and the next two a missing key has the default's value.
        relation: config of the relation over the tokens of all levels; None for none.
        projector: config of every level's projector; None for none.
        **fpn: other options of :class:`mmseg.models.FPN`, which are MMDetection's too: ``start_level``, ``end_level``
            (the first level that is left out; MMDetection counts it in), ``add_extra_convs``,
            ``extra_convs_on_inputs``, ``relu_before_extra_convs``, ``no_norm_on_lateral``, ``conv_cfg``, ``norm_cfg``,
            ``act_cfg``, ``init_cfg``. ``upsample_cfg`` is FPN's default alone: nothing is upsampled.

    Raises:
        UserError: levels that are not there; sizes that don't divide; another ``upsample_cfg``; options of extra levels
            without these; in the forward pass, another number of inputs.
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
        num_levels = _count_levels(len(in_channels), **fpn)
        if num_outs is None:
            num_outs = num_levels
        if num_outs < num_levels or (num_outs > num_levels and fpn.get('end_level', -1) != -1):
            raise UserError(f'VTFPN: num_outs={num_outs}, but in_channels, start_level and end_level make {num_levels}')
        if fpn.get('upsample_cfg', UPSAMPLE) != UPSAMPLE:
            raise UserError(
                f'VTFPN: upsample_cfg={fpn["upsample_cfg"]} has no effect, nothing is upsampled; leave it out'
            )
        require_with('VTFPN', 'add_extra_convs', fpn.get('add_extra_convs'), num_outs=num_outs > num_levels)
        for name in ('extra_convs_on_inputs', 'relu_before_extra_convs'):
            require_with('VTFPN', name, fpn.get(name), add_extra_convs=fpn.get('add_extra_convs'))
        super().__init__(list(in_channels), out_channels, num_outs, **fpn)
        del self.fpn_convs[:num_levels]  # FPN's 3x3 convolutions; those of extra levels stay

        widths = dict(in_channels=out_channels, token_channels=token_channels, groups=groups)
        tokenizer = TOKENIZER | dict(num_tokens=num_tokens) | widths | tokenizer
        relation = relation and RELATION | dict(token_channels=token_channels, groups=groups) | relation
        self.tokenizers = nn.ModuleList(MODELS.build(tokenizer) for _ in range(num_levels))
        self.relation = MODELS.build(relation) if relation else nn.Identity()
        projector = projector and PROJECTOR | widths | projector
        self.projectors = nn.ModuleList(
            MODELS.build(projector) if projector else NoProjector() for _ in range(num_levels)
        )

    def forward(self, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Maps of a backbone to maps of one width.

        Args:
            inputs: one map for each of ``in_channels``, ``(N, C_i, H_i, W_i)``, of any sizes.

        Returns:
            ``num_outs`` maps, ``(N, C, H_i, W_i)``.
        """
        if len(inputs) != len(self.in_channels):
            raise UserError(f'VTFPN: {len(inputs)} maps came in, in_channels names {len(self.in_channels)}')
        maps = inputs[self.start_level : self.start_level + len(self.tokenizers)]
        if are_published(self.tokenizers, self.projectors) and self._is_alone(inputs):
            parts = (self.lateral_convs, self.tokenizers, self.relation, self.projectors)
            laterals, outs = relate_levels(*parts, maps)
        else:
            laterals, tokens = zip(*self._tokenize_levels(maps))
            lengths = [level.shape[1] for level in tokens]
            tokens = self.relation(torch.cat(tokens, dim=1)).split(lengths, dim=1)
            outs = [project(x, level) for project, x, level in zip(self.projectors, laterals, tokens)]
        return (*outs, *self._extra_levels(inputs, laterals, outs))

    def _is_alone(self, inputs: Sequence[Tensor]) -> bool:
        """Whether nobody sees what passes through the levels' parts: no hook, compiler, tracer or tensor class."""
        if torch.compiler.is_compiling() or torch.jit.is_tracing() or has_torch_function(inputs):
            return False
        layers = [layer for convolve in self.lateral_convs for layer in convolve.modules()]
        parts = [*self.tokenizers, *self.projectors]
        matrices = [part for outer in parts for part in outer.children() if isinstance(part, GroupedLinear)]
        return not has_listeners([*layers, *parts, *matrices])

    def _tokenize_levels(self, inputs: Sequence[Tensor]) -> list[tuple[Tensor, Tensor]]:
        """The lateral map ``(N, C, H_i, W_i)`` and the tokens ``(N, L, C_T)`` of each level.

        The coarsest goes first. A backward pass then ends with it, and begins with the finest, whose maps are the
        largest and are gone before the gradients of the other levels need memory.
        """
        levels = []
        for convolve, tokenize, x in reversed(list(zip(self.lateral_convs, self.tokenizers, inputs))):
            lateral = convolve(x)
            levels.append((lateral, tokenize(lateral)))
        return levels[::-1]

    def _extra_levels(self, inputs: Sequence[Tensor], laterals: Sequence[Tensor], outs: list[Tensor]) -> list[Tensor]:
        """The levels on top that detectors ask for: every other pixel, or strided convolutions in a row."""
        x, extra = outs[-1], []
        if not self.add_extra_convs:
            for _ in range(self.num_outs - len(outs)):
                extra.append(x := max_pool2d(x, 1, stride=2))
            return extra
        x = dict(on_input=inputs[self.backbone_end_level - 1], on_lateral=laterals[-1], on_output=x)[
            self.add_extra_convs
        ]
        for convolve in self.fpn_convs:
            extra.append(x := convolve(relu(x) if extra and self.relu_before_extra_convs else x))
        return extra


def _count_levels(num_inputs: int, start_level: int = 0, end_level: int = -1, **others) -> int:
    """How many inputs FPN uses."""
    end = num_inputs if end_level == -1 else end_level
    if not 0 <= start_level < end <= num_inputs:
        raise UserError(
            f'VTFPN: start_level={start_level} and end_level={end_level} name no levels of {num_inputs} in_channels'
        )
    return end - start_level
