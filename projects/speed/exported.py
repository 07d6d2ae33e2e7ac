"""``tools/export.py`` with times of the CPU instead of the clock, for a machine that does other work beside it."""

import runpy
import time
from pathlib import Path

if __name__ == '__main__':
    time.perf_counter = time.process_time
    runpy.run_path(str(Path(__file__).parents[2] / 'tools/export.py'), run_name='__main__')
