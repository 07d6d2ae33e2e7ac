"""Peak memory of a step: the model's own, without that of libraries and other models."""

import gc
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import torch

from vt.engine.speed_settings import give_back_freed_memory
from vt.errors import UserError

from .measurement import Setting
from .subject import Subject
from .timing import STATUS, peak_memory, resident_memory
from .workload import Workload


def peak_memories(subject: Subject, part: str, setting: Setting, kinds: tuple[str, ...]) -> dict[str, int]:
    """Bytes at the peak of a step of each kind: weights, inputs, activations, gradients, the optimizer's state.

    On a GPU it is what PyTorch allocates. On a CPU each model has a process of its own, whose allocator gives freed
    memory back at once and which has taken such steps before; the resident memory without the model is taken off.

    Raises:
        UserError: there is neither a GPU nor Linux.
    """
    if torch.device(setting.device).type == 'cuda':
        return _measure(subject, part, setting, kinds)
    if not STATUS.exists():
        raise UserError('peak memory is measured on Linux alone: give --no-memory')
    with ProcessPoolExecutor(1, mp_context=get_context('spawn')) as pool:
        return pool.submit(_measure_on_cpu, subject, part, setting, kinds, torch.get_num_threads()).result()


def _measure_on_cpu(subject: Subject, part: str, setting: Setting, kinds: tuple[str, ...], threads: int) -> dict:
    torch.set_num_threads(threads)
    give_back_freed_memory()
    setting.choose_products()
    _measure(subject, part, setting, kinds)  # what is loaded and made once is there before the count
    return _measure(subject, part, setting, kinds)


def _measure(subject: Subject, part: str, setting: Setting, kinds: tuple[str, ...]) -> dict[str, int]:
    device = torch.device(setting.device)
    gc.collect()
    before = torch.cuda.memory_allocated(device) if device.type == 'cuda' else resident_memory('VmRSS')
    workload = Workload(subject.build(setting), part, setting)  # of the model it keeps the part alone
    peaks = {}
    for kind in kinds:
        step = workload.step(kind)
        step()  # an optimizer makes its state in the first one
        peaks[kind] = peak_memory(step, device) - before
    return peaks
