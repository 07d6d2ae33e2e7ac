"""The walk over a config meets random mistakes.

It either accepts what it is given or refuses it in one line. With ``VT_FUZZ_MINUTES=10`` in the environment they try
new examples for ten minutes in all and say how many they were.
"""

import os
import time

import pytest
from bad_input.fuzzing import CONFIGS, changed_config, changes
from hypothesis import HealthCheck, Phase, given, settings
from mmengine.config import Config

from vt.engine.checks.config import check_config
from vt.engine.reporting import describe

MINUTES = float(os.environ.get('VT_FUZZ_MINUTES', 0))
SETTINGS = dict(deadline=None, database=None, suppress_health_check=list(HealthCheck))


def assert_accepted_or_refused(read):
    """An error that is not meant for a person fails the test."""
    try:
        read()
    except Exception as error:
        line = describe(error)
        if line is None:
            raise
        assert len(line.splitlines()) == 1, repr(line)


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
def test_configs_with_mistakes(name):
    check_config(Config(changed_config(name, [])))

    def check(drawn):
        assert_accepted_or_refused(lambda: check_config(Config(changed_config(name, drawn))))

    fuzz(changes(name), check, 100, share=0.5)
