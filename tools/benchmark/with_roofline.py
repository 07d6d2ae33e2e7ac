"""Compare models as ``tools/benchmark.py``, with the machine's ceilings and the roofline, for docs/performance.md."""

import runpy
from pathlib import Path

from roofline import Roofline

from vt.commands.arguments import run

if __name__ == '__main__':
    args = runpy.run_path(str(Path(__file__).parents[1] / 'benchmark.py'))['parse_args']()
    args.meter = Roofline
    run('benchmarks:benchmark', args)
