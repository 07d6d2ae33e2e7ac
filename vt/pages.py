"""Pages in one file each, for reports, data and the explorer: one head and one style, dark and light."""

from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from vt.untrusted_text import printable

FOLDER = Path(__file__).parent
COLOURS, RULES = ((FOLDER / name).read_text('utf-8') for name in ('colours.css', 'page.css'))
MAX_NAME = 80


def shown(value: Any, width: int = MAX_NAME) -> str:
    """Return a value as text of a page: numbers, names, or a list of names."""
    if isinstance(value, (int, np.integer)):
        return f'{value:,}'
    if isinstance(value, (float, np.floating)):
        return f'{value:.2f}' if np.isfinite(value) else '-'
    return printable(', '.join(value) or 'nothing' if isinstance(value, list) else value, width)


TEMPLATES = Environment(loader=FileSystemLoader(FOLDER), autoescape=True, undefined=StrictUndefined, trim_blocks=True)
TEMPLATES.filters['shown'] = shown


def render(template: str, **context: Any) -> str:
    """Render a template of the package, such as ``explorer/views.html.j2``: values are text, never elements."""
    return TEMPLATES.get_template(template).render(context, style=COLOURS + RULES)
