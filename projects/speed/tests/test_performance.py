"""The page on performance: pairs, tables and text say what the measurements say."""

import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import pandas as pd
import pytest

from projects.speed import performance
from projects.speed.performance import draw, render
from projects.speed.settings import BenchmarkRecord, Measurement, read_record
from projects.speed.speeds import read_pairs, read_speeds

DOCS = Path(__file__).parents[3] / 'docs'
FPN, VT_FPN = 'fpn_r50_4xb8-90k_coco-stuff164k-800x1216', 'vt-fpn_r50_4xb8-90k_coco-stuff164k-800x1216'
CEILING = dict(dtype='float32', matmul=1.9e11, convolution1x1=2e11, convolution3x3=2.1e11, copy=3.3e10)


def measurement(model, seconds, flops, kind='inference', part='neck', **others):
    values = dict(
        device='cpu',
        dtype='float32',
        memory_format='channels_last',
        compile='off',
        batch_size=1,
        size=(800, 1216),
        tokens=None,
        parameters=10,
        peak_memory=None,
        bound_seconds=seconds / 2,
    )
    return Measurement(model=model, part=part, kind=kind, seconds=[seconds] * 3, flops=flops, **values | others)


# Seconds and bytes of a model of 6 GFLOPs and of one of 1 GFLOPs.
COSTS = dict(inference=((4.0, 1.0), (10**8, 5 * 10**7)), training=((12.0, 4.0), (3 * 10**8, 15 * 10**7)))


def twins(theirs, ours, part='neck', **others):
    """Four times as fast in inference, three times in training."""
    return [
        measurement(model, time, flops, kind, part, peak_memory=memory, **others)
        for kind, (times, memories) in COSTS.items()
        for model, time, memory, flops in zip((theirs, ours), times, memories, (6 * 10**9, 10**9))
    ]


def record(results, keeps_freed_memory=True):
    settings = dict(threads=2, keeps_freed_memory=keeps_freed_memory)
    versions = dict(python='3.11', torch='2.14.1')
    return BenchmarkRecord(
        'python -m projects.speed.compare', {}, 'Some CPU, 2 threads', versions, settings, [CEILING], results
    )


def write(folder, records, device='cpu'):
    for name, content in records.items():
        (folder / f'{name}_{device}.json').write_text(json.dumps(asdict(content)))
    return folder


def test_what_is_written_is_read(tmp_path):
    content = record(twins(FPN, VT_FPN))
    (read,) = (read_record(path) for path in write(tmp_path, {'necks': content}).iterdir())
    assert [m.median for m in read.results] == [m.median for m in content.results]
    assert read.results[0].setting == content.results[0].setting
    (tmp_path / 'other.json').write_text('{"results": [{"model": "a"}]}')
    with pytest.raises(ValueError, match=r'other\.json is not a record of projects.speed.compare --out'):
        read_record(tmp_path / 'other.json')
    with pytest.raises(FileNotFoundError, match=r'there is no .*none\.json; write it first'):
        read_record(tmp_path / 'none.json')


def test_a_pair_is_the_first_two_models_of_one_setting(tmp_path):
    write(tmp_path, {'necks': record(twins(FPN, VT_FPN))})
    inference, training = read_pairs(read_speeds(tmp_path.iterdir())).to_dict('records')
    assert (inference['first_short'], inference['model'], training['kind']) == ('fpn_r50', VT_FPN, 'training')
    assert (inference['faster'], inference['fewer'], inference['memory']) == (4, 6, 0.5)
    assert inference['delivered'] == pytest.approx(4 / 6)


def test_rows_have_columns_for_what_differs_and_the_first_of_each_setting_as_reference(tmp_path):
    results = [*twins(FPN, VT_FPN), *(replace(m, batch_size=8, seconds=[2.0]) for m in twins(FPN, VT_FPN))]
    write(tmp_path, {'necks': record(results)})
    rows = performance.compare(read_speeds(tmp_path.iterdir()), 'necks')
    assert [*zip(rows['short'], rows['kind'], rows['batch_size'], rows['faster'])] == [
        ('fpn_r50', 'inference', 1, 1),
        ('vt-fpn_r50', 'inference', 1, 4),
        ('fpn_r50', 'inference', 8, 1),
        ('vt-fpn_r50', 'inference', 8, 1),
        ('fpn_r50', 'training', 1, 1),
        ('vt-fpn_r50', 'training', 1, 3),
        ('fpn_r50', 'training', 8, 1),
        ('vt-fpn_r50', 'training', 8, 1),
    ]
    assert 'size' not in rows


def test_loading_is_beside_what_a_gpu_takes(tmp_path):
    path = tmp_path / 'data_loading_cpu.json'
    assert performance.read_loading(path, []) is None
    results = [
        dict(config=config, crop='cv2', workers=workers, runs=[100 * workers, 110 * workers, 90 * workers])
        for config in ('vt-resnet50_8xb32-90e_in1k', 'deit-small_16xb64-300e_in1k')
        for workers in (1, 2)
    ]
    path.write_text(json.dumps(dict(device='Some CPU', results=results)))
    trained = dict(short='vt-resnet50', kind='training', batch=[32, 256], eager=[0.1, 0.08])
    tables = dict(resnets=pd.DataFrame(trained), ceilings=pd.DataFrame(dict(matmul=[7e14])))
    gpu = dict(dry=False, tables=tables)
    measured, counted = performance.read_loading(path, [gpu])['rows']
    assert (measured['taken'], measured['by'], measured['cores']) == (3200, 'measured', 32)
    assert counted['by'] == 'count'
    assert 6 * 4.6e9 * counted['taken'] == pytest.approx(0.3 * 7e14, rel=0.02)


def test_figures_have_a_line_and_a_bar_for_each():
    scaling, memory = draw(performance.MEASURED).values()
    assert [len(axes.lines) for axes in scaling.axes] == [3, 3, 2, 2]
    (axes,) = memory.axes
    assert len(axes.patches) == 2 * (2 + len(performance.RESNETS))


def test_a_missing_measurement_is_named_with_the_command(tmp_path):
    shutil.copytree(performance.MEASURED, tmp_path, dirs_exist_ok=True)
    (tmp_path / 'tokens_necks_cpu.json').unlink()
    with pytest.raises(FileNotFoundError, match=r'no .*tokens_necks_cpu\.json; measure it: bash projects/speed/'):
        render(tmp_path)


def test_the_committed_page_is_what_is_written():
    page = performance.FOLDER / 'performance.md'
    assert render(performance.MEASURED) == page.read_text(), 'python -m projects.speed.report writes it again'


def test_the_short_page_has_the_same_numbers():
    text = (DOCS / 'performance.md').read_text()
    rows = performance.summarize(performance.read_all(performance.MEASURED))
    told = [row for row in rows if row['model, instead of'].split(',')[0] not in ('vt-resnet34', 'vt-resnet101')]
    assert len(told) == 4
    for row in told:
        _, batch, fewer, _, inference, _, training = row.values()
        assert f'| {batch} | {fewer} | {inference} | {training} |' in text
