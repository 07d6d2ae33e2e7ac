"""Models of a measurement: those of configs, and classifiers of other libraries, called peers."""

from dataclasses import dataclass
from pathlib import Path

from mmengine.config import Config
from torch import nn

from docs.reports.complexity import set_num_classes
from vt.engine.config.check_settings import accepted_arguments
from vt.engine.config.steps import read_config
from vt.engine.run.launch import build_model
from vt.registry import MODELS

from .peers import LIBRARIES, build_peer
from .settings import Setting


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
        return Path(self.source).name.removesuffix('.py')

    def build(self, setting: Setting) -> nn.Module:
        """Build the model with arbitrary weights, on the device and in the memory format of the setting.

        Raises:
            UserError: the library of a peer is not installed, or does not have the model.
        """
        if self.is_peer:
            options = {} if self.num_classes is None else dict(num_classes=self.num_classes)
            is_nested = options and self.source.startswith('mmpretrain:')
            return setting.place(build_peer(self.source, **dict(head=options) if is_nested else options))
        cfg = read_config(self.source)
        if self.num_classes:
            set_num_classes(cfg, self.num_classes)
        if self.tokens:
            _set_num_tokens(cfg, self.tokens)
        return setting.place(build_model(cfg))

    def with_tokens(self, counts: list[int]) -> list['Subject']:
        """Return this model with each number of tokens; only itself if it has no tokens or ``counts`` is empty."""
        if not counts or self.is_peer or not _set_num_tokens(read_config(self.source), counts[0]):
            return [self]
        return [Subject(self.source, self.num_classes, count) for count in counts]


def _set_num_tokens(cfg: Config, num_tokens: int) -> bool:
    """Set the number of tokens of the VT parts of a model; return whether there are such parts."""
    parts = [part for name in ('backbone', 'neck') if (part := cfg.model.get(name)) and part.type.startswith('vt.')]
    parts = [part for part in parts if 'num_tokens' in accepted_arguments(MODELS.get(part.type))[0]]
    for part in parts:
        part.num_tokens = num_tokens
    return bool(parts)
