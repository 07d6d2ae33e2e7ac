"""Timing and memory: what runs, how often, in which order; no test holds a time limit."""

import numpy as np
import torch

from vt.analysis.speed import describe_device, peak_memory, time_interleaved

CPU = torch.device('cpu')


def test_steps_run_in_turn():
    calls = []
    steps = {'a': lambda: calls.append('a'), 'b': lambda: calls.append('b')}
    times = time_interleaved(steps, CPU, 'Steps', rounds=5, warmup=2)
    assert calls == ['a', 'b'] * 7
    assert [len(times[name]) for name in 'ab'] == [5, 5]
    assert np.all(times['a'] >= 0)


def test_peak_memory_sees_what_a_step_allocates_and_frees():
    def allocate():
        torch.ones(64, 1024, 1024)  # 256 MiB

    before = peak_memory(lambda: None, CPU)
    assert peak_memory(allocate, CPU) - before > 200 * 2**20


def test_device_is_named_with_its_threads():
    assert describe_device(CPU).endswith(f'{torch.get_num_threads()} threads')
