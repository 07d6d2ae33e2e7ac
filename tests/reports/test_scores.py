"""Scores on pages and above configs, from records of trained runs."""

import json
from pathlib import Path

from analysis.test_scores import RECORDS, record

from docs.reports.scores import render_headers, show_scores


def test_a_table_has_the_rows_that_it_names(tmp_path):
    (tmp_path / 'runs.json').write_text(json.dumps(RECORDS))
    (tmp_path / 'more.json').write_text(json.dumps([record('other', 0, 10.0)]))
    every, some = (show_scores(rows, tmp_path) for rows in ('runs more', 'runs: plain, norm'))
    assert '| other ' in every
    assert '| other ' not in some
    assert '2.0 hours of training iterations. Reproduce: `python -m docs.reports train runs`.' in some
    assert show_scores('runs none', tmp_path) == 'Not trained yet: `python -m docs.reports train none`.'


def test_scores_stand_above_the_configs_that_were_trained_as_they_are(tmp_path):
    (tmp_path / 'records').mkdir()
    changed = record('norm', 0, 50.0, options=[('lr', 1)])
    maps = [record('maps', seed, score, metric='mIoU') for seed, score in ((0, 40.0), (1, 41.5))]
    maps[0]['device'] = 'A CPU (family 26, model 2), 1 thread'
    learner = record('learner', 0, 95.0, options=[('optim_wrapper.type', 'half'), ('model.teacher_checkpoint', 'file')])
    halves = record('plain', 0, 10.0, options=[('optim_wrapper.type', 'half')])
    (tmp_path / 'records/runs.json').write_text(json.dumps([*RECORDS[:2], changed, *maps, learner, halves]))
    (tmp_path / 'configs/room').mkdir(parents=True)
    lines = dict(plain='# Top-1 not measured yet.', norm='# Top-1 1.00', maps='# mIoU 2.00', learner='# Top-1 1.00')
    for name, line in lines.items():
        (tmp_path / f'configs/room/{name}.py').write_text(f'# What.\n{line}\n# A command.\nmodel = {{}}\n')
    texts = render_headers(tmp_path / 'records', tmp_path)
    lines = {Path(path).stem: text.splitlines()[1] for path, text in texts.items()}
    assert lines == {
        'plain': '# Top-1 90.00, 91.00 % (seeds 0, 1), 30.0 min: A CPU, 1 thread, torch 2.0.',
        'maps': '# mIoU 40.00, 41.50 % (seeds 0, 1), 30.0 min: A CPU, 1 thread, torch 2.0.',
        'learner': '# Top-1 95.00 % (seeds 0), 30.0 min, bfloat16: A CPU, 1 thread, torch 2.0.',
    }
