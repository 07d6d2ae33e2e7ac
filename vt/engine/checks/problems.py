"""What a check of data finds."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """Something wrong with a file.

    Attributes:
        kind: ``'missing'``, ``'unreadable'``, ``'mode'``, ``'size'``, ``'label'``, ``'annotation'``, ``'empty'``,
            ``'duplicate'`` or ``'not read'``.
        file: its path.
        message: what is wrong; a predicate of the file.
        line: of a text file.
    """

    kind: str
    file: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        where = self.file if self.line is None else f'{self.file}, line {self.line}'
        return f'{where} {self.message}'


def summarise(problems: list[Problem], total: int, unit: str = 'files') -> str:
    """The first problem, and how many more there are."""
    others = f' (and {len(problems) - 1} more of {total} {unit})' if len(problems) > 1 else ''
    return f'{problems[0]}{others}'
