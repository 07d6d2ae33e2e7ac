"""A stage of Visual Transformer modules, wherever it stands in a network (paper, section 3)."""

from collections.abc import Sequence

from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from vt.errors import UserError

from ..vt_module import VTModule

# The published model: every part as its equation says.
FIRST_TOKENIZER = dict(type='vt.FilterTokenizer')
LATER_TOKENIZER = dict(type='vt.RecurrentTokenizer')
RELATION = dict(type='vt.TokenTransformer')
PROJECTOR = dict(type='vt.Projector')
# Root mean square of a map on which modules start calmly: a quarter of what a fresh ResNet's stage 4 has.
MAP_RMS = 0.25 * 0.5**0.5


class VTStage(nn.ModuleList):
    """Modules in a row: the first one's tokenizer has learned filters, the later ones make theirs from its tokens.

    Args:
        in_channels: C, channels of the map.
        drop_paths: stochastic depth of each module, which passes its rate to a relation and a projector whose config
            names no ``drop_path``; as many as there are modules.
        num_tokens: L, visual tokens.
        token_channels: C_T, channels of a token.
        groups: channel groups of every token-side matrix; a part's own config wins.
        tokenizer: config of the first module's tokenizer; in this and the next three a missing ``type`` is the default.
        later_tokenizer: config of the tokenizers of the modules after it.
        relation: config of the relation; None for none.
        projector: config of the projector; None for none. The last module has none where only its tokens are read.
        out_type: what the forward pass gives, ``'tokens'`` or ``'featmap'``.
        with_cp: recompute modules in the backward pass to save memory.
    """

    def __init__(
        self,
        in_channels: int,
        drop_paths: Sequence[float],
        num_tokens: int = 16,
        token_channels: int = 1024,
        groups: int = 1,
        tokenizer: dict = FIRST_TOKENIZER,
        later_tokenizer: dict = LATER_TOKENIZER,
        relation: dict | None = RELATION,
        projector: dict | None = PROJECTOR,
        out_type: str = 'tokens',
        with_cp: bool = False,
    ) -> None:
        super().__init__()
        self.out_type = out_type
        self.with_cp = with_cp
        shared = dict(groups=groups) if groups != 1 else {}
        first = FIRST_TOKENIZER | dict(num_tokens=num_tokens) | shared | tokenizer
        later = LATER_TOKENIZER | dict(num_tokens=num_tokens) | shared | later_tokenizer
        for index, rate in enumerate(drop_paths):
            dropped = dict(drop_path=rate) if rate else {}
            keeps_projector = out_type == 'featmap' or index < len(drop_paths) - 1
            module = VTModule(
                in_channels,
                token_channels,
                tokenizer=later if index else first,
                relation=relation and RELATION | shared | dropped | relation,
                projector=PROJECTOR | shared | dropped | projector if projector and keeps_projector else None,
            )
            self.append(module)

    def __getitem__(self, index: int | slice) -> nn.Module:
        return nn.ModuleList(list(self)[index]) if isinstance(index, slice) else super().__getitem__(index)

    def forward(self, x: Tensor) -> Tensor:
        """A map ``(N, C, H, W)`` to the last module's tokens ``(N, L, C_T)``, or to the map that it refined."""
        tokens = None
        for module in self:
            if self.with_cp and x.requires_grad:
                x, tokens = checkpoint(module, x, tokens, use_reentrant=False)
            else:
                x, tokens = module(x, tokens)
        return tokens if self.out_type == 'tokens' else x


def require_out_type(backbone: str, out_type: str) -> None:
    """Raise ``UserError`` unless a backbone can give this."""
    if out_type not in ('tokens', 'featmap'):
        raise UserError(f"{backbone}: out_type={out_type!r} is neither 'tokens' nor 'featmap'")
