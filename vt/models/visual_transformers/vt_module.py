"""The Visual Transformer module: tokenizer, transformer (here: relation) and projector (paper, section 3, figure 1).

Letters: N batch, C map channels, H and W map size, L tokens, C_T token channels.
"""

from torch import Tensor, nn

from vt.models.checks import check_shape
from vt.models.grid import Identity
from vt.registry import MODELS

# Parts of the published model.
TOKENIZER = dict(type='vt.FilterTokenizer')
LATER_TOKENIZER = dict(type='vt.RecurrentTokenizer')  # of the second module of a stage, and those after it
RELATION = dict(type='vt.TokenTransformer')
PROJECTOR = dict(type='vt.Projector')


@MODELS.register_module()
class VTModule(nn.Module):
    """A VT module: tokenizer, relation between tokens, projector.

    Parts are configs, whose type may be omitted and to which the module adds ``in_channels`` and ``token_channels``, or
    modules that are used as they are. The defaults are those of the published model.

    Args:
        in_channels: C, channels of the feature map.
        token_channels: C_T, channels of a token.
        tokenizer: tokenizer, called with ``(x, tokens)``.
        relation: what relates the tokens, called with ``(tokens)``: the transformer of section 3.2, or what takes its
            place (table 5); None for none.
        projector: projector, called with ``(x, tokens)``; None for none, the map is unchanged.

    Raises:
        UserError: a part returns another shape than :meth:`forward` needs.
    """

    def __init__(
        self,
        in_channels: int,
        token_channels: int,
        tokenizer: dict | nn.Module = TOKENIZER,
        relation: dict | nn.Module | None = RELATION,
        projector: dict | nn.Module | None = PROJECTOR,
    ) -> None:
        super().__init__()
        widths = dict(in_channels=in_channels, token_channels=token_channels)
        self.tokenizer = _build(tokenizer, TOKENIZER | widths)
        usual = RELATION | dict(token_channels=token_channels)
        self.relation = nn.Identity() if relation is None else _build(relation, usual)
        self.projector = Identity() if projector is None else _build(projector, PROJECTOR | widths)
        pixels, tokens = (2, in_channels, 16, 15), (2, getattr(self.tokenizer, 'num_tokens', 16), token_channels)
        check_shape(self.tokenizer, '(N, num_tokens, token_channels)', tokens, pixels, tokens)
        check_shape(self.relation, 'that of the tokens, (N, L, C_T)', tokens, tokens)
        check_shape(self.projector, 'that of the map, (N, C, H, W)', pixels, pixels, tokens)

    def forward(self, x: Tensor, tokens: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Refine a map and its tokens.

        Args:
            x: feature map, ``(N, C, H, W)``.
            tokens: tokens of the previous module, ``(N, L, C_T)``; None for the first module.

        Returns:
            The refined map ``(N, C, H, W)`` and the tokens ``(N, L, C_T)``.
        """
        tokens = self.relation(self.tokenizer(x, tokens))
        return self.projector(x, tokens), tokens


def _build(part: dict | nn.Module, usual: dict) -> nn.Module:
    """Return a module, or build that of a config, which overrides the ``usual`` one."""
    return part if isinstance(part, nn.Module) else MODELS.build(usual | part)
