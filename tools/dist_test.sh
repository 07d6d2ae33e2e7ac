#!/usr/bin/env bash
# Test with several processes: dist_test.sh CONFIG CHECKPOINT PROCESSES [arguments of vt test ...]
# Several machines and ports: see tools/torchrun.sh.
set -euo pipefail
[ $# -ge 3 ] || { echo "usage: $0 CONFIG CHECKPOINT PROCESSES [arguments of vt test ...]" >&2; exit 2; }
source "$(dirname "${BASH_SOURCE[0]}")/torchrun.sh"
run_processes "$3" test "$1" "$2" "${@:4}"
