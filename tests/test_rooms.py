"""The rooms of the package, drawn from the imports in its sources: which stands on which, and what none may know."""

import ast
import functools
import re
from graphlib import CycleError, TopologicalSorter

import pytest
from tool_runner import ROOT

PACKAGE = ROOT / 'vt'
ROOMS = sorted(path.parent.name for path in PACKAGE.glob('*/__init__.py'))
OF_REPOSITORY = re.compile(r'\b(docs|tests)/|README|[\'"](docs|tests)[\'"]')
CARDS = ('vt/apis/hub.py', 'vt/datasets/local_files.py')  # the README.md of a model or a data set of Hugging Face


def imported(text, package):
    """Full names of what some code imports, anywhere in it.

    Args:
        text: the code.
        package: its package, such as ``'vt.engine.checks'``, from which relative imports start.
    """
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.rsplit('.', node.level - 1)[0] if node.level else ''
            base = '.'.join(filter(None, [above, node.module]))
            names |= {f'{base}.{alias.name}' for alias in node.names}
    return names


def imported_by(room):
    """Full names of what the modules of a room import."""
    paths = (PACKAGE / room).rglob('*.py')
    found = (imported(path.read_text(), '.'.join(path.parent.relative_to(ROOT).parts)) for path in paths)
    return set().union(*found)


def rooms_of(names):
    """The rooms of what is imported."""
    return {room for room in ROOMS for name in names if f'{name}.'.startswith(f'vt.{room}.')}


@functools.cache
def draw_rooms():
    """For each room those that its modules import from."""
    return {room: rooms_of(imported_by(room)) - {room} for room in ROOMS}


def reached(room, rooms):
    """All rooms on which one stands, directly or not."""
    found, waiting = set(), {room}
    while waiting:
        found |= waiting
        waiting = {other for each in waiting for other in rooms[each]} - found
    return found - {room}


def test_rooms_stand_on_each_other_without_a_circle():
    order = [*TopologicalSorter(draw_rooms()).static_order()]
    assert order.index('ops') < order.index('models') < order.index('engine') < order.index('apis')


def test_modules_beside_the_rooms_import_none():
    """All rooms may stand on them; the package itself names its rooms, and imports them when they are asked for."""
    beside = [path for path in PACKAGE.glob('*.py') if path.name != '__init__.py']
    assert {path.name: found for path in beside if (found := rooms_of(imported(path.read_text(), 'vt')))} == {}
    assert {path.name for path in beside} >= {'errors.py', 'registry.py'}


@pytest.mark.parametrize('room', ['apis', 'engine', 'inference'])
def test_runs_and_predictions_need_no_analysis(room):
    found = reached(room, draw_rooms())
    assert 'checkpoints' in found
    assert not found & {'analysis', 'commands', 'explorer'}


def test_the_explorer_needs_of_the_analysis_what_draws_attention_and_tables():
    names = {name for name in imported_by('explorer') if name.startswith('vt.analysis.')}
    assert names
    assert {name for name in names if not name.startswith(('vt.analysis.attention.', 'vt.analysis.tables.'))} == set()


def test_no_file_of_the_package_names_what_is_beside_it_in_the_repository():
    kept = [path for path in PACKAGE.rglob('*') if path.suffix in ('.py', '.json', '.j2', '.css')]
    names = {str(path.relative_to(ROOT)) for path in kept if OF_REPOSITORY.search(path.read_text())}
    assert names == {*CARDS}


@pytest.mark.parametrize(
    'code',
    [
        'import vt.models',
        'from vt.models import Block',
        'from vt import errors, models',
        'from ..models.block import Block',
        'from .. import models',
        'def f():\n    from vt.models.block import Block',
    ],
)
def test_an_import_is_found(code):
    assert rooms_of(imported(code, 'vt.engine')) == {'models'}


def test_a_circle_is_found():
    with pytest.raises(CycleError):
        TopologicalSorter(draw_rooms() | dict(ops={'models'})).prepare()
