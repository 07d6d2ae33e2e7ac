"""Models of a benchmark: those of configs, and classifiers of other libraries, called peers."""

import inspect
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import torch
from mmengine.config import Config
from mmengine.model import BaseModel
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from vt.engine.config_files import read_config
from vt.engine.launch import build_model
from vt.engine.speed_settings import to_channels_last
from vt.errors import UserError
from vt.models.token_side import prepare_for_onednn
from vt.registry import MODELS

from .measurement import Setting

# Libraries of classifiers: module, function that builds a model by name, and install command.
LIBRARIES = {
    'torchvision': ('torchvision.models', 'get_model', 'pip install torchvision'),
    'timm': ('timm', 'create_model', "pip install 'timm>=1,<2'"),
    'mmpretrain': ('mmpretrain', 'get_model', 'pip install onedl-mmpretrain'),
}


def set_num_classes(cfg: Config, num_classes: int) -> None:
    """Set the number of classes of the head of a classifier or segmentor."""
    cfg.model['decode_head' if 'decode_head' in cfg.model else 'head'].num_classes = num_classes


@dataclass(frozen=True)
class Subject:
    """A model to measure: ``source`` is the path of a config or the name of a peer, ``library:model``.

    ``num_classes`` and ``tokens`` replace the numbers of classes and visual tokens; None keeps those of the model.
    """

    source: str
    num_classes: int | None = None
    tokens: int | None = None

    @property
    def is_peer(self) -> bool:
        """Whether it is a model of another library."""
        return ':' in self.source and self.source.split(':')[0] in LIBRARIES

    @property
    def name(self) -> str:
        """Name of the config or of the peer."""
        return self.source if self.is_peer else Path(self.source).stem

    def build(self, setting: Setting) -> nn.Module:
        """Build the model with arbitrary weights, on the device and in the memory format of the setting.

        Raises:
            UserError: the library of a peer is not installed, or does not have the model.
        """
        if self.is_peer:
            model = _build_peer(self.source, self.num_classes)
        else:
            cfg = read_config(self.source)
            if self.num_classes:
                set_num_classes(cfg, self.num_classes)
            if self.tokens:
                _set_num_tokens(cfg, self.tokens)
            model = build_model(cfg)
        model.to(setting.device)
        if setting.memory_format == 'channels_last':
            to_channels_last(model)
        if setting.token_products == 'onednn' and not self.is_peer:
            prepare_for_onednn(model)
        return model

    def with_tokens(self, counts: list[int]) -> list['Subject']:
        """Return this model with each number of tokens; only itself if it has no tokens or ``counts`` is empty."""
        if not counts or self.is_peer or not _set_num_tokens(read_config(self.source), counts[0]):
            return [self]
        return [Subject(self.source, self.num_classes, count) for count in counts]


def _set_num_tokens(cfg: Config, num_tokens: int) -> bool:
    """Set the number of tokens of the VT parts of a model; return whether there are such parts."""
    parts = [part for name in ('backbone', 'neck') if (part := cfg.model.get(name)) and part.type.startswith('vt.')]
    parts = [part for part in parts if 'num_tokens' in inspect.signature(MODELS.get(part.type)).parameters]
    for part in parts:
        part.num_tokens = num_tokens
    return bool(parts)


class Peer(BaseModel):
    """Adapter of a classifier of another library to the calls of OpenMMLab that a benchmark makes.

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


def _build_peer(name: str, num_classes: int | None) -> Peer:
    library, model = name.split(':', 1)
    options: dict = {} if num_classes is None else dict(num_classes=num_classes)
    if options and library == 'mmpretrain':
        options = dict(head=options)
    module, function, command = LIBRARIES[library]
    try:
        return Peer(getattr(import_module(module), function)(model, **options))
    except ImportError as error:
        raise UserError(f'{name} needs {library}: {command}') from error
    except (ValueError, RuntimeError) as error:
        raise UserError(f'{name}: {error}') from error
