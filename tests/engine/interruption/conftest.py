"""Runs that the tests of this room begin from."""

import shutil

import pytest
from engine.interruption.small_runs import train_few


@pytest.fixture(scope='session')
def finished(tmp_path_factory):
    """A folder with the work directory of a finished run of three epochs."""
    folder = tmp_path_factory.mktemp('finished')
    result = train_few(folder)
    assert result.returncode == 0, result.stderr
    return folder


@pytest.fixture
def used(finished, tmp_path):
    """A copy of it."""
    shutil.copytree(finished / 'run', tmp_path / 'run')
    return tmp_path
