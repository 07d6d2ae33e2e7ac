"""The runs that are trained again are those of the records, and one command trains, records and measures a table."""

import re
from types import SimpleNamespace

import pytest
from forked_tools import fork_command
from tool_runner import ROOT

from docs.reports import train
from docs.reports.__main__ import parse_args
from docs.reports.scores import read_table
from vt.errors import UserError
from vt.key_values import parse_options

RECORDED = sorted(path.stem for path in (ROOT / 'docs/records').glob('*.json'))


@pytest.mark.parametrize('table', RECORDED)
def test_a_table_has_the_runs_of_its_records_that_can_be_repeated(table):
    """Each tells its config, its seed, its versions and its command."""
    records = read_table(ROOT / f'docs/records/{table}.json')
    recorded = {(run['label'], run['seed']): (run['config'], run['options']) for run in records}
    runs = train.read_runs(table, train.read_tables())
    assert {(run.label, run.seed): (run.config, parse_options(run.settings)) for run in runs} == recorded
    for record in records:
        assert (ROOT / record['config']).is_file()
        assert f'randomness.seed={record["seed"]}' in record['command']
        assert record['versions']['torch']


def test_every_table_is_recorded_or_named_as_not_trained():
    pages = ''.join(page.read_text() for page in ROOT.glob('projects/small_data/*.md'))
    named = re.findall(r'^Not trained yet: `python -m docs.reports train (.+)`', pages, re.MULTILINE)
    assert sorted(train.read_tables()) == sorted([*RECORDED, *named])


def test_a_table_is_trained_recorded_and_measured(tmp_path, monkeypatch, capsys):
    table = dict(
        seeds=[0],
        options='train_cfg.max_epochs=1 train_dataloader.dataset.indices=32 val_dataloader.dataset.indices=8',
        rows={'a': 'configs/vt_resnet/vt-resnet18-half_digits.py model.backbone.num_tokens=4'},
        then=[f'-c "import pathlib; pathlib.Path({str(tmp_path / "measured")!r}).touch()"'],
    )
    monkeypatch.setattr(train, 'FOLDER', tmp_path)
    monkeypatch.setenv('OMP_NUM_THREADS', '1')
    monkeypatch.setenv('GLIBC_TUNABLES', '')
    monkeypatch.setattr('vt.commands.sweep.subprocess', SimpleNamespace(run=fork_command, STDOUT=None))
    monkeypatch.chdir(ROOT)
    for _ in range(2):  # a finished run is left alone
        train.train(parse_args(['train', 'few', '--jobs', '1']), {'few': table}, tmp_path)
    (record,) = read_table(tmp_path / 'few.json')
    assert (record['label'], record['seed'], record['options']['model.backbone.num_tokens']) == ('a', 0, 4)
    assert (tmp_path / 'measured').exists()
    assert '1 of them finished before' in capsys.readouterr().out


def test_an_unknown_table_is_named_before_anything_is_trained():
    with pytest.raises(UserError, match='there is no table nothing; there are: repeat, digits'):
        train.train(parse_args(['train', 'repeat', 'nothing']), train.read_tables())
