"""Normalisations of tokens that the libraries have for maps alone."""

from torch import Tensor, nn

from vt.registry import MODELS


@MODELS.register_module()
class TokenBatchNorm(nn.BatchNorm1d):
    """Batch normalisation of tokens ``(N, P, C)``, each channel over all tokens of the batch."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.transpose(1, 2)).transpose(1, 2)
