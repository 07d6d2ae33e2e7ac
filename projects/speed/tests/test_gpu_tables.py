"""Tables of what a GPU's report wrote: ratios to the baseline, and nothing left out silently."""

import pytest

from projects.speed.gpu_report import add_line
from projects.speed.gpu_tables import read


def model(name, eager, graph=None, busy=150.0, **others):
    row = dict(part='necks', model=name, change='', kind='inference', batch=8, compile='off', launch_us=100.0)
    row |= dict(eager=dict(us=eager, iqr_us=1.0), kernels=dict(launches=7, busy_us=busy, ours='', top=[]))
    return row | (dict(graph=dict(us=graph, iqr_us=1.0)) if graph else {}) | others


FPN, VT_FPN = 'configs/baselines/fpn_r50_4xb8.py', 'configs/vt_fpn/vt-fpn_r50_4xb8.py'
PATH = dict(part='paths', operation='tokenize', kind='training', path='triton', n_c_h_w_l=[1, 256, 4, 4, 8])
LINES = [
    dict(part='environment', device='Some GPU', versions=dict(torch='2.11.0'), smi='1, 2', tf32=True),
    dict(part='ceilings', dtype='bfloat16', error='no'),
    model(FPN, 1000.0, 300.0),
    model(VT_FPN, 500.0, 100.0),
    model(FPN, 800.0, 200.0, change='bf16 upsampling'),
    model(VT_FPN, 500.0, 100.0, busy=50.0),
    model(VT_FPN, 500.0, batch=32, error='OutOfMemoryError: 1 GiB'),
    dict(part='necks', model=VT_FPN, kind='training', batch=32, skipped='no time was left'),
    model(VT_FPN, 500.0, batch=32),
    PATH | dict(eager=dict(us=40.0), gpu=dict(us=12.5), blocks=dict(BLOCK_P=16)),
    dict(part='fsdp', skipped='no time was left'),
    dict(part='report', dry=False, limit=460, seconds=429.0),
]


@pytest.fixture
def report(tmp_path):
    for line in LINES:
        add_line(tmp_path, line)
    return read(tmp_path)


def test_models_are_compared_with_the_baseline_of_their_batch_and_kind(report):
    fpn, vt_fpn, changed, waiting, alone = report['tables']['necks'].to_dict('records')
    assert (fpn['short'], vt_fpn['short']) == ('fpn_r50', 'vt-fpn_r50')
    assert (vt_fpn['eager'], vt_fpn['faster_eager']) == (5e-4, 2)
    assert (vt_fpn['graph'], vt_fpn['faster_graph']) == (1e-4, pytest.approx(3))
    assert (vt_fpn['launch'], vt_fpn['kernels_launches'], vt_fpn['kernels_busy']) == (1e-4, 7, 1.5e-4)
    assert (changed['change'], changed['faster_eager']) == ('bf16 upsampling', 1.25)
    assert (str(waiting['faster_eager']), waiting['faster_graph']) == ('nan', pytest.approx(3))
    assert (alone['batch'], str(alone['faster_eager']), str(alone['graph'])) == (32, 'nan', 'nan')


def test_other_rows_are_tables_too(report):
    (row,) = report['tables']['paths'].to_dict('records')
    assert (row['gpu_us'], row['eager'], row['blocks_BLOCK_P']) == (12.5, 4e-5, 16)


def test_parts_without_numbers_have_no_table(report):
    assert report['device'] == 'Some GPU'
    assert (report['limit'], report['seconds']) == (460, 429)
    assert [*report['tables']] == ['necks', 'paths']


def test_errors_and_what_was_skipped_are_named(report):
    assert report['missing'] == [
        'ceilings, bfloat16: no',
        f'necks, {VT_FPN}, inference, 32: OutOfMemoryError: 1 GiB',
        f'necks, {VT_FPN}, training, 32: no time was left',
        'fsdp: no time was left',
    ]
