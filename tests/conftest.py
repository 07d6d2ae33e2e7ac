"""What holds for every test."""

import os

import pytest
from hypothesis import HealthCheck, settings
from mmengine.registry import DefaultScope

os.environ['ORT_DISABLE_TELEMETRY'] = '1'  # tests that import ONNX Runtime themselves
settings.register_profile(  # the same examples every time, however long one takes
    'vt', derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)
settings.load_profile('vt')


@pytest.fixture(autouse=True, scope='module')
def begin_in_one_scope():
    """Names without a prefix mean MMPretrain's at a module's beginning, whatever ran before in this process.

    A configuration of MMSegmentation sets MMEngine's default scope for all that follows, and so would decide what the
    modules after it build.
    """
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        yield


LONG = (  # modules, the longest first
    'test_configs.py',
    'test_triton.py',
    'test_two_machines.py',
    'test_sweep.py',
    'test_equals_one_process.py',
    'test_import.py',
    'test_command_lines.py',
    'test_bad_images.py',
    'test_user_errors.py',
)


def pytest_collection_modifyitems(items):
    """The longest modules begin first, lest one process be left alone with one of them at the end."""
    items.sort(key=lambda item: LONG.index(item.path.name) if item.path.name in LONG else len(LONG))
