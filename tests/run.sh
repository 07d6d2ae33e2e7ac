#!/usr/bin/env bash
# Make the environment and run the whole test suite; arguments go to pytest.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../tools/environment.sh"
cd "$root"
install_vt '[tests]'
"$python" -m ruff check .
"$python" -m ruff format --check .
"$python" -m deptry vt
mkdir -p "$root/.cache"
unset PYTHONDONTWRITEBYTECODE # hundreds of processes would compile the same files
# A worker a core, each with one thread: threads of several processes on one core wait for each other.
OMP_NUM_THREADS=1 "$python" -m pytest --numprocesses auto --maxprocesses 8 --dist loadscope --no-loadscope-reorder --basetemp "$root/.cache/pytest" "$@"
rm -rf "$root/.cache/pytest" # 6 GB that only a failure needs
