"""The rooms of the package, drawn from the imports in its sources: which stands on which, and what none may know."""

import re

import networkx as nx
import pytest
from tool_runner import ROOT

from docs.reports.rooms import BASE, arrange, imports_of, read_rooms

OF_REPOSITORY = re.compile(r'\b(docs|tests)/|README|[\'"](docs|tests)[\'"]')


@pytest.fixture(scope='module')
def rooms():
    """For each room those that its modules import from."""
    return read_rooms()


def test_rooms_stand_on_each_other_without_a_circle(rooms):
    row = {room: index for index, row in enumerate(arrange(rooms)) for room in row}
    assert row['ops'] < row['models'] < row['engine'] < row['apis'] < row['commands']
    assert row['apis'] < row['cli'] < row['tools/']
    assert {*rooms['commands']} >= {'apis', 'engine'}
    assert [*rooms[BASE]] == []  # all rooms may stand on the modules beside them


def test_modules_import_each_other_without_a_circle():
    """Imports inside functions count, too; what a package's ``__init__`` imports on demand does not."""
    imports = {
        '.'.join(path.relative_to(ROOT).with_suffix('').parts): {*names} | {name.rpartition('.')[0] for name in names}
        for path, names in imports_of('vt').items()
    }
    graph = nx.DiGraph((one, name) for one, names in imports.items() for name in names & {*imports})
    assert ('vt.engine.config.steps', 'vt.engine.config.check_settings') in graph.edges
    assert [*nx.simple_cycles(graph)] == []


def test_runs_and_predictions_need_no_analysis_and_the_explorer_what_draws(rooms):
    for room in ('apis', 'engine', 'inference'):
        found = nx.descendants(rooms, room)
        assert 'checkpoints' in found
        assert not found & {'analysis', 'commands', 'explorer'}
    kept = ('vt.analysis.attention.', 'vt.analysis.figures.', 'vt.analysis.tables.')
    names = {name for names in imports_of('vt/explorer').values() for name in names if name.startswith('vt.analysis.')}
    assert names
    assert {name for name in names if not name.startswith(kept)} == set()


def test_no_file_of_the_package_names_what_is_beside_it_in_the_repository():
    kept = [path for path in (ROOT / 'vt').rglob('*') if path.suffix in ('.py', '.json', '.j2', '.css')]
    assert not {str(path.relative_to(ROOT)) for path in kept if OF_REPOSITORY.search(path.read_text())}
