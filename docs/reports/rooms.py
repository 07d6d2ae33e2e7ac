"""The packages of ``vt`` and their imports as a figure, ``docs/figures/rooms.svg``.

A package stands one row above the highest one that it imports. An arrow is an import; those that follow from others are
left out. Packages that import each other in a circle are an error.
"""

import ast
import graphlib
from collections import defaultdict
from collections.abc import Iterator
from html import escape
from pathlib import Path

from .markdown import ROOT

PATH = 'docs/figures/rooms.svg'
BASE = 'vt/*.py'  # the modules beside the packages: errors, registry, limits of what is read
WHAT = {
    BASE: 'errors, registry, limits',
    'ops': 'the equations and their fast paths',
    'checkpoints': 'files, read without running code',
    'datasets': 'images in memory and in rows',
    'video': 'clips, decoders',
    'models': 'parts, backbones, necks, heads',
    'engine': 'runner, resume, processes, checks',
    'inference': 'images and videos for a model',
    'analysis': 'attention, cost, speed, tables',
    'apis': 'models by name, predictions, tokens',
    'explorer': 'page to look at tokens',
    'commands': 'what the command lines do',
    'tools/': 'the command lines',
}
WIDTH, HEIGHT = 236, 50  # of a box, in pixels
GAP, STEP = 22, 92  # between boxes of a row; from row to row


def imported_names(path: Path) -> Iterator[str]:
    """Full names of what a file of the repository imports."""
    package = path.relative_to(ROOT).parent.parts
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            yield from ('.'.join([*base, *filter(None, [node.module]), alias.name]) for alias in node.names)


def room_of(parts: tuple[str, ...]) -> str:
    """The room of a module of ``vt``, given as the parts of its name."""
    if parts[0] == 'tools':
        return 'tools/'
    return parts[1] if (ROOT / 'vt' / parts[1]).is_dir() else BASE


def read_rooms() -> dict[str, set[str]]:
    """Which rooms each room imports."""
    found = defaultdict(set)
    for path in sorted(path for folder in ('vt', 'tools') for path in (ROOT / folder).rglob('*.py')):
        parts = path.relative_to(ROOT).with_suffix('').parts
        if parts == ('vt', '__init__'):  # loads any room on demand
            continue
        room = room_of(parts)
        names = [tuple(name.split('.')) for name in imported_names(path) if name.startswith('vt.')]
        found[room] |= {room_of(name) for name in names} - {room}
    return dict(found)


def arrange(rooms: dict[str, set[str]]) -> list[list[str]]:
    """Rows of rooms, from the bottom up; raises graphlib.CycleError where rooms import each other in a circle."""
    level = {}
    for room in graphlib.TopologicalSorter(rooms).static_order():
        level[room] = 1 + max((level[other] for other in rooms[room]), default=-1)
    return [sorted(room for room in level if level[room] == row) for row in range(max(level.values()) + 1)]


def leave_out_implied(rooms: dict[str, set[str]]) -> set[tuple[str, str]]:
    """The imports that no chain of other imports implies."""

    def reach(room: str) -> set[str]:
        return set().union(*({other} | reach(other) for other in rooms[room]))

    return {(room, other) for room, others in rooms.items() for other in others - set().union(*map(reach, others))}


def draw(rooms: dict[str, set[str]]) -> str:
    """The figure as SVG."""
    rows = arrange(rooms)
    width = max(len(row) for row in rows) * (WIDTH + GAP) + GAP
    height = len(rows) * STEP
    places = {}
    for number, row in enumerate(rows):
        left = (width - len(row) * (WIDTH + GAP) + GAP) / 2
        for column, room in enumerate(row):
            places[room] = (left + column * (WIDTH + GAP), height - (number + 1) * STEP + (STEP - HEIGHT) / 2)
    arrows = [
        f'<line x1="{places[room][0] + WIDTH / 2:g}" y1="{places[room][1] + HEIGHT:g}" '
        f'x2="{places[other][0] + WIDTH / 2:g}" y2="{places[other][1] - 3:g}" stroke="#666" marker-end="url(#tip)"/>'
        for room, other in sorted(leave_out_implied(rooms))
    ]
    boxes = [
        f'<rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="6" fill="#e8eef7"/>'
        f'<text x="{x + WIDTH / 2:g}" y="{y + 20:g}" font-weight="bold">{escape(name(room))}</text>'
        f'<text x="{x + WIDTH / 2:g}" y="{y + 38:g}" font-size="12">{escape(WHAT[room])}</text>'
        for room, (x, y) in sorted(places.items())
    ]
    return '\n'.join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
            'font-family="sans-serif" font-size="15" text-anchor="middle">',
            '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
            '<path d="M0 0L8 4L0 8z" fill="#666"/></marker>',
            '<rect width="100%" height="100%" fill="white"/>',
            *arrows,
            *boxes,
            '</svg>\n',
        ]
    )


def name(room: str) -> str:
    """What stands in a room's box."""
    return room if '/' in room else f'vt/{room}'
