"""The table of what ``python -m projects.relations.attention tokens`` measured and wrote."""

from vt.files import read_json

from .markdown import ROOT, cells, table

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


def show_attention(model: str) -> str:
    """A row for each tokenizer, with what ``projects.relations.attention tokens`` measured of a model's seeds."""
    forms = {title: form[0] if isinstance(form, list) else form for title, form in TOKENIZERS.items()}
    told = []
    for path in sorted((ROOT / 'projects/small_data/attention').glob(f'{model}_seed-*.json')):
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


PLACES = {'attention': show_attention}
