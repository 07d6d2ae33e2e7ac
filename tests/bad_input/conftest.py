"""A finished run whose files every bad run must leave alone."""

import pytest
from bad_input.kept_run import finish_run


@pytest.fixture(scope='module')
def kept(tmp_path_factory):
    return finish_run(tmp_path_factory.mktemp('kept run'))
