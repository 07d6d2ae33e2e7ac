"""The page on performance: pairs, tables and text say what the measurements say."""

import json
import re
from dataclasses import asdict, replace
from pathlib import Path

import pandas as pd
import pytest

from docs.reports.markdown import cells, count_one, milliseconds, short_name
from projects.speed import performance
from projects.speed.performance import draw, read_rows, render
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


def all_records():
    records = {
        performance.NECKS: record(twins(FPN, VT_FPN)),
        performance.SEGMENTORS: record(twins(FPN, VT_FPN, 'whole')),
        performance.SETTINGS[1]: record(twins(FPN, VT_FPN, memory_format='contiguous')),
        performance.SETTINGS[2]: record(twins(FPN, VT_FPN), keeps_freed_memory=False),
    }
    records[performance.HALF] = record(twins(FPN, VT_FPN, dtype='bfloat16'))
    for name in performance.FOLDED:
        records[name] = record(twins(FPN, VT_FPN, 'whole', fuse_conv_bn=True)[:2])
    for name in performance.RESNETS:
        names = (f'{name}_8xb32-90e_in1k', f'vt-{name}_8xb32-90e_in1k')
        records[name] = record(
            [*twins(*names, 'whole'), measurement(f'torchvision:{name}', 4.0, 6 * 10**9, part='whole')]
        )
    for name in performance.SCALING:
        results = [
            m
            for s in (10, 20)
            for m in (
                measurement(FPN, s**2, 5, size=(s, s)),
                measurement(VT_FPN, s**2, 5, size=(s, s), token_side_seconds=[7.0, 7.0]),
            )
        ]
        records[name] = record(results)
    for name in performance.TOKENS:
        results = [measurement(FPN, 1.0, 5), *(measurement(VT_FPN, n, 5, tokens=n) for n in (8, 16, 32))]
        records[name] = record(results)
    return records


def write(folder, records, device='cpu'):
    for name, content in records.items():
        (folder / f'{name}_{device}.json').write_text(json.dumps(asdict(content)))
    return folder


@pytest.fixture
def folder(tmp_path):
    return write(tmp_path, all_records())


def page(folder):
    return render(folder)


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


def test_cells_are_formats_of_rows_and_empty_where_a_value_is_missing():
    rows = [dict(flops=6e9, share=0.667, seconds=4.0, size=[8, 16], ok=True), dict(flops=1e9, size=[1], share=None)]
    forms = {'G': '{flops:G.2f}', 'share': '{share:p.0f} %', 'ms': '{seconds:ms}', 'size': '{size:x}', 'ok': '{ok}'}
    assert cells(rows, forms | {'none': '{nothing}'}) == [
        {'G': '6.00', 'share': '67 %', 'ms': '4,000', 'size': '8x16', 'ok': 'yes'},
        {'G': '1.00', 'share': '', 'ms': '', 'size': '1', 'ok': ''},
    ]


@pytest.mark.parametrize(
    ('text', 'counted'),
    [
        ('1 threads and 11 threads', '1 thread and 11 threads'),
        ('2 cores, 1 cores', '2 cores, 1 core'),
    ],
)
def test_one_is_singular(text, counted):
    assert count_one(text) == counted


@pytest.mark.parametrize(
    ('seconds', 'text'), [(1.2345, '1,234'), (0.12345, '123'), (0.0012345, '1.23'), (1e-5, '0.0100')]
)
def test_times_have_three_digits(seconds, text):
    assert milliseconds(seconds) == text


@pytest.mark.parametrize(
    ('model', 'name'),
    [(VT_FPN, 'vt-fpn_r50'), ('resnet18_8xb32-90e_in1k', 'resnet18'), ('timm:resnet18', 'timm:resnet18')],
)
def test_names_end_where_the_recipe_begins(model, name):
    assert short_name(model) == name


def test_the_page_says_what_was_measured(folder):
    text = re.sub(' +', ' ', page(folder))
    assert 'The **VT-FPN neck** runs 4.00x as fast as FPN in inference and 3.00x in a training step' in text
    assert '6.00x fewer FLOPs (800x1216, batch 1)' in text
    assert "50 % of FPN's for the neck in inference, 50 % in a training step" in text
    assert 'vt-fpn_r50: exponent 1.00' in text
    assert 'vt-fpn_r50: token side: exponent 0.00' in text
    assert '| float32 | 190 (190 to 190) |' in text
    assert '| training | channels_last | default | 12,000 | 4,000 | 3.00x |' in text
    assert '| vt-fpn_r50: token side | 7,000 | 7,000 | 0.00 |' in text
    assert '| ms | 10x10 | 20x20 | exponent |' in text
    assert 'torchvision:resnet101' in text
    assert 'Not measured yet' in text
    assert '## Data loading' not in text
    assert '{{' not in text


def test_the_summary_has_a_row_a_pair(folder):
    rows = performance.summarize(performance.read_all(folder))
    expected = ['vt-fpn_r50 neck, fpn_r50', '1 x 800x1216', '6.00x', '1,000', '4.00x', '4,000', '3.00x']
    assert [*rows[0].values()] == expected
    assert len(rows) == 2 + len(performance.RESNETS)


