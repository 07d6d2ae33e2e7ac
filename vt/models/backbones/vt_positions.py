"""Positions of VT modules in a ResNet: in place of a stage or after it."""

from collections.abc import Sequence

from torch import nn

from vt.errors import UserError

from .vt_stage import VTStage

# Number of modules that replace stage 5, by depth (paper, section 4.1).
NUM_MODULES = {18: 2, 34: 3, 50: 3, 101: 3}
LAYERS = ('layer1', 'layer2', 'layer3', 'layer4')  # ResNet's names for its stages 2 to 5
POSITIONS = (*LAYERS, *(f'after_{layer}' for layer in LAYERS))


def check_positions(name: str, positions: Sequence[str]) -> None:
    """Raise ``UserError`` unless positions are known and distinct."""
    unknown = [position for position in positions if position not in POSITIONS]
    if unknown or isinstance(positions, str) or len(set(positions)) < len(positions):
        known = ', '.join(POSITIONS)
        raise UserError(f'{name}: positions={positions!r} must be a list of distinct names from {known}')


def layers_of(name: str, stage: nn.Module) -> list[str]:
    """Names of a stage's blocks and modules, in order."""
    names = []
    for index, part in enumerate(stage):
        if isinstance(part, VTStage):
            names += layers_of(f'{name}.{index}', part)
        elif any(part.children()):  # skips the convolution and normalisation before modules
            names.append(f'{name}.{index}')
    return names
