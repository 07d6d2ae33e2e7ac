"""Find the grid of the positions in a file: given by the user, from the config in the file, or inferred if square."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from vt.errors import UserError

Size = tuple[int, ...]
# ``image_size`` in the text of a config; numbers of at most five digits.
IMAGE_SIZE = re.compile(r'\bimage_size=\s*(\d{1,5}\b|[\[(][\d\s,]{1,200}[\])])')


def read_image_size(text: str) -> Size | None:
    """Return (height, width) or (frames, height, width) from the text of a config, without running it.

    None if the text has no image size, or several.
    """
    found = {tuple(int(side[:5]) for side in re.findall(r'\d+', size)) for size in IMAGE_SIZE.findall(text)}
    size = found.pop() if len(found) == 1 else ()
    return size * 2 if len(size) == 1 else size or None


@dataclass
class FileGrids:
    """Grids of the positions in a file, and how to find them.

    Args:
        given: grid of the first positions of the model as given by the user, (height, width) or (frames, height,
            width); the grids of later, coarser stages are scaled in proportion.
        image_size: size of the images that the file was trained with, from its config.
        own_image_size: size of the images of the model.
        is_same_model: the file is of the same model: equal numbers of positions are on equal grids.
    """

    given: Size | None = None
    image_size: Size | None = None
    own_image_size: Size | None = None
    is_same_model: bool = False
    _first: Size | None = field(default=None, init=False)  # grid of the first positions of the model

    def find(self, own: Size, number: int, count: Callable[[Size], int] = math.prod) -> Size:
        """Return the grid of ``number`` positions in a file, for a model with the grid ``own``.

        ``count`` gives the number of positions of a grid; for tables of offsets, the number of offsets of a window. A
        UserError says that the grid is not known, or that the given one has another number of positions.
        """
        self._first = self._first or own
        side = next((side for side in range(1, 1 + math.isqrt(max(0, number))) if count((side, side)) == number), 0)
        known = [
            _scale(own, self.given, self._first),
            _scale(own, self.image_size, self.own_image_size),
            own if self.is_same_model else (),
            (side, side) if len({*own}) == 1 and len(own) == 2 else (),
        ]
        for size in known[:1] if self.given and count is math.prod else known:
            if size and count(size) == number:
                return size
        reason = f'is not {self.given}, as set by grid' if self.given else 'is unknown'
        axes = ', '.join(['frames', 'height', 'width'][-len(own) :])
        raise UserError(
            f'the grid of its {number} positions {reason}, and the model has {size_text(own)}: set grid=({axes}), next '
            'to checkpoint in init_cfg, or for load_from in default_hooks.weights_match of the config'
        )


def _scale(own: Size, theirs: Size | None, ours: Size | None) -> Size:
    """Scale the model's grid by the ratio of two sizes; return an empty grid if a size is missing."""
    if not theirs or not ours or min(len(theirs), len(ours)) < len(own):
        return ()
    sides = zip(own, theirs[-len(own) :], ours[-len(own) :])
    return tuple(max(1, round(side * their / our)) for side, their, our in sides)


def size_text(size: Size) -> str:
    """Return a grid as text such as ``14x7``."""
    return 'x'.join(map(str, size))
