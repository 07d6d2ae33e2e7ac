"""What holds for every test."""

import pytest
from mmengine.registry import DefaultScope


@pytest.fixture(autouse=True, scope='module')
def begin_in_one_scope():
    """Names without a prefix mean MMPretrain's at a module's beginning, whatever ran before in this process.

    A configuration of MMSegmentation sets MMEngine's default scope for all that follows, and so would decide what the
    modules after it build.
    """
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        yield
