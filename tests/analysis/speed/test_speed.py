"""Timing: what runs, how often, in which order; no test holds a time limit."""

import numpy as np
import torch

from vt.analysis.speed.timing import time_interleaved
from vt.engine.run_record import describe_device

CPU = torch.device('cpu')


def test_steps_run_in_turn():
    calls = []
    steps = {'a': lambda: calls.append('a'), 'b': lambda: calls.append('b')}
    times = time_interleaved(steps, CPU, 'Steps', rounds=5, warmup=2)
    assert calls == ['a', 'b'] * 7
    assert [len(times[name]) for name in 'ab'] == [5, 5]
    assert np.all(times['a'] >= 0)


def test_device_is_named_with_its_threads():
    threads = torch.get_num_threads()
    assert describe_device(CPU).endswith(f', {threads} thread' if threads == 1 else f', {threads} threads')
