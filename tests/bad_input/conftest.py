"""A finished run whose files every bad run must leave alone, and images to train on."""

import pytest
from bad_input.images import RGB, encode
from bad_input.kept_run import finish_run


@pytest.fixture(scope='module')
def kept(tmp_path_factory):
    return finish_run(tmp_path_factory.mktemp('kept run'))


@pytest.fixture
def folder(tmp_path):
    """Four images of two classes, in ``data/images``."""
    for label in ('cat', 'dog'):
        (tmp_path / 'data/images' / label).mkdir(parents=True)
        for index in range(2):
            (tmp_path / f'data/images/{label}/{index}.png').write_bytes(encode(RGB))
    return tmp_path
