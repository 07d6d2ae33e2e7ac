"""Compare models side by side: time, FLOPs and parameters."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path

import numpy as np
import torch
from mmengine.model import BaseModel
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from vt.engine.launch import build_model
from vt.engine.prepare import read_config
from vt.errors import UserError
from vt.models.token_side import prepare_for_onednn
from vt.ops.token_products import token_library

from .timing import time_interleaved
from .workload import Setting, Workload

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


def name_model(source: str) -> str:
    """Return the name of a config, or that of another library's model as it is."""
    return Path(source).name.removesuffix('.py')


def build_source(source: str) -> nn.Module:
    """Build the model of a config, or of another library by the name ``library:model``, with arbitrary weights."""
    if source.partition(':')[0] in LIBRARIES:
        return build_peer(source)
    model = build_model(read_config(source))
    if token_library() == 'onednn':
        prepare_for_onednn(model)
    return model


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


@dataclass(frozen=True)
class Measurement:
    """Cost of a model in ``'inference'`` or ``'training'``: seconds of each step, multiply-adds of one image."""

    model: str
    kind: str
    seconds: list[float]
    flops: int
    parameters: int


def compare(
    models: dict[str, nn.Module], setting: Setting, kind: str, rounds: int, seconds: float
) -> list[Measurement]:
    """Measure models in one setting; in every round each takes a step.

    Args:
        models: the models by name; the first is the reference.
        setting: how they run; they are moved to its device.
        kind: ``'inference'`` or ``'training'``.
        rounds: number of steps of each model.
        seconds: approximate time limit.
    """
    setting.choose_products()
    device = torch.device(setting.device)
    warmup = 5 if device.type == 'cuda' else 2  # the first steps on a GPU select kernels
    workloads = {name: Workload(setting.place(model), setting) for name, model in models.items()}
    steps = {name: workload.step(kind) for name, workload in workloads.items()}
    times = time_interleaved(steps, device, f'{kind.capitalize()}, {setting.describe()}', rounds, warmup, seconds)
    return [
        Measurement(name, kind, times[name].tolist(), **asdict(workload.count()))
        for name, workload in workloads.items()
    ]


def tabulate(measurements: Sequence[Measurement], setting: Setting) -> list[dict[str, str]]:
    """Return a row per model, compared with the first."""
    medians = [float(np.median(each.seconds)) for each in measurements]
    spreads = [float(np.subtract(*np.percentile(each.seconds, (75, 25)))) for each in measurements]  # interquartile
    return [
        {
            'model': each.model,
            'FLOPs (G)': f'{each.flops / 1e9:.3f}',
            'fewer': f'{measurements[0].flops / each.flops:.3f}x',
            'parameters (M)': f'{each.parameters / 1e6:.2f}',
            'median (ms)': f'{1e3 * median:.4g}',
            'spread (%)': f'{100 * spread / median:.1f}',
            'faster': f'{medians[0] / median:.3f}x',
            f'{"images" if len(setting.size) == 2 else "clips"}/s': f'{setting.batch_size / median:.4g}',
        }
        for each, median, spread in zip(measurements, medians, spreads)
    ]
