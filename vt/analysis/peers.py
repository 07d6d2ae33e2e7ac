"""Classifiers of other libraries, called as OpenMMLab's are."""

from collections.abc import Callable
from importlib import import_module

from mmengine.model import BaseModel
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

# How to install each library of models.
LIBRARIES = {'torchvision': 'pip install torchvision', 'timm': "pip install 'timm>=1,<2'"}


class Peer(BaseModel):
    """A classifier that knows nothing of OpenMMLab, with the calls that a benchmark makes.

    Args:
        network: images ``(N, 3, H, W)`` to logits ``(N, classes)``.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, inputs: Tensor, data_samples: list | None = None, mode: str = 'tensor') -> Tensor | dict:
        """Logits for ``mode='tensor'``; for ``'loss'`` the cross-entropy to the samples' labels."""
        logits = self.network(inputs)
        if mode == 'tensor':
            return logits
        labels = [sample.gt_label for sample in data_samples]
        return dict(loss=cross_entropy(logits, labels[0].new_tensor(labels)))


def is_peer(name: str) -> bool:
    """Whether a name is ``library:model`` and not a config's path."""
    return name.split(':')[0] in LIBRARIES and ':' in name


def build_peer(name: str, num_classes: int | None = None) -> Peer:
    """A classifier with arbitrary weights.

    Args:
        name: such as ``'torchvision:resnet18'`` or ``'timm:resnet50'``.
        num_classes: the library's default where it is None.

    Raises:
        ValueError: the library is not installed, or has no such model.
    """
    library, model = name.split(':', 1)
    options = {} if num_classes is None else dict(num_classes=num_classes)
    try:
        return Peer(_maker(library)(model, **options))
    except ImportError as error:
        raise ValueError(f'{name} needs {library}: {LIBRARIES[library]}') from error
    except (ValueError, RuntimeError) as error:
        raise ValueError(f'{name}: {error}') from error


def _maker(library: str) -> Callable[..., nn.Module]:
    if library == 'timm':
        return import_module('timm').create_model
    return import_module('torchvision.models').get_model
