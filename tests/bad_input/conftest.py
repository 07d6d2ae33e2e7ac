"""Images to train on."""

import pytest
from bad_input.images import RGB, encode


@pytest.fixture
def folder(tmp_path):
    """Four images of two classes, in ``data/images``."""
    for label in ('cat', 'dog'):
        (tmp_path / 'data/images' / label).mkdir(parents=True)
        for index in range(2):
            (tmp_path / f'data/images/{label}/{index}.png').write_bytes(encode(RGB))
    return tmp_path
