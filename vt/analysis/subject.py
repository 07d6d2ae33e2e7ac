"""Models that a benchmark lays side by side."""

import inspect
from dataclasses import dataclass
from pathlib import Path

from mmengine.config import Config
from torch import nn

from vt.engine.config_files import read_config
from vt.engine.launch import build_model
from vt.engine.speed import to_channels_last
from vt.registry import MODELS

from .complexity_tables import set_num_classes
from .peers import build_peer, is_peer
from .setting import Setting


@dataclass(frozen=True)
class Subject:
    """A model to be measured.

    Attributes:
        source: path of a config, or a peer's name, ``library:model``.
        num_classes: of the head; the config's by default.
        tokens: L, visual tokens of a VT model; the config's by default.
    """

    source: str
    num_classes: int | None = None
    tokens: int | None = None

    @property
    def name(self) -> str:
        """The config's name, or the peer's."""
        return self.source if is_peer(self.source) else Path(self.source).stem

    def build(self, setting: Setting) -> nn.Module:
        """The model with arbitrary weights, on the setting's device and in its memory format."""
        if is_peer(self.source):
            model = build_peer(self.source, self.num_classes)
        else:
            cfg = read_config(self.source)
            if self.num_classes:
                set_num_classes(cfg, self.num_classes)
            if self.tokens:
                set_num_tokens(cfg, self.tokens)
            model = build_model(cfg)
        model.to(setting.device)
        if setting.memory_format == 'channels_last':
            to_channels_last(model)
        return model

    def with_tokens(self, counts: list[int]) -> list['Subject']:
        """This model with each number of tokens; itself where it has no tokens or ``counts`` is empty."""
        if not counts or is_peer(self.source) or not set_num_tokens(read_config(self.source), counts[0]):
            return [self]
        return [Subject(self.source, self.num_classes, count) for count in counts]


def set_num_tokens(cfg: Config, num_tokens: int) -> bool:
    """Give the VT parts of a model another number of tokens; tells whether there are any."""
    parts = [cfg.model.get(name) for name in ('backbone', 'neck')]
    parts = [part for part in parts if part and _takes_tokens(part.type)]
    for part in parts:
        part.num_tokens = num_tokens
    return bool(parts)


def _takes_tokens(name: str) -> bool:
    return name.startswith('vt.') and 'num_tokens' in inspect.signature(MODELS.get(name)).parameters
