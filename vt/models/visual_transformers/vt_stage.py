"""Stages of Visual Transformer modules, at any position in a network (paper, sections 3 and 4.1).

Letters: N batch, C map channels, H and W map size, L tokens, C_T token channels.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from torch import Tensor, nn

from vt.errors import UserError
from vt.models.recomputation import recompute

from .vt_module import LATER_TOKENIZER, PROJECTOR, RELATION, TOKENIZER, VTModule

# Root mean square of a map at which training is stable: a quarter of that of an untrained ResNet's stage 4, sqrt(1/2),
# whose residual branches start at zero: the map is ReLU of values of unit variance.
MAP_RMS = 0.25 * 0.5**0.5


class VTStage(nn.ModuleList):
    """A sequence of VT modules.

    Args:
        modules: the modules.
        out_type: output of the forward pass, ``'tokens'`` or ``'featmap'``.
        with_cp: recompute modules in the backward pass to save memory.
    """

    def __init__(self, modules: Iterable[VTModule], out_type: str = 'tokens', with_cp: bool = False) -> None:
        super().__init__(modules)
        self.out_type = out_type
        self.with_cp = with_cp

    def __getitem__(self, idx: int | slice) -> Any:
        return nn.ModuleList(list(self)[idx]) if isinstance(idx, slice) else super().__getitem__(idx)

    def forward(self, x: Tensor) -> Tensor:
        """Map ``(N, C, H, W)`` to the tokens of the last module ``(N, L, C_T)``, or to its map ``(N, C, H, W)``."""
        tokens: Any = None
        for module in self:
            if self.with_cp and x.requires_grad:
                x, tokens = recompute(module, x, tokens)
            else:
                x, tokens = module(x, tokens)
        return tokens if self.out_type == 'tokens' else x


class HasVTStages:
    """Base class of backbones with stages of VT modules, which have the same options.

    The tokenizer of the first module of a stage has learned filters, the later ones are recurrent. The configs of the
    four parts may omit ``type``; the defaults are those of the published model.

    Args:
        num_tokens: L, number of visual tokens.
        token_channels: C_T, channels of a token.
        groups: channel groups of every token-side matrix; the config of a part overrides it.
        tokenizer: config of the first module's tokenizer.
        later_tokenizer: config of the tokenizers of later modules.
        relation: config of what relates the tokens, the transformer of section 3.2; None for none.
        projector: config of the projector; None for none.
        **backbone: options of the backbone class that follows in the bases.
    """

    def __init__(
        self,
        *,
        num_tokens: int = 16,
        token_channels: int = 1024,
        groups: int = 1,
        tokenizer: dict = TOKENIZER,
        later_tokenizer: dict = LATER_TOKENIZER,
        relation: dict | None = RELATION,
        projector: dict | None = PROJECTOR,
        **backbone,
    ) -> None:
        super().__init__(**backbone)
        self.token_channels = token_channels
        shared = dict(groups=groups) if groups != 1 else {}  # parts of users need no argument groups while it is 1
        first = TOKENIZER | dict(num_tokens=num_tokens) | shared | tokenizer
        later = LATER_TOKENIZER | dict(num_tokens=num_tokens) | shared | later_tokenizer
        relation = None if relation is None else RELATION | shared | relation
        projector = None if projector is None else PROJECTOR | shared | projector
        self.parts = first, later, relation, projector

    def build_stage(
        self, in_channels: int, drop_paths: Sequence[float], out_type: str = 'tokens', with_cp: bool = False
    ) -> VTStage:
        """Build a stage of modules.

        Args:
            in_channels: C, channels of the map.
            drop_paths: stochastic depth rate of each module; its length is the number of modules. The rate is passed to
                the relation and the projector unless their config sets ``drop_path``.
            out_type: as in :class:`VTStage`. With ``'tokens'`` the last module has no projector.
            with_cp: as in :class:`VTStage`.
        """
        first, later, relation, projector = self.parts
        modules = []
        for index, rate in enumerate(drop_paths):
            dropped = dict(drop_path=rate) if rate else {}
            keeps_projector = out_type == 'featmap' or index < len(drop_paths) - 1
            module = VTModule(
                in_channels,
                self.token_channels,
                tokenizer=later if index else first,
                relation=None if relation is None else dropped | relation,
                projector=None if projector is None or not keeps_projector else dropped | projector,
            )
            modules.append(module)
        return VTStage(modules, out_type, with_cp)


def require_out_type(backbone: str, out_type: str) -> None:
    """Raise ``UserError`` unless ``out_type`` is ``'tokens'`` or ``'featmap'``."""
    if out_type not in ('tokens', 'featmap'):
        raise UserError(f"{backbone}: out_type={out_type!r} must be 'tokens' or 'featmap'")
