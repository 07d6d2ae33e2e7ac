"""A run writes its losses, scores and learning rates, and draws them; nothing about these files ends a training."""

import argparse
import math

import pytest
import torch
from engine.interruption.small_runs import log_of, train
from PIL import Image

from vt.commands.reports import report_runs
from vt.engine.hooks import curves
from vt.engine.hooks.curves import CURVES, RESULTS, CurvesHook, draw_curves, read_results, save_figure, write_results
from vt.errors import UserError

DONE = dict(epochs=[(1, 5), (2, 10), (3, 15)], iterations=[(None, 6), (None, 12), (None, 15)])


def steps(folder):
    return [(row.get('epoch'), row['iteration']) for row in read_results(folder / RESULTS)]


@pytest.mark.parametrize('kind', ['epochs', 'iterations'])
def test_a_point_for_each_validation_also_of_a_resumed_run(tmp_path, kind):
    whole, parts = tmp_path / 'whole', tmp_path / 'parts'
    weights = train(whole, kind, CurvesHook()).model.state_dict()
    rows = read_results(whole / RESULTS)
    assert steps(whole) == DONE[kind]
    assert all({'loss', 'lr', 'score', 'mean'} < row.keys() for row in rows)
    with Image.open(whole / CURVES) as image:
        assert image.width > 800
    newest = 'epoch_2.pth' if kind == 'epochs' else 'iter_12.pth'
    options = dict(checkpoint=dict(interval=1 if kind == 'epochs' else 6, by_epoch=kind == 'epochs', max_keep_ckpts=-1))
    train(parts, kind, CurvesHook(), **options)
    for path in [*parts.glob('*.pth')]:
        if path.name != newest:
            path.unlink()  # the table is a step ahead of the checkpoint
    (parts / 'last_checkpoint').unlink()
    other = train(parts, kind, CurvesHook(), **options).model.state_dict()
    assert read_results(parts / RESULTS) == rows
    train(parts, kind, CurvesHook(), **options)  # there is nothing left to do
    assert read_results(parts / RESULTS) == rows
    assert all(weights[name].equal(other[name]) for name in weights)


def test_weights_are_those_of_a_run_without_the_files(tmp_path):
    one = train(tmp_path / 'drawn', 'epochs', CurvesHook()).model.state_dict()
    other = train(tmp_path / 'plain', 'epochs').model.state_dict()
    assert all(one[name].equal(other[name]) for name in other)
    assert not (tmp_path / 'plain' / RESULTS).exists()


@pytest.mark.parametrize('kind', ['epochs', 'iterations'])
def test_a_run_without_validation_writes_at_its_end(tmp_path, kind):
    off = dict(val_cfg=None, val_dataloader=None, val_evaluator=None)
    by_epoch = kind == 'epochs'
    train(tmp_path, kind, CurvesHook(), **off, checkpoint=dict(by_epoch=by_epoch, interval=1 if by_epoch else 3))
    found = steps(tmp_path)
    assert found == (DONE['epochs'] if by_epoch else [(None, number) for number in range(1, 16)])
    assert all(math.isfinite(row['loss']) for row in read_results(tmp_path / RESULTS))
    assert (tmp_path / CURVES).is_file()


@pytest.mark.parametrize('name', ['write_results', 'draw_curves'])
def test_a_full_disk_is_one_warning(tmp_path, monkeypatch, name):
    def fail(*arguments):
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr(curves, name, fail)
    runner = train(tmp_path, 'epochs', CurvesHook())
    assert runner.iter == 15
    assert log_of(tmp_path).count('No space left on device') == 1


def test_a_damaged_table_does_not_end_a_resumed_run(tmp_path):
    train(tmp_path, 'epochs', CurvesHook(), train_cfg=dict(type='vt.EpochBasedTrainLoop', max_epochs=2))
    (tmp_path / RESULTS).write_text('epoch,iteration\n1,5,6,7\nx,y\n')
    assert train(tmp_path, 'epochs', CurvesHook()).iter == 15
    assert f'{RESULTS} is not up to date' in log_of(tmp_path)
    (tmp_path / RESULTS).write_text('a,b\n1,2\n')
    with pytest.raises(UserError, match='damaged'):
        read_results(tmp_path / RESULTS)


def test_nan_odd_names_and_thousands_of_epochs(tmp_path):
    values = torch.linspace(0, 9, 5000).cos().tolist()
    names = ('accuracy/top1', 'a $b_ 猫', '_c')
    rows = [
        dict(epoch=k + 1, iteration=3 * k, loss=value) | dict.fromkeys(names, value) for k, value in enumerate(values)
    ]
    rows[7]['loss'], rows[8]['loss'] = math.nan, math.inf
    write_results(tmp_path / RESULTS, rows)
    save_figure(draw_curves({'': read_results(tmp_path / RESULTS)}), tmp_path / CURVES)
    assert (tmp_path / RESULTS).stat().st_size < 500_000
    assert (tmp_path / CURVES).stat().st_size < 200_000
    assert math.isnan(read_results(tmp_path / RESULTS)[7]['loss'])
    large = dict(epoch=1, iteration=12_345_678, loss=1.0)
    write_results(tmp_path / RESULTS, [large])
    assert read_results(tmp_path / RESULTS) == [large]


def test_several_runs_in_one_figure(tmp_path, capsys):
    for run in ('a', 'b'):
        (tmp_path / run).mkdir()
        write_results(tmp_path / run / RESULTS, [dict(epoch=k, iteration=k, loss=1 / k, mIoU=k) for k in (1, 2, 3)])
    folders = [tmp_path / 'a', tmp_path / 'b']
    report_runs(argparse.Namespace(work_dirs=folders, out=tmp_path / 'both.png'))
    assert (tmp_path / 'both.png').is_file()
    assert 'written to' in capsys.readouterr().out
    with pytest.raises(UserError, match=RESULTS):
        report_runs(argparse.Namespace(work_dirs=[*folders, tmp_path / 'c'], out=tmp_path / 'both.svg'))
    assert (tmp_path / 'both.svg').is_file()
    with pytest.raises(UserError, match='must end in'):
        report_runs(argparse.Namespace(work_dirs=folders, out=tmp_path / 'both.doc'))
