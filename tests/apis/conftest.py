"""Small models, as training runs and ``vt.apis.save_model`` leave them."""

import pytest
from apis.small_models import SMALL, make

from vt import apis


@pytest.fixture(scope='module')
def small(tmp_path_factory):
    """Of each small model its config, its checkpoint, itself, and a sample of its test set."""
    folder = tmp_path_factory.mktemp('some models')
    return {name: make(folder, name) for name in SMALL}


@pytest.fixture(scope='module')
def saved(small, tmp_path_factory):
    """The folders of the small models, by their names."""
    folder = tmp_path_factory.mktemp('saved by us')
    for name, (_, _, model, _) in small.items():
        apis.save_model(model, folder / name)
    return {name: folder / name for name in small}
