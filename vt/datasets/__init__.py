"""Embedded data sets: real digits, and tasks of relations drawn by their published procedures; nothing to download."""

from vt._libraries import import_on_demand

__all__ = [
    'PSVRT',
    'SVRT',
    'DigitScenes',
    'Digits',
    'MovingDigits',
    'Pathfinder',
    'RelationalDigitScenes',
    'SortOfCLEVR',
    'TwinDigits',
]

__getattr__ = import_on_demand(
    __name__,
    PSVRT='vt.datasets.same_different:PSVRT',
    SVRT='vt.datasets.same_different:SVRT',
    Digits='vt.datasets.digits:Digits',
    MovingDigits='vt.datasets.moving_digits:MovingDigits',
    Pathfinder='vt.datasets.pathfinder:Pathfinder',
    SortOfCLEVR='vt.datasets.sort_of_clevr:SortOfCLEVR',
    TwinDigits='vt.datasets.twin_digits:TwinDigits',
    DigitScenes='vt.datasets.digit_scenes:DigitScenes',
    RelationalDigitScenes='vt.datasets.digit_scenes:RelationalDigitScenes',
)
