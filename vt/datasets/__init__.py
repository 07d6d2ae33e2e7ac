"""Embedded data sets: real data at hand with nothing downloaded."""

from .digits import Digits

__all__ = ['Digits']
