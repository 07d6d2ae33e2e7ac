"""What every report shares: where the repository is, tables of Markdown, and the marks of a page that take them."""

import math
from pathlib import Path

import pandas as pd

from vt.apis import find_config
from vt.errors import UserError

ROOT = Path(__file__).parents[2]
RECORDS, BENCHMARKS = ROOT / 'docs/records', ROOT / 'docs/benchmarks'
Rows = list[dict[str, str]]


def config_path(name: str) -> str:
    """The path of a model's config in the repository."""
    return find_config(name).relative_to(ROOT).as_posix()


def table(rows: Rows, dense: bool = False) -> str:
    """Rows as a table of Markdown, empty where a row lacks a column; ``dense`` without padding, for long cells."""
    frame = pd.DataFrame(rows).fillna('')
    if dense:
        lines = [[*frame], [':---'] * frame.shape[1], *frame.to_numpy().tolist()]
        return '\n'.join(f'| {" | ".join(line)} |' for line in lines)
    align = ['left', *['right'] * (frame.shape[1] - 1)]
    return frame.to_markdown(index=False, disable_numparse=True, colalign=align)


def insert(page: str, name: str, text: str) -> str:
    """A page's text with generated text between its lines ``<!-- name -->`` and ``<!-- end of name -->``.

    Raises:
        UserError: the page lacks one of the two lines.
    """
    begin, end = f'<!-- {name} -->\n', f'<!-- end of {name} -->\n'
    head, found, rest = page.partition(begin)
    _, closed, tail = rest.partition(end)
    if not (found and closed):
        raise UserError(f'a page needs the lines {begin.strip()} and {end.strip()} around what is generated')
    return f'{head}{begin}{text.rstrip()}\n{end}{tail}'


def short_name(model: str) -> str:
    """A config's name up to its recipe, such as ``vt-fpn_r50``; a peer's whole name."""
    parts = model.split('_')
    recipe = next((index for index, part in enumerate(parts) if part[0].isdigit()), len(parts))
    return '_'.join(parts[:recipe])


def milliseconds(seconds: float) -> str:
    """Seconds as milliseconds of at least three digits."""
    value = 1e3 * seconds
    return f'{value:,.{max(0, 2 - math.floor(math.log10(value)))}f}'
