"""Tables of what the tools measured and wrote: exported models, attention, kernels."""

from vt.checkpoints.files import read_json

from .markdown import BENCHMARKS, ROOT, cells, table

EXPORTS = {
    'model': '{config}',
    'size': '{shape}',
    'format': '{format}',
    'largest difference': '{difference:.1e}',
    'score': '{scored}',
    'model itself': '{own_score}',
    'ms': '{cpu_seconds:m.1f}',
    'model itself (ms)': '{eager_cpu:m.1f}',
    'faster': '{faster:.2f}x',
    'than ONNX': '{than_onnx:.2f}x',
}
# Of each tokenizer, what every seed's model measured; without a list, what is the same in all.
TOKENIZERS = {
    'tokenizer': '{name}',
    'map': '{map}',
    'uniform entropy (nats)': '{uniform_entropy:.3f}',
    'entropy': ['{entropy:.3f}'],
    'times smaller': ['{times_smaller:.2f}'],
    'more on foreground (%)': ['{foreground_gain:p+.1f}'],
    'A to A (diagonals)': ['{spread:.2f}'],
    'uniform': '{uniform_spread:.2f}',
    'centre of A to of Â': ['{shift:.3f}'],
}


def show_exports() -> str:
    """The table of exported models, of what ``tools/export.py --out`` wrote."""
    rows, origins = [], set()
    for path in sorted((BENCHMARKS / 'export').glob('*.json')):
        record = read_json(path, 'measure it: tools/export.py --benchmark --out', keys=['results', 'config', 'size'])
        shape = f'{record["size"].partition(" x ")[2]}, {"open" if record["open_size"] else "fixed"}'
        (onnx,) = (row['cpu_seconds'] for row in record['results'] if row['format'] == 'onnx')
        for row in record['results']:
            scores = dict(scored='', own_score='')
            if 'score' in row:
                metric = row['metric'].replace('accuracy/top1', 'top-1')
                scores = dict(scored=f'{metric} {row["score"]:.2f}', own_score=f'{row["model_score"]:.2f}')
            ratios = dict(faster=row['eager_cpu'] / row['cpu_seconds'], than_onnx=onnx / row['cpu_seconds'])
            rows.append(record | row | scores | ratios | dict(shape=shape))
        origins.add(f'{record["device"]}, torch {record["versions"]["torch"]}')
    return f'{table(rows, EXPORTS)}\n\n{"; ".join(sorted(origins))}; the machine did other work beside it.'


def show_attention(model: str) -> str:
    """A row for each tokenizer, with what ``tools/analysis/attention.py --out`` measured of a model's seeds."""
    forms = {title: form[0] if isinstance(form, list) else form for title, form in TOKENIZERS.items()}
    told = []
    for path in sorted((ROOT / 'docs/attention').glob(f'{model}_seed-*.json')):
        seed = read_json(path, 'measure it')['tokenizers']
        told.append(cells([dict(name=name) | found for name, found in seed.items()], forms))
    rows = [
        {
            title: ', '.join(row[title] for row in seeds) if isinstance(form, list) else seeds[0][title]
            for title, form in TOKENIZERS.items()
        }
        for seeds in zip(*told)
    ]
    return table(rows)


def show_kernels() -> str:
    """The table of kernels, of what ``tools/benchmark/kernels.py --out`` wrote.

    For each architecture it has registers, spilled bytes and kB of shared memory.
    """
    rows: dict[tuple, dict[str, str]] = {}
    for result in read_json(BENCHMARKS / 'kernels.json', 'measure it')['results']:
        what = {name: str(result[name]) for name in ('kernel', 'C', 'L', 'block')}
        taken = f'{result["registers"]} / {result["spilled_bytes"]} / {result["shared_bytes"] / 1024:.0f}'
        rows.setdefault(tuple(what.values()), what)[f'sm_{result["sm"]}'] = taken
    return table([*rows.values()])


PLACES = {'exported models': show_exports, 'attention': show_attention, 'kernels': show_kernels}
