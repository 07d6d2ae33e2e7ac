"""Tables of what a GPU's report wrote: ratios to the baseline, and nothing left out silently."""

import json

import pytest

from projects.speed.gpu_tables import read


def model(name, eager, graph=None, busy=150.0, **others):
    row = dict(model=name, kind='inference', batch=8, dtype='bfloat16', launch_us=100.0)
    row |= dict(eager=dict(us=eager, iqr_us=1.0), kernels=dict(launches=7, busy_us=busy, top=[]))
    return row | (dict(graph=dict(us=graph, iqr_us=1.0)) if graph else {}) | others


FPN, VT_FPN = 'configs/baselines/fpn_r50_4xb8.py', 'configs/vt_fpn/vt-fpn_r50_4xb8.py'
PATH = dict(operation='tokenize', kind='training', path='triton', n_c_h_w_l=[1, 256, 4, 4, 8])
PARTS = dict(
    environment=dict(rows=[dict(device='Some GPU', versions=dict(torch='2.11.0'), smi='1, 2', tf32=True)]),
    ceilings=dict(
        rows=[
            dict(dtype='bfloat16', matmul=8e14, convolution1x1=4e14, convolution3x3=5e14, copy=2e12),
            dict(error='no'),
        ]
    ),
    necks=dict(
        rows=[
            model(FPN, 1000.0, 300.0),
            model(VT_FPN, 500.0, 100.0),
            model(VT_FPN, 500.0, 100.0, busy=50.0),
            model(VT_FPN, 500.0, batch=32, error='OutOfMemoryError: 1 GiB'),
            dict(model=VT_FPN, kind='training', batch=32, skipped='no time was left'),
        ]
    ),
    paths=dict(
        rows=[
            PATH | dict(launch_us=30.0, eager=dict(us=40.0), gpu=dict(us=12.5), bytes_per_second=1e12),
            PATH | dict(path='sdpa', error='UserError: it takes no such map'),
        ]
    ),
    trainings=dict(rows=[], skipped='needs 50 s, and 12 s were left'),
)


@pytest.fixture
def report(tmp_path):
    path = tmp_path / 'measured.json'
    path.write_text(json.dumps(dict(dry=False, limit=430, seconds=429.0, parts=PARTS)))
    return read(path)


def test_models_are_compared_with_the_baseline_of_their_batch_and_kind(report):
    fpn, vt_fpn, waiting, alone = report['necks'].to_dict('records')
    assert (fpn['short'], vt_fpn['short']) == ('fpn_r50', 'vt-fpn_r50')
    assert (vt_fpn['eager'], vt_fpn['faster_eager']) == (5e-4, 2)
    assert (vt_fpn['graph'], vt_fpn['faster_graph']) == (1e-4, pytest.approx(3))
    assert (vt_fpn['launch'], vt_fpn['kernels_launches'], vt_fpn['kernels_busy']) == (1e-4, 7, 1.5e-4)
    assert (str(waiting['faster_eager']), waiting['faster_graph']) == ('nan', pytest.approx(3))
    assert (alone['batch'], str(alone['faster_eager']), str(alone['graph'])) == (32, 'nan', 'nan')


def test_a_path_is_compared_with_the_copy(report):
    (row,) = report['paths'].to_dict('records')
    assert (row['gpu_us'], row['bytes_per_second'], row['of_copy']) == (12.5, 1e12, 0.5)


def test_parts_without_numbers_have_no_table(report):
    assert report['about']['device'] == 'Some GPU'
    assert report['trainings'] is report['kernels'] is report['compiled'] is None


def test_errors_and_what_was_skipped_are_named(report):
    assert report['missing'] == [
        'ceilings: no',
        f'necks, {VT_FPN}, inference, 32, bfloat16: OutOfMemoryError: 1 GiB',
        'necks: no time was left for 1 rows',
        'paths, tokenize, training, sdpa, [1, 256, 4, 4, 8]: UserError: it takes no such map',
        'trainings: needs 50 s, and 12 s were left',
    ]


def test_something_else_is_refused(tmp_path):
    path = tmp_path / 'measured.json'
    path.write_text('{"parts": {}}')
    with pytest.raises(ValueError, match=r'lacks seconds.*measure it again: python -m projects\.speed\.gpu_report'):
        read(path)
