"""Which runs a sweep has, and what they are called."""

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from vt.commands.sweep import claim, last_change, plan, train_run
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
    assert labels('a.b.x=1,2', 'a.c.x=3,4')[0] == 'a.b.x=1_a.c.x=3'
    assert labels('x=1,2', 'a.y=3,4')[0] == 'x=1_y=3'
    assert labels('out=[(0,1),(2,3)]', 'x=1,2') == ['x=1', 'x=2']
    assert labels('a=[[1,2],[3,4]],[[5,6],[7,8]]') == ['a=1_2_3_4', 'a=5_6_7_8']
    assert labels('data_root="a,b",c') == ['data_root=a_b', 'data_root=c']
    assert labels('depths=[2,2],[2,6]', 'norm=-1,1e-3') == [
        'depths=2_2_norm=-1',
        'depths=2_2_norm=1e-3',
        'depths=2_6_norm=-1',
        'depths=2_6_norm=1e-3',
    ]


def test_a_range_is_each_of_its_numbers():
    assert labels('fold=0:3') == ['fold=0', 'fold=1', 'fold=2']
    assert labels('fold=1:3', 'lr=0.1,0.2')[1:3] == ['fold=1_lr=0.2', 'fold=2_lr=0.1']


@pytest.mark.parametrize('setting', ['lr', 'lr=', 'lr=1,', '=1,2', 'fold=3:3'])
def test_what_is_no_setting_is_named(setting):
    with pytest.raises(UserError, match='must have the form key=value,value'):
        labels(setting)


def test_a_value_that_comes_twice_is_refused():
    with pytest.raises(UserError, match='two combinations have the same name'):
        labels('lr=1,1')


@pytest.fixture
def run(tmp_path):
    return replace(plan('c.py', [], [3], tmp_path)[0], digest='a' * 32)


def record(run, text=None, **content):
    (run.work_dir / 'training.json').write_text(text or json.dumps(dict(digest=run.digest, seed=3) | content))


def test_sweeps_that_start_together_share_their_folder(run):
    with ThreadPoolExecutor(8) as pool:
        [*pool.map(lambda _: claim(run), range(40))]
    assert [path.name for path in run.work_dir.parent.iterdir()] == ['c_seed-3']


def test_links_in_the_folder_of_a_run_are_not_followed(run, tmp_path):
    claim(run)
    (tmp_path / 'mine').write_text('mine')
    (run.work_dir / 'output.txt').symlink_to(tmp_path / 'mine')
    with pytest.raises(OSError, match=r'symbolic links: .*c_seed-3/output\.txt'):
        train_run(run)
    assert (tmp_path / 'mine').read_text() == 'mine'


@pytest.mark.parametrize('ends', [{}, dict(text='{"digest": "aaa')])
def test_a_run_has_its_folder_again_until_it_is_finished_and_then(ends, run):
    for _ in range(2):
        claim(run)
        assert not run.is_finished
    record(run, **ends)
    claim(run)
    assert run.is_finished == (not ends)


@pytest.mark.parametrize(
    ('change', 'content'),
    [
        (dict(digest='b' * 32), {}),
        ({}, dict(digest='b' * 32)),  # tools/train.py was called by hand
        ({}, dict(seed=4)),
    ],
)
def test_the_folder_of_another_run_is_refused(change, content, run):
    claim(run)
    record(run, **content)
    words = 'c_seed-3 contains a run of other settings, or of earlier data or weights: remove it, or choose another'
    with pytest.raises(UserError, match=words):
        claim(replace(run, **change))


def test_when_data_changed_last(tmp_path):
    """By files and folders of the data; not by the sweep's own, nor by files beside it."""
    image, weights, sweep = (
        tmp_path / name for name in ('data/train/0.png', 'first.pth', 'work_dirs/sweep/output.txt')
    )
    for path in (image, weights, sweep):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    for path, time_of_change in {
        image: 10,
        image.parent: 20,
        image.parents[1]: 10,
        weights: 30,
        sweep.parents[1]: 5,
    }.items():
        os.utime(path, (time_of_change, time_of_change))

    def found(*paths):
        return last_change(map(str, paths), sweep.parent)

    assert found(image.parents[1]) == 20  # of the folder, from which a file was removed
    assert found(image, tmp_path / 'missing') == 10
    assert found(image, weights) == 30
    assert found(tmp_path) == 20


def test_a_run_of_earlier_data_is_refused(run):
    claim(replace(run, changed=time.time() - 60))
    claim(replace(run, changed=time.time() - 60))
    with pytest.raises(UserError, match='contains a run of other settings, or of earlier data'):
        claim(replace(run, changed=time.time() + 60))


@pytest.mark.parametrize('text', ['{"config": "c.py", "seed": 3}', '{"digest": "aaa', '', '[]'])
def test_a_folder_that_no_sweep_made_is_refused(run, text):
    run.work_dir.mkdir(parents=True)
    (run.work_dir / 'training.json').write_text(text)
    with pytest.raises(UserError, match='contains a run of other settings, or of earlier'):
        claim(run)


@pytest.mark.parametrize('key', ['randomness.seed', 'work_dir'])
def test_what_the_sweep_sets_itself_is_not_swept(key):
    with pytest.raises(UserError, match=f'{key} cannot be swept: use'):
        labels(f'{key}=1')
