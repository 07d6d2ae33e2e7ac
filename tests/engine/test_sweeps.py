"""Which runs a sweep has, and what they are called."""

from pathlib import Path

import pytest

from vt.engine.sweeps import enter_sweep, plan
from vt.errors import UserError


def labels(*settings):
    return [run.label for run in plan('configs/a_digits.py', settings, [0], Path('sweep'))]


def test_every_combination_with_every_seed():
    runs = plan('configs/a_digits.py', ['optim.lr=0.1,0.2', 'model.depth=18'], [0, 3], Path('sweep'))
    assert [(run.work_dir.as_posix(), run.seed) for run in runs] == [
        ('sweep/lr=0.1_seed-0', 0),
        ('sweep/lr=0.2_seed-0', 0),
        ('sweep/lr=0.1_seed-3', 3),
        ('sweep/lr=0.2_seed-3', 3),
    ]
    assert runs[1].settings == ('optim.lr=0.2', 'model.depth=18')


def test_names_are_as_short_as_they_tell_apart():
    assert labels() == ['a_digits']
    assert labels('a.b.x=1,2', 'a.c.x=3,4')[0] == 'b.x=1_c.x=3'
    assert labels('x=1,2', 'a.y=3,4')[0] == 'x=1_y=3'
    assert labels('depths=[2,2],[2,6]', 'norm=-1,1e-3') == [
        'depths=2_2_norm=-1',
        'depths=2_2_norm=1e-3',
        'depths=2_6_norm=-1',
        'depths=2_6_norm=1e-3',
    ]


@pytest.mark.parametrize('setting', ['lr', 'lr=', 'lr=1,', '=1,2'])
def test_what_is_no_setting_is_named(setting):
    with pytest.raises(UserError, match='is not of the form key=value,value'):
        labels(setting)


def test_a_value_that_comes_twice_is_refused():
    with pytest.raises(UserError, match='two combinations have one name'):
        labels('lr=1,1')


def test_a_folder_has_one_config(tmp_path):
    enter_sweep(tmp_path / 'sweep', 'a.py')
    enter_sweep(tmp_path / 'sweep', 'a.py')
    with pytest.raises(UserError, match=r'holds a sweep of a\.py: give another --work-dir'):
        enter_sweep(tmp_path / 'sweep', 'b.py')
