"""Of which grid the positions in a file are: read, given, or refused; many counts fit several grids."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from vt.errors import UserError

Size = tuple[int, ...]
# ``image_size`` in the text of a config; a number of more digits is none.
IMAGE_SIZE = re.compile(r'\bimage_size=\s*(\d{1,5}\b|[\[(][\d\s,]{1,200}[\])])')


def read_image_size(text: str) -> Size | None:
    """Height and width, or frames, height and width, that a config's text gives; None where it gives none or several.

    Nothing of the text is run.
    """
    found = {tuple(int(side[:5]) for side in re.findall(r'\d+', size)) for size in IMAGE_SIZE.findall(text)}
    size = found.pop() if len(found) == 1 else ()
    return size * 2 if len(size) == 1 else size or None


@dataclass
class FileGrids:
    """What is known of the grids of a file's positions.

    Args:
        given: the grid, height and width or frames, height and width, as the caller gives it: of the first positions in
            the model; others, of coarser stages, are in proportion.
        image_size: of the images that the file was trained with, by its own config.
        own_image_size: of the model's.
        is_same_model: the file is said to be of this very model: as many positions as it has are on its grid.
    """

    given: Size | None = None
    image_size: Size | None = None
    own_image_size: Size | None = None
    is_same_model: bool = False
    _first: Size | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.given is not None:
            self.given = tuple(self.given) if isinstance(self.given, (list, tuple)) else ()
            if len(self.given) not in (2, 3) or not all(isinstance(side, int) and side > 0 for side in self.given):
                raise UserError('grid must be (height, width) or (frames, height, width), numbers of positions')

    def find(self, own: Size, number: int, count: Callable[[Size], int] = math.prod) -> Size:
        """The grid of ``number`` positions in a file.

        Args:
            own: the model's grid.
            number: how many the file has.
            count: how many positions a grid has; of a table of offsets how many offsets a window has.

        Raises:
            UserError: neither the caller nor the file's config says which grid it is, and it needn't be a square one;
                the one that the caller gives has another number.
        """
        self._first = self._first or own
        if self.given and self._fits(_scale(own, self.given, self._first), number, count):
            return _scale(own, self.given, self._first)
        if self.given and count is math.prod:
            raise UserError(f'grid={self.given} has no {number} positions, which the file has')
        if not self.given and self._fits(_scale(own, self.image_size, self.own_image_size), number, count):
            return _scale(own, self.image_size, self.own_image_size)
        if self.is_same_model and count(own) == number:
            return own
        side = next((side for side in range(1, 1 + math.isqrt(max(0, number))) if count((side, side)) == number), 0)
        if len(own) == 2 and own[0] == own[1] and side:
            return side, side
        grid = ', '.join(['frames', 'height', 'width'][-len(own) :])
        raise UserError(
            f'which grid its {number} positions are on is not known, and the model has {size_text(own)}: give it, '
            f'grid=({grid}), beside checkpoint in init_cfg or, for load_from, in default_hooks.weights_match'
        )

    @staticmethod
    def _fits(size: Size, number: int, count: Callable[[Size], int]) -> bool:
        return bool(size) and count(size) == number


def _scale(own: Size, theirs: Size | None, ours: Size | None) -> Size:
    """The model's grid in the proportion of two sizes; nothing where there is none."""
    if not theirs or not ours or min(len(theirs), len(ours)) < len(own):
        return ()
    sides = zip(own, theirs[-len(own) :], ours[-len(own) :])
    return tuple(max(1, round(side * their / our)) for side, their, our in sides)


def size_text(size: Size) -> str:
    """A grid as ``14x7``."""
    return 'x'.join(map(str, size))
