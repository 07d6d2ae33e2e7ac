"""Embedded data sets: real data at hand with nothing downloaded."""

from vt._libraries import import_on_demand

__all__ = ['DigitScenes', 'Digits', 'MovingDigits', 'RelationalDigitScenes', 'TwinDigits']

__getattr__ = import_on_demand(
    __name__,
    Digits='vt.datasets.digits:Digits',
    MovingDigits='vt.datasets.moving_digits:MovingDigits',
    TwinDigits='vt.datasets.twin_digits:TwinDigits',
    DigitScenes='vt.datasets.digit_scenes:DigitScenes',
    RelationalDigitScenes='vt.datasets.digit_scenes:RelationalDigitScenes',
)
