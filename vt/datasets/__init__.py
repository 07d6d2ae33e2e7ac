"""Embedded data sets: real data at hand with nothing downloaded."""

from .digit_scenes import DigitScenes, RelationalDigitScenes
from .digits import Digits
from .twin_digits import TwinDigits

__all__ = ['DigitScenes', 'Digits', 'RelationalDigitScenes', 'TwinDigits']
