"""Random mistakes in configs and annotation files end in one line that names what to mend, or in a run.

Each test tries a few examples, always the same. ``VT_FUZZ_MINUTES=10 pytest tests/bad_input/test_fuzz.py`` tries new
ones for ten minutes in all and says how many they were.
"""

import contextlib
import io
import os
import time
import warnings

import pytest
from bad_input.fuzzing import CONFIGS, changed_config, changes, complaint, limits, options, run
from bad_input.fuzzing_annotations import ODD, WRITTEN, annotated, annotations, names, read_annotated
from hypothesis import HealthCheck, Phase, given, settings
from mmengine.runner import runner as mmengine_runner

MINUTES = float(os.environ.get('VT_FUZZ_MINUTES', 0))
CLASSIFIER, SEGMENTOR = CONFIGS
SETTINGS = dict(deadline=None, database=None, suppress_health_check=list(HealthCheck))
STEPS = 'train_dataloader', 'dataset', 'pipeline'
RATES = 'optim_wrapper', 'paramwise_cfg', 'custom_keys'
# What the fuzzer found when the line did not yet name the setting.
FOUND = {
    CLASSIFIER: [
        [(('val_dataloader',), 'add', 3)],
        [(('val_dataloader',), 'set', {})],
        [(('data_preprocessor',), 'add', object)],
        [(('val_dataloader', 'dataset', 'pipeline'), 'delete', None)],
        [(('val_dataloader', 'dataset', 'pipeline', 0, 'interpolation'), 'set', 'Linear')],
        [((*STEPS, 0, 'scale'), 'set', 2.5)],
        [((*STEPS, 0, 'scale'), 'set', {'in_channels': 1})],
        [((*STEPS, 1, 'interpolation'), 'set', {})],
        [((*STEPS, 1, 'magnitude_range'), 'set', [{'a': True}])],
        [((*STEPS, 1, 'magnitude_std'), 'set', ('a', 1))],
        [(('val_cfg',), 'add', [])],
        [(('train_cfg', 'by_epoch'), 'delete', None)],
        [(('log_processor',), 'add', {})],
        [(('default_hooks', 'checkpoint'), 'set', {1, 2})],
        [(('val_dataloader', 'dataset', 'pipeline', 1), 'delete', None)],
        [((*STEPS, 1), 'copy', ('val_dataloader', 'dataset', 'pipeline', 1))],
        [(('train_dataloader', 'dataset', 'indices'), 'copy', ('model', 'backbone', 'strides'))],
    ],
    SEGMENTOR: [
        [(('default_scope',), 'rename', None)],
        [(('load_from',), 'copy', ('norm_cfg', 'type'))],
        [(('model',), 'copy', ('norm_cfg',))],
        [(('default_scope',), 'set', ({}, 'x')), (('visualizer', 'vis_backends'), 'option', (object, True))],
        [(('train_cfg',), 'set', {'depth': 1, 'type': {'a': 1}})],
        [(('train_cfg',), 'set', {'depth': 1})],
        [(('val_evaluator', 'iou_metrics', 0), 'delete', None)],
        [((*RATES, 'neck.tokenizers', 'lr_mult'), 'set', (None, 1))],
        [((*RATES, 'neck.projectors'), 'set', (False, object))],
        [(('log_processor',), 'add', {})],
    ],
}


@pytest.fixture(scope='module', autouse=True)
def known_environment():
    """mmengine asks compilers for their versions at the start of each run; once is enough here."""
    known = mmengine_runner.collect_env()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mmengine_runner, 'collect_env', lambda: dict(known))
        yield


def assert_handled(attempt, drawn):
    """Run something bad; its error has a good line."""
    with limits(), warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter('ignore')
        error = attempt()
        found = None if error is None else complaint(error, drawn)
    if found:
        raise AssertionError(found) from error


def fuzz(strategy, check, examples, share):
    """Check drawn examples: ``examples`` of them, or new ones for a share of ``VT_FUZZ_MINUTES``."""
    end, tried = time.monotonic() + 60 * MINUTES * share, 0
    phases = [Phase.generate, Phase.shrink]
    while True:

        @settings(**SETTINGS, max_examples=examples, derandomize=not MINUTES, phases=phases)
        @given(strategy)
        def check_some(drawn):
            nonlocal tried
            tried += 1
            check(drawn)

        check_some()
        if time.monotonic() >= end:
            print(f'{tried} examples')
            return


@pytest.mark.parametrize('name', CONFIGS)
def test_configs_with_mistakes(name, tmp_path):
    def check(drawn):
        assert_handled(lambda: run(changed_config(name, drawn), tmp_path, options(drawn)), drawn)

    for drawn in FOUND[name]:
        check(drawn)
    fuzz(changes(name), check, 40, share=0.4)


def test_a_config_without_mistakes(tmp_path):
    for name in CONFIGS:
        with limits(), contextlib.redirect_stdout(io.StringIO()):
            assert run(changed_config(name, []), tmp_path, {}) is None


@pytest.mark.parametrize('kind', ['labels', 'names'])
def test_annotation_files_with_mistakes(kind, tmp_path):
    config = annotated(kind, tmp_path)

    def check(content):
        (tmp_path / WRITTEN).write_bytes(content)
        assert_handled(lambda: read_annotated(config), [(names(content), 'set', content)])

    for content in ODD:
        check(content)
    fuzz(annotations(kind), check, 60, share=0.1)
