"""Runs of one label and of other settings stand in rows of their own."""

from vt.analysis.ablation.sweep_report import tell_apart


def labels(*runs):
    records = [dict(label=label, digest=digest, options=options, seed=0) for label, digest, options in runs]
    return [record['label'] for record in tell_apart(records)]


def test_runs_of_the_same_settings_keep_their_label():
    assert labels(('a', '1' * 32, {}), ('b', '2' * 32, {})) == ['a', 'b']


def test_a_seed_that_was_trained_twice_is_a_row_of_its_own():
    assert labels(('a', '1' * 32, {}), ('a', '1' * 32, {}), ('b', '2' * 32, {})) == ['a', 'a again', 'b']


def test_others_are_told_apart_by_what_differs_and_by_digest():
    runs = [('a', '1' * 32, dict(x=1, y=2)), ('a', '2' * 32, dict(x=1, y=3)), ('a', '3' * 32, dict(x=1))]
    assert labels(*runs, ('b', '4' * 32, {})) == [
        'a (y=2, 11111111)',
        'a (y=3, 22222222)',
        'a (y=as in the config, 33333333)',
        'b',
    ]


def test_an_edited_config_and_an_earlier_version_are_told_apart():
    assert labels(('a', '1' * 32, {}), ('a', '2' * 32, {}), ('a', None, {})) == [
        'a (11111111)',
        'a (22222222)',
        'a (no digest)',
    ]
