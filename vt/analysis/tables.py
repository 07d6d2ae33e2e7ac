"""Tables: printed, as Markdown and as comma-separated values (CSV)."""

from collections.abc import Sequence
from typing import Any

from prettytable import PrettyTable, TableStyle

from vt.untrusted_text import printable


def print_table(rows: list[dict[str, str]], title: str, notes: Sequence[str] = ()) -> None:
    """Print a table of rows with the same columns as Markdown, and notes below it."""
    print(f'\n{printable(title)}\n\n{to_markdown(rows)}\n')
    for note in notes:
        print(f'  {printable(note)}')


def to_markdown(rows: list[dict[str, str]]) -> str:
    """Format rows as a Markdown table."""
    table = _table(rows)
    table.set_style(TableStyle.MARKDOWN)
    return table.get_string()


def to_csv(rows: list[dict[str, str]]) -> str:
    """Format rows as comma-separated values, with a header."""
    return _table(rows).get_csv_string()


def _table(rows: list[dict[str, Any]]) -> PrettyTable:
    """A table with the first column on the left and the others on the right."""
    table = PrettyTable(list(rows[0]), align='r')
    table.align[next(iter(rows[0]))] = 'l'
    table.add_rows([[*printable_cells(row).values()] for row in rows])
    return table


def printable_cells(row: dict[str, Any]) -> dict[str, Any]:
    """Escape the control characters in the text cells of a row."""
    return {column: printable(cell) if isinstance(cell, str) else cell for column, cell in row.items()}
