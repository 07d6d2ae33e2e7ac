"""What every report shares: cells, tables and templates of Markdown, and the marks of a page that take them."""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from string import Formatter
from typing import Any

import pandas as pd
from jinja2 import Environment, StrictUndefined

from vt.apis import find_config
from vt.errors import UserError

ROOT = Path(__file__).parents[2]
RECORDS, BENCHMARKS = ROOT / 'docs/records', ROOT / 'docs/benchmarks'
Rows = list[dict[str, str]]
SCALES = dict(G=1e-9, M=1e-6, m=1e3, p=100)
ONE = re.compile(r'\b1 (thread|core|epoch|worker|row)s\b')


class CellFormatter(Formatter):
    """``str.format`` with a factor before a format, ``{flops:G.2f}``, ``{share:p.0f} %``, or ``{seconds:ms}``.

    A list is joined by its format, by default a comma; a truth value is ``yes`` or ``no``.
    """

    def format_field(self, value: Any, spec: str) -> str:
        if value is None or value != value:
            raise KeyError('no value')
        if isinstance(value, bool):
            return 'yes' if value else 'no'
        if isinstance(value, (list, tuple)):
            return (spec or ', ').join(map(str, value))
        if spec == 'ms':
            return milliseconds(value)
        return f'{value * SCALES[spec[0]]:{spec[1:]}}' if spec[:1] in SCALES else format(value, spec)


def cells(rows: pd.DataFrame | list[dict], forms: dict[str, str], missing: str = '') -> Rows:
    """Rows of text: by the title of each column a format of a row's values, ``missing`` where a row lacks one.

    Columns that every row lacks are left out.
    """
    rows = rows.to_dict('records') if isinstance(rows, pd.DataFrame) else rows
    columns = {title: [_cell(form, row) for row in rows] for title, form in forms.items()}
    columns = {title: column for title, column in columns.items() if any(cell is not None for cell in column)}
    return pd.DataFrame(columns).fillna(missing).to_dict('records')


def _cell(form: str, row: dict) -> str | None:
    try:
        return CellFormatter().format(form, **row)
    except KeyError:
        return None


def table(
    rows: pd.DataFrame | list[dict],
    forms: dict[str, str] | None = None,
    dense: bool = False,
    right: Sequence[str] | None = None,
) -> str:
    """Rows of text as a table of Markdown, others as :func:`cells` formats them; empty where a row lacks a column.

    Columns ``right`` are aligned to that side, by default all but the first; ``dense`` tables are without padding, for
    long cells.
    """
    frame = pd.DataFrame(cells(rows, forms) if forms else rows).fillna('').map(count_one)
    if dense:
        lines = [[*frame], [':---'] * frame.shape[1], *frame.to_numpy().tolist()]
        return '\n'.join(f'| {" | ".join(line)} |' for line in lines)
    align = ['right' if name in (frame.columns[1:] if right is None else right) else 'left' for name in frame]
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
    return f'{head}{begin}{count_one(text.rstrip())}\n{end}{tail}'


def fill(template: Path, **values: Any) -> str:
    """A template of Jinja with these values; ``cell`` is its filter of formats, ``table`` that of rows."""
    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.filters |= dict(table=table, cell=lambda value, spec: CellFormatter().format_field(value, spec))
    return count_one(environment.from_string(template.read_text()).render(**values))


def count_one(text: str) -> str:
    """A text with ``1 thread`` for ``1 threads``, as counted nouns stand in records."""
    return ONE.sub(r'1 \1', text)


def config_path(name: str) -> str:
    """The path of a model's config in the repository."""
    return find_config(name).relative_to(ROOT).as_posix()


def short_name(model: str) -> str:
    """A config's name up to its recipe, such as ``vt-fpn_r50``; a peer's whole name."""
    parts = model.split('_')
    recipe = next((index for index, part in enumerate(parts) if part[0].isdigit()), len(parts))
    return '_'.join(parts[:recipe])


def milliseconds(seconds: float) -> str:
    """Seconds as milliseconds of at least three digits."""
    value = 1e3 * seconds
    return f'{value:,.{max(0, 2 - math.floor(math.log10(value)))}f}'


def plus_minus(margin: float) -> str:
    """A margin behind a mean; nothing where there is none, as of one seed."""
    return '' if math.isnan(margin) else f' ± {margin:.2f}'
