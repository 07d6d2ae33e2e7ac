"""Tables: printed, as Markdown and as comma-separated values (CSV)."""

import csv
import io
from collections.abc import Sequence
from typing import Any

from prettytable import PrettyTable, TableStyle
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from vt.untrusted_text import printable

WIDTH = 180  # wide enough for every table, also if the output is not a terminal


def print_table(rows: list[dict[str, str]], title: str, notes: Sequence[str] = ()) -> None:
    """Print a table of rows with the same columns, and notes below it."""
    rows = [printable_cells(row) for row in rows]
    table = Table(title=Text(printable(title)), box=box.SIMPLE_HEAVY, title_justify='left')
    for index, column in enumerate(rows[0]):
        width = max(len(row[column]) for row in rows)  # only headings wrap
        table.add_column(column, justify='right' if index else 'left', min_width=width)
    for row in rows:
        table.add_row(*map(Text, row.values()))  # Text, so that brackets in names are not parsed as markup
    console = Console(width=WIDTH, highlight=False)
    console.print(table)
    for note in notes:
        console.print(f'  {printable(note)}', markup=False)
    if notes:
        console.print()


def to_markdown(rows: list[dict[str, str]]) -> str:
    """Format rows as a Markdown table."""
    table = PrettyTable(list(rows[0]), align='r')
    table.align[next(iter(rows[0]))] = 'l'
    table.add_rows([[*map(printable, row.values())] for row in rows])
    table.set_style(TableStyle.MARKDOWN)
    return table.get_string()


def to_csv(rows: list[dict[str, str]]) -> str:
    """Format rows as comma-separated values, with a header."""
    text = io.StringIO(newline='')
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(map(printable_cells, rows))
    return text.getvalue()


def printable_cells(row: dict[str, Any]) -> dict[str, Any]:
    """Escape the control characters in the text cells of a row."""
    return {column: printable(cell) if isinstance(cell, str) else cell for column, cell in row.items()}
