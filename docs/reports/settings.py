"""The table of all settings: what each short name sets, its key, and its names in other frameworks."""

from vt.engine.config.short_names import SHORT_NAMES

from .markdown import Rows, table


def describe_settings() -> Rows:
    """Return a row for each short name."""
    return [
        {
            'name': f'`{short.name}`',
            'sets': short.text,
            'value': ' or '.join(kind.__name__ for kind in short.kinds),
            'key of the config': ', '.join(f'`{key}`' for key in short.keys),
            'names elsewhere': ', '.join(f'`{name}`' for name in short.others.split()),
        }
        for short in SHORT_NAMES.values()
    ]


PLACES = {'settings': lambda: table(describe_settings(), dense=True)}
