"""Which block sizes, numbers of warps and pipeline stages the Triton kernels choose from.

Letters as in ``triton_kernels.py``.
"""

from functools import partial

import triton

from . import triton_backward_kernels as backward
from . import triton_kernels as forward
from .triton_sizes import is_interpreted

LONG_ROW = 2048  # bytes of a pixel, from which on more warps share it and one stage of a pipeline may be all that fits
TUNING_KEY = ['C', 'L', 'PIXEL_MAJOR', 'ALIGNMENT', 'PRECISION', 'size_class']
CONFIGURATIONS = [
    triton.Config({'BLOCK_P': pixels}, num_warps=warps, num_stages=stages)
    for pixels in (16, 32, 64, 128)
    for warps in (4, 8, 16)
    for stages in (1, 2, 3)
]


def prune(
    max_elements: dict[int, int], configs: list[triton.Config], arguments: dict, **constants
) -> list[triton.Config]:
    """The configurations worth a measurement: threads busy, but not so much that registers run out.

    Args:
        max_elements: how many numbers of a block of pixels a thread may hold, by their size in bytes.
        configs: all configurations.
        arguments: the tensors and numbers of the launch.
        **constants: the rest, among them ``BLOCK_C``.
    """
    itemsize = arguments['pixels'].itemsize
    long = constants['BLOCK_C'] * itemsize >= LONG_ROW

    def is_worth_it(config: triton.Config) -> bool:
        pixels, warps = config.kwargs['BLOCK_P'], config.num_warps
        elements = pixels * constants['BLOCK_C'] // (32 * warps)
        busy = elements >= 32 or (pixels, warps) == (128, 4)  # maps of few channels keep no thread busy
        suits = warps > 4 if long else warps < 16 and config.num_stages > 1
        return busy and elements <= max_elements[itemsize] and suits

    return [config for config in configs if is_worth_it(config)]


def tuned(kernel: triton.JITFunction, max_elements: dict[int, int]) -> triton.runtime.Autotuner:
    """A kernel that takes the fastest of its configurations, measured at the first call of each size."""
    configs = [triton.Config({'BLOCK_P': 64})] if is_interpreted() else CONFIGURATIONS  # nothing to measure there
    by = {'early_config_prune': partial(prune, max_elements)}
    return triton.autotune(configs, TUNING_KEY, prune_configs_by=by, cache_results=True)(kernel)


tokenize_kernel = tuned(forward.tokenize_kernel, {2: 128, 4: 64})
project_kernel = tuned(forward.project_kernel, {2: 64, 4: 64})
tokenize_backward_kernel = tuned(backward.tokenize_backward_kernel, {2: 64, 4: 32})
project_backward_kernel = tuned(backward.project_backward_kernel, {2: 64, 4: 32})
tokenize_attention_backward_kernel = tuned(backward.tokenize_attention_backward_kernel, {2: 64, 4: 64})
project_attention_backward_kernel = tuned(backward.project_attention_backward_kernel, {2: 64, 4: 64})
