"""Peers: other libraries' classifiers, called as OpenMMLab's."""

from importlib import import_module

import torch
from mmengine.model import BaseModel
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from vt.errors import UserError

# Other libraries' classifiers: module, and its function that builds a model by name.
LIBRARIES = {
    'torchvision': ('torchvision.models', 'get_model'),
    'timm': ('timm', 'create_model'),
    'mmpretrain': ('mmpretrain', 'get_model'),
}


class Peer(BaseModel):
    """Adapter of a classifier of another library to the calls of OpenMMLab that a comparison makes.

    Args:
        network: module from images ``(N, 3, H, W)`` to logits ``(N, classes)``.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, inputs: Tensor, data_samples: list | None = None, mode: str = 'tensor') -> Tensor | dict:
        """Return logits for ``mode='tensor'``, or a dict with the cross-entropy loss for ``'loss'``."""
        logits = self.network(inputs)
        if mode == 'tensor':
            return logits
        labels = torch.cat([sample.gt_label for sample in data_samples])  # without synchronising a GPU
        return dict(loss=cross_entropy(logits, labels))


def build_peer(source: str, **options) -> Peer:
    """Build another library's model.

    Raises:
        UserError: the library is not installed, or does not have the model.
    """
    library, name = source.split(':', 1)
    module, function = LIBRARIES[library]
    try:
        return Peer(getattr(import_module(module), function)(name, **options))
    except (ImportError, ValueError, RuntimeError) as error:
        raise UserError(f'{source}: {error}') from error