def test_machines_stand_side_by_side(folder):
    (folder / 'other').mkdir()
    slower = [replace(m, token_products='onednn') for m in twins(FPN, VT_FPN)]
    other = record(slower)
    other.device = 'Other CPU, 2 threads'
    write(folder / 'other', {'necks_800x1216': other, performance.SYSTEMS: other, performance.SMALL: other})
    (what, *rows) = performance.compare_machines(performance.machines(folder)).fillna('').to_dict('records')
    assert what == {'': 'matrix product (GFLOP/s)', 'Some CPU, 2 threads': '190', 'Other CPU, 2 threads': '190'}
    table = {row['']: (row['Some CPU, 2 threads'], row['Other CPU, 2 threads']) for row in rows}
    assert table['token products by'] == ('BLAS', 'oneDNN')
    assert table['vt-fpn_r50 neck: inference, training'] == ('4.00x, 3.00x', '4.00x, 3.00x')
    assert table['vt-resnet18: inference, training'] == ('4.00x, 3.00x', '')
    trial = dict(size=[8, 8, 8], lead=2.1, chosen_from=1.5, seconds=0.02, chosen='onednn')
    products = [dict(size=[8, 8, 8], kind='inference', blas=100.0, onednn=210.0)]
    pixels = [dict(size=[6, 8], logits=0.003, convolution=0.004, sums=0.002, onto=0.005, read=0.001)]
    text = json.dumps(dict(device='Other CPU', trial=trial, products=products, pixels=pixels))
    (folder / 'other/products_cpu.json').write_text(text)
    text = re.sub(' +', ' ', page(folder))
    assert 'The trial took 20 ms. oneDNN is 2.10x as fast as the BLAS, so\noneDNN is used' in text
    assert '| 8x8x8 | inference | 100 | 210 |' in text
    assert '| 6x8 | 3.00 | 4.00 | 2.00 | 5.00 | 1.00 |' in text
    assert 'Small images, Other CPU, 2 threads' in text
    assert "of one model (ADE20K's 150 classes, 512x512, Other CPU, 2 threads)" in text


def test_other_tables_have_their_sections(folder):
    (folder / 'startup_cpu.json').write_text(json.dumps([dict(what='import vt', seconds=123.456, runs=[1, 2])]))
    text = re.sub(' +', ' ', page(folder))
    assert '| what | seconds |' in text
    assert '123.5 |' in text


def test_loading_is_beside_what_a_gpu_takes(folder):
    path = folder / 'data_loading_cpu.json'
    assert performance.read_loading(path, []) is None
    configs = ('vt-resnet50_8xb32-90e_in1k', 'deit-small_16xb64-300e_in1k')
    results = [
        dict(config=config, crop='cv2', workers=workers, runs=[100 * workers, 110 * workers, 90 * workers])
        for config in configs
        for workers in (1, 2)
    ]
    path.write_text(json.dumps(dict(device='Some CPU', results=results)))
    assert '| vt-resnet50_8xb32-90e_in1k | cv2 | 100 | 10.0 % | 200 |' in re.sub(' +', ' ', page(folder))
    results = [dict(config='mvit-base-16x4_k400', crop='cv2', workers=each, runs=[30, 33, 36]) for each in (1, 2)]
    (folder / 'clip_loading_cpu.json').write_text(json.dumps(dict(device='Some CPU', results=results)))
    assert '| mvit-base-16x4_k400 | cv2 | 33 | 9.1 % | 33 |' in re.sub(' +', ' ', page(folder))
    trained = dict(short='vt-resnet50', kind='training', batch=[32, 256], eager=[0.1, 0.08])
    gpu = dict(dry=False, resnets=pd.DataFrame(trained), ceilings=pd.DataFrame(dict(matmul=[7e14])))
    measured, counted = performance.read_loading(path, [gpu])['rows']
    assert (measured['taken'], measured['by'], measured['cores']) == (3200, 'measured', 32)
    assert counted['by'] == 'count'
    assert 6 * 4.6e9 * counted['taken'] == pytest.approx(0.3 * 7e14, rel=0.02)


def test_rows_of_other_tools_keep_their_columns(tmp_path):
    path = tmp_path / 'startup_cpu.json'
    assert read_rows(path) is None
    path.write_text(json.dumps(dict(results=[dict(what='import vt', seconds=1.23456), dict(what='train', cold=True)])))
    assert read_rows(path) == [
        {'what': 'import vt', 'seconds': '1.235', 'cold': ''},
        {'what': 'train', 'seconds': '', 'cold': 'True'},
    ]


def test_figures_have_a_line_and_a_bar_for_each(folder):
    scaling, memory = draw(folder).values()
    assert [len(axes.lines) for axes in scaling.axes] == [3, 3, 1, 1]
    (axes,) = memory.axes
    assert len(axes.patches) == 2 * (2 + len(performance.RESNETS))


def test_a_missing_measurement_is_named_with_the_command(folder):
    (folder / 'tokens_necks_cpu.json').unlink()
    with pytest.raises(FileNotFoundError, match=r'no .*tokens_necks_cpu\.json; measure it: bash projects/speed/'):
        page(folder)


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
