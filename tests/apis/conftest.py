"""Small models, as ``vt.apis.save_model`` leaves them."""

import pytest
from apis.small_models import SMALL

from vt import apis


@pytest.fixture(scope='module')
def saved(small_model, tmp_path_factory):
    """The folders of the small models, by their names."""
    folder = tmp_path_factory.mktemp('saved by us')
    for name in SMALL:
        apis.save_model(small_model(name)[2], folder / name)
    return {name: folder / name for name in SMALL}
