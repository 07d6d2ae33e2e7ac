#!/usr/bin/env bash
# Train with several processes: dist_train.sh CONFIG PROCESSES [arguments of vt train ...]
# Several machines, ports and restarts: see tools/torchrun.sh.
set -euo pipefail
[ $# -ge 2 ] || { echo "usage: $0 CONFIG PROCESSES [arguments of vt train ...]" >&2; exit 2; }
source "$(dirname "${BASH_SOURCE[0]}")/torchrun.sh"
run_processes "$2" train "$1" "${@:3}"
