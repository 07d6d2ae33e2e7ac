"""The table of all settings with a short name."""

from vt.engine.config.short_names import SHORT_NAMES

from .markdown import Rows, table


def describe_settings() -> Rows:
    """A row a short name: what it sets, its key, and its names elsewhere."""
    return [
        {
            'name': f'`{short.name}`',
            'sets': short.text,
            'key of the config': ', '.join(f'`{key}`' for key in short.keys) or '-',
            'names elsewhere': ', '.join(f'`{name}`' for name in short.others.split()) or '-',
        }
        for short in SHORT_NAMES.values()
    ]


PLACES = {'settings': lambda: table(describe_settings())}
