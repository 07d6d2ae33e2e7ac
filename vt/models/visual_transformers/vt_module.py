"""The Visual Transformer module: tokenizer, relation, projector (paper, section 3 and figure 1).

Letters: N batch, C map channels, H and W map size, L tokens, C_T token channels.
"""

from torch import Tensor, nn

from vt.registry import MODELS

from ..checks import check_shape
from ..grid import Unchanged

# Parts of the published model.
TOKENIZER = dict(type='vt.FilterTokenizer')
LATER_TOKENIZER = dict(type='vt.RecurrentTokenizer')  # of the second module of a stage, and those after it
RELATION = dict(type='vt.TokenTransformer')
PROJECTOR = dict(type='vt.Projector')
SIDES = (16, 15)  # of the map that parts are checked with


@MODELS.register_module()
class VTModule(nn.Module):
    """A VT module: tokenizer, relation between tokens, projector.

    The module adds ``in_channels`` and ``token_channels`` to the configs of the parts.

    Args:
        in_channels: C, channels of the feature map.
        token_channels: C_T, channels of a token.
        tokenizer: config of a tokenizer, called with ``(x, tokens)``.
        relation: config of a relation, called with ``(tokens)``; None for none.
        projector: config of a projector, called with ``(x, tokens)``; None for none, the map is unchanged.

    Raises:
        UserError: a part returns another shape than :meth:`forward` needs.
    """

    def __init__(
        self,
        in_channels: int,
        token_channels: int,
        tokenizer: dict,
        relation: dict | None,
        projector: dict | None,
    ) -> None:
        super().__init__()
        widths = dict(in_channels=in_channels, token_channels=token_channels)
        self.tokenizer = MODELS.build(tokenizer, default_args=widths)
        self.relation = (
            MODELS.build(relation, default_args=dict(token_channels=token_channels)) if relation else nn.Identity()
        )
        self.projector = MODELS.build(projector, default_args=widths) if projector else Unchanged()
        pixels, tokens = (2, in_channels, *SIDES), (2, getattr(self.tokenizer, 'num_tokens', 16), token_channels)
        check_shape(self.tokenizer, '(N, num_tokens, token_channels)', tokens, pixels, tokens)
        check_shape(self.relation, 'as the tokens came, (N, L, C_T)', tokens, tokens)
        check_shape(self.projector, 'as the map came, (N, C, H, W)', pixels, pixels, tokens)

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
