"""The packages of ``vt`` and their imports as a figure, ``docs/figures/rooms.svg``.

A package stands one row above the highest one that it imports. An arrow is an import; those that follow from others are
left out. Packages that import each other in a circle are an error.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import networkx as nx

from .markdown import ROOT, fill

PATH = 'docs/figures/rooms.svg'
TEMPLATE = Path(__file__).with_name('rooms.svg.j2')
BASE = 'vt/*.py'  # the modules beside the packages: errors, registry, limits of what is read


def imported_names(text: str, package: tuple[str, ...]) -> Iterator[str]:
    """Full names of what some code imports, anywhere in it; relative imports start from its ``package``."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            yield from ('.'.join([*base, *filter(None, [node.module]), alias.name]) for alias in node.names)


def imports_of(folder: str) -> dict[Path, set[str]]:
    """What each file of a folder of the repository imports."""
    return {
        path: {*imported_names(path.read_text(), path.relative_to(ROOT).parent.parts)}
        for path in sorted((ROOT / folder).rglob('*.py'))
    }


def room_of(name: str) -> str:
    """The room of a module of ``vt`` or ``tools`` by its full name."""
    package, room, *_ = name.split('.')
    if package == 'tools':
        return 'tools/'
    return room if (ROOT / 'vt' / room).is_dir() else BASE


def read_rooms() -> nx.DiGraph:
    """Which rooms each room imports: an edge an import."""
    graph = nx.DiGraph()
    for path, names in (imports_of('vt') | imports_of('tools')).items():
        module = '.'.join(path.relative_to(ROOT).with_suffix('').parts)
        if module not in ('vt.__init__', 'vt.__main__'):  # which load any room on demand, and the command line
            room = room_of(module)
            graph.add_node(room)
            graph.add_edges_from((room, room_of(name)) for name in names if name.startswith('vt.'))
    graph.remove_edges_from([*nx.selfloop_edges(graph)])
    return graph


def arrange(rooms: nx.DiGraph) -> list[list[str]]:
    """Rows of rooms, from the bottom up.

    Raises:
        NetworkXUnfeasible: rooms import each other in a circle.
    """
    return [sorted(row) for row in nx.topological_generations(rooms.reverse())]


def draw(rooms: nx.DiGraph) -> str:
    """The figure as SVG."""
    arrows = sorted(nx.transitive_reduction(rooms).edges)
    return fill(TEMPLATE, rows=arrange(rooms), arrows=arrows)
