"""The Triton kernels compile for GPUs that need not be here, and their registers suffice."""

import json

import pytest

from projects.speed.performance import MEASURED

TABLE = MEASURED / 'kernels.json'
FEW_SPILLED_BYTES = 32  # of a thread: eight registers of 255


@pytest.fixture
def resources(tmp_path, monkeypatch):
    """The module that compiles kernels, with an empty cache of compiled ones."""
    pytest.importorskip('triton')
    monkeypatch.setenv('TRITON_CACHE_DIR', str(tmp_path))
    from projects.speed import kernels

    return kernels


def assert_light(row, resources):
    """Registers and shared memory suffice."""
    assert row['spilled_bytes'] <= FEW_SPILLED_BYTES, row
    assert row['shared_bytes'] <= resources.SHARED_KB[row['sm']] * 1024, row


def test_every_kernel_is_in_the_table_and_light(resources):
    rows = json.loads(TABLE.read_text())['results']
    taken = ('registers', 'spilled_bytes', 'shared_bytes')
    described = [{name: value for name, value in row.items() if name not in taken} for row in rows]
    assert described == [resources.describe(*each) for each in resources.cases()]
    for row in rows:
        assert_light(row, resources)


def test_the_kernels_of_vt_fpn_compile(resources):
    """For an H100 or H200; the rest of the table is compiled by the slow test."""
    for kernel, case in resources.cases():
        if case == resources.Case(256, 8, 90):
            assert_light(resources.measure(kernel, case), resources)


@pytest.mark.slow
def test_the_table_is_of_these_kernels(resources):
    """Other versions of Triton may count a little differently; nothing may spill."""
    for each in resources.cases():
        assert_light(resources.measure(*each), resources)
