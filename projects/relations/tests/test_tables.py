"""The tables of this project, from records of its runs; the committed pages are what is written."""

import json

import numpy as np
import pytest
from tool_runner import ROOT

from docs.reports.pages import fill_places
from docs.reports.scores import read_table
from docs.reports.train import read_runs
from projects.relations import tables
from projects.relations.report import PAGES, read_runs_file
from vt.key_values import parse_options

ORIGIN = dict(date='2026-01-02', device='A CPU, 1 thread', versions=dict(torch='2.0'), length='2,560 iterations')
COSTS = dict(seconds=100.0, iterations=2560, batch_size=32, flops=80_000_000, parameters=2_000_000)
SCORES = {
    'resnet18-half_1024': (50.0, 51.0, 52.0),
    'resnet18-half_4096': (60.0, 61.0, 62.0),
    'vt_4096': (70.0, 71.0, 72.0),
    'vt_1024': (50.0, 52.0, 51.0),
}


PLACED = dict.fromkeys(['stage-4', 'after-5', '4-tokens', '32-tokens'], (70.0, 71.0))
PLACED |= {'none': (60.0, 61.0), 'stage-5': (70.5, 71.0), 'stage-3': (80.0, 81.0), '64-tokens': (60.0, 61.0)}


def records(table=SCORES):
    return [
        dict(label=label, config=f'configs/{label}.py', options={}, seed=seed, metrics={'accuracy/top1': score})
        | COSTS
        | ORIGIN
        for label, scores in table.items()
        for seed, score in enumerate(scores)
    ]


def test_intervals_are_students_from_the_own_spread():
    row = tables.tabulate_scores(tables.read_curves(records())).iloc[1]
    margin = 4.3027 * np.sqrt(1 / 3)  # 2 degrees of freedom, a variance of 1, three seeds
    assert row['1,024 images'] == f'51.00 ± {margin:.2f}'


def test_a_network_at_chance_narrows_no_interval_of_another():
    chance = SCORES | {'vit_1024': (50.0, 50.0, 50.0), 'vit_4096': (50.0, 50.0, 50.0)}
    before, after = (tables.read_curves(records(table)) for table in (SCORES, chance))
    assert tables.tabulate_scores(after)[:2].equals(tables.tabulate_scores(before))
    assert tables.tabulate_changes(after)[:1].equals(tables.tabulate_changes(before))


def test_the_interval_of_a_difference_is_welchs():
    table = {'resnet18-half_1024': (50.0, 54.0, 58.0), 'vt_1024': (60.0, 60.0, 60.0)}
    (row,) = tables.tabulate_changes(tables.read_curves(records(table))).to_dict('records')
    margin = 4.3027 * np.sqrt(16 / 3)  # ResNet's 2 degrees of freedom alone, for the other has no spread
    assert row['1,024 images'] == f'+6.00 ± {margin:.2f}'


def test_a_network_without_a_number_of_images_has_a_dash():
    few = {label: scores for label, scores in SCORES.items() if label != 'vt_1024'}
    curves = tables.read_curves(records(few))
    assert tables.tabulate_scores(curves)['1,024 images'][1] == '-'
    assert tables.tabulate_changes(curves)['1,024 images'].item() == '-'
    assert len(tables.draw_curves(curves).axes[0].get_xticks()) == 2


def test_one_seed_has_no_interval():
    curves = tables.read_curves([record for record in records() if record['seed'] == 0])
    assert tables.tabulate_scores(curves)['1,024 images'][0] == '50.00'
    assert tables.tabulate_changes(curves)['4,096 images'].item() == '+10.00'


def test_a_finding_holds_where_its_interval_is_clear_of_zero():
    rows = tables.tabulate_findings({'where-twin-digits': records(PLACED)})
    found = {row["the paper's finding"]: row['twin-digits'] for row in rows}
    assert len(found) == len(tables.FINDINGS)
    first = next(iter(tables.FINDINGS))
    assert found[first].startswith('+10.25 ± ')
    assert found[first].endswith(' at 1.00x the FLOPs: holds')
    assert found['stage 5 beats stage 3'].endswith(': does not hold')
    assert found['late stages (title): stage 5 beats stage 4'].endswith(': no clear difference')
    assert found['32 tokens are no better than 16 (table 6)'].endswith(': no gain')
    assert found['64 tokens are no better than 16'].endswith(': holds')


def test_attention_on_objects_is_a_row_a_part(tmp_path):
    start = dict(spread=1.0, reach=20.0, elsewhere=0.9, related=1.0, others=None)
    measured = dict(before={'layer4.0': start}, after={'layer4.0': start | dict(related=2.5)})
    (tmp_path / 'objects_vt.json').write_text(json.dumps(measured))
    (row,) = tables.tabulate_objects([tmp_path / 'objects_vt.json'])
    assert (row['network'], row['part'], row['on related'], row['on others']) == (
        'vt',
        'layer4.0',
        '1.00x -> 2.50x',
        '- -> -',
    )


RECORDED = sorted(path.stem for path in tables.RECORDS.glob('*.json'))


@pytest.mark.parametrize('page', PAGES, ids=lambda path: path.stem)
def test_the_committed_pages_are_what_is_written(page):
    assert fill_places(page.read_text(), tables.PLACES) == page.read_text()


@pytest.mark.parametrize('table', RECORDED)
def test_a_table_has_the_runs_of_its_records(table):
    """The configs stood elsewhere when some were recorded."""
    recorded = {
        (run['label'], run['seed']): (run['config'].rpartition('/')[2], run['options'])
        for run in read_table(tables.RECORDS / f'{table}.json')
    }
    runs = read_runs(table, read_runs_file())
    planned = {(run.label, run.seed): (run.config.rpartition('/')[2], parse_options(run.settings)) for run in runs}
    assert planned == recorded
    assert all((ROOT / run.config).is_file() for run in runs)


def test_every_table_is_recorded():
    assert sorted(read_runs_file()) == RECORDED


def test_what_is_compared_has_the_rate_that_was_best():
    searched = read_table(tables.RECORDS / 'sample-efficiency-search.json')
    best = {}
    for run in searched:
        network, _, rate = run['label'].rpartition('_')
        best[network] = max(best.get(network, (0, 0)), (run['metrics']['accuracy/top1'], -float(rate)))
    for run in read_runs('sample-efficiency', read_runs_file()):
        rate = parse_options(run.settings)['optim_wrapper.optimizer.lr']
        assert rate == -best[run.label.rpartition('_')[0]][1], run.label  # of equal ones the lowest


def test_no_ablation_has_fewer_than_three_seeds():
    seeds = {}
    for run in (run for path in tables.ABLATIONS for run in read_table(path)):
        seeds.setdefault(run['config'], set()).add(run['seed'])
    assert min(len(found) for found in seeds.values()) >= 3


def test_the_front_is_what_nothing_else_is_better_than():
    assert tables.front([(1, 5), (2, 7), (3, 7), (2, 6)]) == [(1, 5), (2, 7)]
    assert tables.front([(1, 5), (1, 5)]) == [(1, 5), (1, 5)]
