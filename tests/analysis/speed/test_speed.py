"""Timing and memory: what runs, how often, in which order; no test holds a time limit."""

import subprocess
import sys

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


# In a fresh process: one that has freed much memory may hold enough of it to allocate without growing.
PEAKS = """
import torch
from vt.analysis.speed.timing import peak_memory

def allocate():
    torch.ones(64, 1024, 1024)  # 256 MiB

print(peak_memory(lambda: None, torch.device('cpu')), peak_memory(allocate, torch.device('cpu')))
"""


def test_peak_memory_sees_what_a_step_allocates_and_frees():
    result = subprocess.run([sys.executable, '-c', PEAKS], capture_output=True, text=True, check=True)
    before, after = map(int, result.stdout.splitlines()[-1].split())
    assert after - before > 200 * 2**20


def test_device_is_named_with_its_threads():
    threads = torch.get_num_threads()
    assert describe_device(CPU).endswith(f', {threads} thread' if threads == 1 else f', {threads} threads')
