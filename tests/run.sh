#!/usr/bin/env bash
# Make the environment and run the whole test suite; arguments go to pytest.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../tools/environment.sh"
cd "$root"
install_vt '[tests]'
"$python" -m ruff check .
"$python" -m ruff format --check .
"$python" -m pytest --basetemp "$root/.cache/pytest" "$@"
