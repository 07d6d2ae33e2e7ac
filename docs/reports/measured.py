"""Tables of what the tools measured and wrote: exported models, attention, kernels."""

import re
from pathlib import Path

from vt.checkpoints.files import read_json

from .markdown import BENCHMARKS, ROOT, Rows, insert, table

ATTENTION = re.compile(r'<!-- (attention ([\w-]+)) -->')  # the seeds' files are docs/attention/MODEL_seed-SEED.json


def render_exports(page: str) -> str:
    """The page of exported models with its table, of what ``tools/export.py --out`` wrote."""
    return insert(page, 'exported models', table(describe_exports(BENCHMARKS / 'export')))


def describe_exports(folder: Path) -> Rows:
    """A row a model and format, of the records in a folder."""
    records = [
        read_json(path, 'measure it: tools/export.py --benchmark --out', keys=['results', 'config', 'size'])
        for path in sorted(folder.glob('*.json'))
    ]
    return [
        {
            'model': record['config'],
            'size': f'{record["size"].partition(" x ")[2]}, {"open" if record["open_size"] else "fixed"}',
            'format': row['format'],
            'largest difference': f'{row["difference"]:.1e}',
            'ms': f'{1000 * row["seconds"]:.1f}',
            'model itself (ms)': f'{1000 * row["eager"]:.1f}',
            'faster': f'{row["eager"] / row["seconds"]:.2f}x',
        }
        for record in records
        for row in record['results']
    ]


def render_attention(page: str) -> str:
    """A page with its tables of what ``tools/analysis/attention.py tokens --out`` measured of a model's seeds."""
    for mark, model in ATTENTION.findall(page):
        paths = sorted((ROOT / 'docs/attention').glob(f'{model}_seed-*.json'))
        page = insert(
            page, mark, table(describe_attention([read_json(path, 'measure it')['tokenizers'] for path in paths]))
        )
    return page


def describe_attention(seeds: list[dict]) -> Rows:
    """A row for each tokenizer, with what every seed's model measured."""

    def each(name: str, key: str, form: str, factor: float = 1) -> str:
        return ', '.join(form.format(factor * seed[name][key]) for seed in seeds)

    return [
        {
            'tokenizer': name,
            'map': first['map'],
            'uniform entropy (nats)': f'{first["uniform_entropy"]:.3f}',
            'entropy': each(name, 'entropy', '{:.3f}'),
            'times smaller': each(name, 'times_smaller', '{:.2f}'),
            'more on foreground (%)': each(name, 'foreground_gain', '{:+.1f}', 100),
            'A to A (diagonals)': each(name, 'spread', '{:.2f}'),
            'uniform': f'{first["uniform_spread"]:.2f}',
            'centre of A to of Â': each(name, 'shift', '{:.3f}'),
        }
        for name, first in seeds[0].items()
    ]


def render_kernels(page: str) -> str:
    """The page of kernels with its table, of what ``tools/benchmark/kernels.py --out`` wrote."""
    return insert(
        page, 'kernels', table(describe_kernels(read_json(BENCHMARKS / 'kernels.json', 'measure it')['results']))
    )


def describe_kernels(results: list[dict]) -> Rows:
    """A row for each kernel and map; for each architecture registers, spilled bytes and kB of shared memory."""
    rows: dict[tuple, dict[str, str]] = {}
    for result in results:
        what = {name: str(result[name]) for name in ('kernel', 'C', 'L', 'block')}
        taken = f'{result["registers"]} / {result["spilled_bytes"]} / {result["shared_bytes"] / 1024:.0f}'
        rows.setdefault(tuple(what.values()), what)[f'sm_{result["sm"]}'] = taken
    return [*rows.values()]
