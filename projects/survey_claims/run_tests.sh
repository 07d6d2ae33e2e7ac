#!/usr/bin/env bash
# Make the environment and run the tests of this project; arguments go to pytest.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../tools/environment.sh"
cd "$root"
install_vt '[tests]'
OMP_NUM_THREADS=1 "$python" -m pytest projects/survey_claims "$@"
