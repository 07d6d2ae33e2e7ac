"""The table of exported models: formats, largest differences and speed, as ``tools/export.py --out`` measured them."""

from pathlib import Path

from vt.checkpoints.files import read_json

from .tables import insert, to_markdown


def describe(folder: Path) -> list[dict[str, str]]:
    """A row a model and format, of the records in a folder."""
    rows = []
    for path in sorted(folder.glob('*.json')):
        record = read_json(path, 'measure it: tools/export.py --benchmark --out', keys=['results', 'config', 'size'])
        for row in record['results']:
            rows.append(
                {
                    'model': record['config'],
                    'size': f'{record["size"].partition(" x ")[2]}, {"open" if record["open_size"] else "fixed"}',
                    'format': row['format'],
                    'largest difference': f'{row["difference"]:.1e}',
                    'ms': f'{1000 * row["seconds"]:.1f}',
                    'model itself (ms)': f'{1000 * row["eager"]:.1f}',
                    'faster': f'{row["eager"] / row["seconds"]:.2f}x',
                }
            )
    return rows


def write_page(page: Path, folder: Path) -> None:
    """Write the page's table."""
    insert(page, 'exported models', to_markdown(describe(folder)))
