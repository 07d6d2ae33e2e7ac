"""Embedded data sets: real data at hand with nothing downloaded."""

from .digit_scenes import DigitScenes, RelationalDigitScenes
from .digits import Digits

__all__ = ['DigitScenes', 'Digits', 'RelationalDigitScenes']
