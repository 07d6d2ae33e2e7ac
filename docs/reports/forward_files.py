"""The files that the forward pass of a model goes through, in order, for the pages of the configs."""

import inspect
import json
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from rich.progress import track
from torch import nn

from vt.files import ROOT

from .metafiles import model_on_meta
from .records import lay_out

RECORD = Path(__file__).with_name('forward_files.json')
PACKAGES = ('vt/models/', 'mmpretrain/models/', 'mmseg/models/')


@cache
def read_files() -> dict[str, list[str]]:
    """The recorded files of models, by the names of their base configs."""
    return json.loads(RECORD.read_text())


def record_files(configs: dict[str, str]) -> str:
    """Trace the model of a config for each base config, and return the text of the record."""
    named = track(sorted(configs.items()), 'files', transient=True)
    return lay_out({name: trace_files(ROOT / config) for name, config in named})


def trace_files(path: Path) -> list[str]:
    """Run a model and return the files of its parts in the order in which the forward pass reaches them.

    They are the files of the classes of its modules, and those of ``vt`` whose code the modules run. Nothing is
    computed for it. Paths begin with the name of a package; operations (``vt/ops``) are left out.
    """
    files: dict[str, None] = {}

    def note(frame: FrameType, event: str, argument: Any) -> None:
        part = frame.f_locals.get('self')
        if event == 'call' and isinstance(part, nn.Module):
            files.setdefault(_in_package(inspect.getfile(type(part)), PACKAGES))
            files.setdefault(_in_package(frame.f_code.co_filename, PACKAGES[:1]))

    model, x = model_on_meta(path)
    model.eval()
    sys.setprofile(note)
    try:
        with torch.no_grad():
            model(x, mode='tensor')
    finally:
        sys.setprofile(None)
    return [*filter(None, files)]


def _in_package(file: str, packages: Sequence[str]) -> str:
    """Return the path of a file of the packages from its package on; ``''`` for other files."""
    start = max(file.rfind(f'/{package}') for package in packages)
    return file[start + 1 :] if start >= 0 else ''
