"""Models that a benchmark lays side by side: those of configs, and classifiers of other libraries, their peers."""

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
from vt.models.token_side import lay_out_for_onednn
from vt.registry import MODELS

from .measurement import Setting

# Libraries of classifiers: the module and its function that makes one by name, and how to install it.
LIBRARIES = {
    'torchvision': ('torchvision.models', 'get_model', 'pip install torchvision'),
    'timm': ('timm', 'create_model', "pip install 'timm>=1,<2'"),
    'mmpretrain': ('mmpretrain', 'get_model', 'pip install onedl-mmpretrain'),
}


def set_num_classes(cfg: Config, num_classes: int) -> None:
    """Give the head of a classifier or segmentor another number of classes."""
    cfg.model['decode_head' if 'decode_head' in cfg.model else 'head'].num_classes = num_classes


@dataclass(frozen=True)
class Subject:
    """A model to be measured: the path of a config, or a peer's name, ``library:model``.

    By default it has its own number of classes and, a VT model, of visual tokens.
    """

    source: str
    num_classes: int | None = None
    tokens: int | None = None

    @property
    def is_peer(self) -> bool:
        """Whether it is another library's."""
        return ':' in self.source and self.source.split(':')[0] in LIBRARIES

    @property
    def name(self) -> str:
        """The config's name, or the peer's."""
        return self.source if self.is_peer else Path(self.source).stem

    def build(self, setting: Setting) -> nn.Module:
        """The model with arbitrary weights, on the setting's device and in its memory format.

        Raises:
            UserError: a peer's library is not installed, or has no such model.
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
        if setting.token_products == 'onednn':
            lay_out_for_onednn(model)
        return model

    def with_tokens(self, counts: list[int]) -> list['Subject']:
        """This model with each number of tokens; itself where it has no tokens or ``counts`` is empty."""
        if not counts or self.is_peer or not _set_num_tokens(read_config(self.source), counts[0]):
            return [self]
        return [Subject(self.source, self.num_classes, count) for count in counts]


def _set_num_tokens(cfg: Config, num_tokens: int) -> bool:
    """Give the VT parts of a model another number of tokens; tells whether there are any."""
    parts = [part for name in ('backbone', 'neck') if (part := cfg.model.get(name)) and part.type.startswith('vt.')]
    parts = [part for part in parts if 'num_tokens' in inspect.signature(MODELS.get(part.type)).parameters]
    for part in parts:
        part.num_tokens = num_tokens
    return bool(parts)


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
        labels = torch.cat([sample.gt_label for sample in data_samples])  # no element is read on the host
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
