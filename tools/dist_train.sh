#!/usr/bin/env bash
# Train with several processes: dist_train.sh CONFIG PROCESSES [arguments of train.py ...]
# NNODES, NODE_RANK, MASTER_ADDR and PORT describe a job of several machines.
set -euo pipefail
[ $# -ge 2 ] || { echo "usage: $0 CONFIG PROCESSES [arguments of train.py ...]" >&2; exit 2; }
config="$1" processes="$2"
shift 2
# torchrun gives each process one thread unless told otherwise; here they share the cores.
: "${OMP_NUM_THREADS:=$("${PYTHON:-python}" -c "import joblib; print(max(1, joblib.cpu_count(True) // $processes))")}"
export OMP_NUM_THREADS
exec "${PYTHON:-python}" -m torch.distributed.run --nproc-per-node "$processes" \
    --nnodes "${NNODES:-1}" --node-rank "${NODE_RANK:-0}" \
    --master-addr "${MASTER_ADDR:-127.0.0.1}" --master-port "${PORT:-29500}" \
    "$(dirname "${BASH_SOURCE[0]}")/train.py" "$config" --launcher pytorch "$@"
