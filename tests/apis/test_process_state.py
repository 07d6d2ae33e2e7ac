"""No function of ``vt.apis`` changes the state of the process, also when several threads call them at once."""

import gc
import logging
import os
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from apis.small_models import SMALL
from mmengine.config.utils import MODULE2PACKAGE
from mmengine.registry import WEIGHT_INITIALIZERS, DefaultScope
from mmengine.runner.checkpoint import CheckpointLoader
from mmpretrain.apis import ModelHub

from vt import apis
from vt.apis import model_zoo

CLASSIFIER, SEGMENTOR, VIDEOS = SMALL
IMAGE = np.zeros((40, 40, 3), np.uint8)


def state():
    """What other code of the process sees."""
    cuda, dnn = torch.backends.cuda, torch.backends.cudnn
    scope = DefaultScope.get_current_instance()
    return dict(
        collector=(gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()),
        loader=(CheckpointLoader.load_checkpoint, dict(CheckpointLoader._schemes)),
        initializers=dict(WEIGHT_INITIALIZERS.module_dict),
        safe_names={*torch.serialization.get_safe_globals()},
        environment=dict(os.environ),
        autocast=[
            (torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind), torch.is_autocast_cache_enabled())
            for kind in ('cpu', 'cuda')
        ],
        cudnn=(dnn.enabled, dnn.benchmark, dnn.deterministic, dnn.allow_tf32),
        attention=(cuda.flash_sdp_enabled(), cuda.mem_efficient_sdp_enabled(), cuda.cudnn_sdp_enabled()),
        precision=torch.get_float32_matmul_precision(),
        deterministic=torch.are_deterministic_algorithms_enabled(),
        threads=torch.get_num_threads(),
        defaults=(torch.get_default_dtype(), torch.get_default_device(), torch.is_grad_enabled()),
        scope=scope and scope.scope_name,
        packages=dict(MODULE2PACKAGE),
        filters=(warnings.filters[:], warnings.showwarning),
        path=sys.path[:],
        output=(sys.stdout, sys.stderr),
        logs={name: each.level for name, each in logging.root.manager.loggerDict.items() if hasattr(each, 'level')},
    )


def assert_unchanged(before, after):
    known = before['logs'].keys()  # a package that is imported adds its own
    after = after | dict(logs={name: after['logs'][name] for name in known})
    assert before == after


CALLS = dict(
    ClassificationInferencer=lambda made: apis.ClassificationInferencer(*made(CLASSIFIER)[:2])(IMAGE),
    SegmentationInferencer=lambda made: apis.SegmentationInferencer(*made(SEGMENTOR)[:2])(IMAGE),
    VideoInferencer=lambda made: apis.VideoInferencer(*made(VIDEOS)[:2]),
    Tokens=lambda made: apis.Tokens({}, {}, {}),
    extract_tokens=lambda made: apis.extract_tokens(made(CLASSIFIER)[2], [IMAGE]),
    find_config=lambda made: apis.find_config(CLASSIFIER),
    get_model=lambda made: [apis.get_model(name) for name in SMALL] + [apis.get_model(*made(CLASSIFIER)[:2])],
    inferencer_of=lambda made: [apis.inferencer_of(*made(name)[:2]) for name in SMALL],
    list_models=lambda made: apis.list_models(),
    register_models=lambda made: apis.register_models.__wrapped__(),  # which is cached
    save_model=lambda made: [
        apis.save_model(made(CLASSIFIER)[2], made(CLASSIFIER)[0].parent / 'saved'),
        apis.get_model(made(CLASSIFIER)[0].parent / 'saved'),
    ],
)


@pytest.fixture(autouse=True, scope='module')
def begin_in_one_scope():
    """There is no default scope and nothing that is frozen at the beginning, as in a process of a person."""
    assert DefaultScope.get_current_instance() is None
    gc.unfreeze()


def test_all_functions_are_called():
    assert CALLS.keys() == {*apis.__all__}


@pytest.mark.parametrize('name', CALLS)
def test_a_call_changes_nothing(name, small_model, monkeypatch):
    """But the two tables to which ``register_models`` adds VT, as a person asks for it; here they are copies."""
    monkeypatch.setattr(ModelHub, '_models_dict', dict(ModelHub._models_dict))
    monkeypatch.setattr(model_zoo, 'MODULE2PACKAGE', {})
    for each in SMALL:
        small_model(each)
    before = state()
    CALLS[name](small_model)
    assert_unchanged(before, state())


def test_nothing_differs_while_other_threads_build_and_read(small_model):
    before, files = state(), [small_model(name)[:2] for name in (CLASSIFIER, SEGMENTOR)]
    with ThreadPoolExecutor(2) as threads:
        works = [threads.submit(lambda file=file: [apis.get_model(*file) for _ in range(5)]) for file in files]
        while not all(work.done() for work in works):
            assert_unchanged(before, state())
    assert all(len(work.result()) == 5 for work in works)
