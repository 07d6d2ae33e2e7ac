"""What holds for every test."""

import functools
import os

import pytest
from bad_input.small_runs import DIGITS
from forked_tools import leave_configs_unformatted, run_forked
from hypothesis import HealthCheck, settings
from mmengine.registry import DefaultScope

os.environ['ORT_DISABLE_TELEMETRY'] = '1'  # tests that import ONNX Runtime themselves
leave_configs_unformatted()
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


@pytest.fixture(scope='session')
def small_model(tmp_path_factory):
    """A function of a config's name: paths of a small config and of its checkpoint, the model, and a test sample."""
    from apis.small_models import make

    folder = tmp_path_factory.mktemp('small models')
    return functools.cache(lambda name: make(folder, name))


@pytest.fixture(scope='session')
def trained_digits(tmp_path_factory):
    """The checkpoint of a run of ``DIGITS``, a process of its own, in a work directory whose path holds a space."""
    folder = tmp_path_factory.mktemp('a run')
    (folder / 'config.py').write_text(DIGITS)
    result = run_forked('train.py', 'config.py', cwd=folder)
    assert result.returncode == 0, result.stderr
    return folder / 'work_dirs/config/epoch_1.pth'


LONG = (  # modules, the longest first
    'test_configs.py',
    'test_triton.py',
    'test_models.py',
    'test_two_machines.py',
    'test_equals_one_process.py',
    'test_import.py',
    'test_user_errors.py',
)


def pytest_collection_modifyitems(items):
    """The longest modules begin first, lest one process be left alone with one of them at the end."""
    items.sort(key=lambda item: LONG.index(item.path.name) if item.path.name in LONG else len(LONG))
