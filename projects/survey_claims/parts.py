"""Parts that only a claim needs: TokenFuser, a block on a few tokens, and a head whose two tokens learn from labels.

Letters: N batch, C channels of map and tokens, H and W map size, P = H * W, L tokens, K classes.
"""

from mmpretrain.structures import DataSample
from torch import Tensor, cat, nn

from vt.errors import UserError
from vt.models.grid import Size, to_map, to_tokens
from vt.models.heads import DistillationTokenHead
from vt.models.survey.blocks.block import Block
from vt.models.survey.embeddings.token_learner import pixel_maps
from vt.models.visual_transformers.pooling_tokenizer import nearest_square
from vt.ops.maps import in_shape_of, to_pixels
from vt.registry import MODELS


@MODELS.register_module()
class TokenFuser(nn.Module):
    """``X_out = X + sigmoid(MLP(norm(X))) norm(M norm(T))`` (section 2.2), where M, L x L, mixes the tokens.

    The gates depend on the pixel only; the softmax of VT's projector also depends on the keys of the tokens.
    M is initialised to zero, so nothing is added at the start (the authors' code).

    Args:
        in_channels: C, channels of the feature map.
        token_channels: channels of a token, equal to C.
        num_tokens: L.

    Raises:
        UserError: ``token_channels`` is not C.
    """

    def __init__(self, in_channels: int, token_channels: int, num_tokens: int = 8) -> None:
        super().__init__()
        if token_channels != in_channels:
            raise UserError(
                f'TokenFuser: in_channels={in_channels} and token_channels={token_channels} must be equal; change one'
            )
        self.norm = nn.LayerNorm(token_channels, eps=1e-6)
        self.mix = nn.Conv1d(num_tokens, num_tokens, 1)  # not Linear, which backbones initialise
        nn.init.zeros_(self.mix.weight)
        nn.init.zeros_(self.mix.bias)
        self.mixed_norm = nn.LayerNorm(token_channels, eps=1e-6)
        self.gates = pixel_maps(in_channels, num_tokens)

    def forward(self, x: Tensor, tokens: Tensor) -> Tensor:
        """Write tokens ``(N, L, C)`` to a map ``(N, C, H, W)`` or its pixels ``(N, P, C)``; return the same shape."""
        tokens = self.mixed_norm(self.mix(self.norm(tokens)))
        return x + in_shape_of(x, self.gates(to_pixels(x)).sigmoid() @ tokens)

    def attention(self, x: Tensor, tokens: Tensor) -> Tensor:
        """Gates of each pixel and token, ``(N, 1, L, H, W)``; they do not sum to one."""
        return self.gates(to_pixels(x)).sigmoid().transpose(1, 2).unflatten(-1, x.shape[-2:]).unsqueeze(1)


@MODELS.register_module()
class TokenizedBlock(Block):
    """``fuser(x, block(tokenizer(x)))``: TokenLearner and TokenFuser (Ryoo et al., 2021, section 2.3), or VT's parts.

    Args:
        channels: C.
        size: not used; accepted because every block gets it.
        num_heads: number of heads of the attention between the L tokens.
        tokenizer: config of the tokenizer, called with a map.
        fuser: config of the fuser, called with the map and the tokens of the block.
        **block: options of :class:`vt.models.Block`.
    """

    def __init__(self, channels: int, size: Size, num_heads: int, tokenizer: dict, fuser: dict, **block) -> None:
        widths = dict(in_channels=channels, token_channels=channels)
        tokenizer = MODELS.build(tokenizer, default_args=widths)
        grid = nearest_square(tokenizer.num_tokens)
        super().__init__(channels, grid, num_heads, **block)
        self.grid = grid
        self.tokenizer = tokenizer
        self.fuser = MODELS.build(fuser, default_args=widths)

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, P, C)`` to ``(N, P, C)``."""
        x = to_map(x, size)
        return to_tokens(self.fuser(x, super().forward(self.tokenizer(x), self.grid)))


@MODELS.register_module()
class LabelledTokensHead(DistillationTokenHead):
    """A linear classifier for each of two class tokens, both of which are trained with labels, without a teacher.

    The loss is the mean of both; predictions are the mean of their logits. Options are those of the base.
    """

    def forward(self, feats: tuple) -> Tensor:
        """Outputs of the backbone to logits ``(N, K)``; in training those of both tokens, ``(2 N, K)``."""
        if not self.training:
            return super().forward(feats)
        return cat([self.label_logits(feats), self.distillation_logits(feats)])

    def loss(self, feats: tuple, data_samples: list[DataSample], **options) -> dict[str, Tensor]:
        """Compute the mean loss of the two tokens."""
        return super().loss(feats, data_samples * 2, **options)
