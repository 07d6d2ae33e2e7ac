"""Normalisation layers for tokens."""

from torch import Tensor, nn

from vt.registry import MODELS


@MODELS.register_module()
class TokenBatchNorm(nn.Module):
    """Batch normalisation of tokens ``(N, P, C)``: each channel over all tokens of the batch.

    Args:
        num_features: C.
        **kwargs: other options of :class:`torch.nn.BatchNorm1d`.
    """

    def __init__(self, num_features: int, **kwargs) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(num_features, **kwargs)  # a submodule, which SyncBatchNorm can replace

    def forward(self, x: Tensor) -> Tensor:
        """``(N, P, C)`` to ``(N, P, C)``."""
        # rows: a transposed view takes PyTorch's slow path on a CPU, here and in the layers that get its gradient
        return self.norm(x.flatten(0, 1)).unflatten(0, x.shape[:2])
