"""Tasks that are decided by relations, generated in memory; importing this module registers them in ``vt``."""

from .pathfinder import Pathfinder
from .relational_scenes import RelationalDigitScenes
from .same_different import PSVRT, SVRT
from .sort_of_clevr import SortOfCLEVR
from .twin_digits import TwinDigits

__all__ = ['PSVRT', 'SVRT', 'Pathfinder', 'RelationalDigitScenes', 'SortOfCLEVR', 'TwinDigits']
