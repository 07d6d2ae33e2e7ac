# Sourced by tools/dist_train.sh and tools/dist_test.sh.
#
#   run_processes PROCESSES COMMAND ARGUMENTS...    a command of vt in so many processes on this machine
#
# One machine: a free port is found; PORT chooses one. Several machines, the same command on each:
#   NNODES, NODE_RANK, MASTER_ADDR and PORT    a fixed number of machines
#   NNODES=2:4 and RDZV_ENDPOINT=host:port     any number in a range, which may change (elastic)
# MAX_RESTARTS: how often all processes are started again when one fails (default 0).
# SHUTDOWN_TIMEOUT: seconds between a signal that asks to end, which saves, and SIGKILL (default 30).

run_processes() {
    local processes="$1" python="${PYTHON:-python}" meeting
    shift
    # torchrun gives each process one thread unless told otherwise; without a GPU they share the cores here.
    if [ ! -e /dev/nvidia0 ] && [ -z "${OMP_NUM_THREADS:-}" ]; then
        OMP_NUM_THREADS="$("$python" -c "import joblib; print(max(1, joblib.cpu_count(True) // $processes))")"
        export OMP_NUM_THREADS
    fi
    export PET_SHUTDOWN_TIMEOUT="${SHUTDOWN_TIMEOUT:-30}"
    # torchrun hands on its own signals, and the one that SLURM sends early.
    export PET_SIGNALS_TO_HANDLE="${PET_SIGNALS_TO_HANDLE:-SIGTERM,SIGINT,SIGHUP,SIGQUIT,SIGUSR1}"
    # Otherwise processes that are started again find the addresses of those that ended, and may wait for them.
    export TORCH_DISABLE_SHARE_RDZV_TCP_STORE="${TORCH_DISABLE_SHARE_RDZV_TCP_STORE:-1}"
    # A connection that breaks is no news of PyTorch's: the line of the process that failed says why.
    export TORCH_CPP_LOG_LEVEL="${TORCH_CPP_LOG_LEVEL:-ERROR}"
    PORT="${PORT:-${MASTER_PORT:-}}"
    if [ -n "${RDZV_ENDPOINT:-}" ]; then
        meeting=(--rdzv-backend c10d --rdzv-endpoint "$RDZV_ENDPOINT" --rdzv-id "${RDZV_ID:-vt}")
        meeting+=(--nnodes "${NNODES:-1}")
    elif [ -z "$PORT" ] && [ "${NNODES:-1}" = 1 ]; then
        meeting=(--standalone)
    else
        meeting=(--nnodes "${NNODES:-1}" --node-rank "${NODE_RANK:-0}")
        meeting+=(--master-addr "${MASTER_ADDR:-127.0.0.1}" --master-port "${PORT:-29500}")
    fi
    exec "$python" -m vt.engine.run.torchrun "${meeting[@]}" --nproc-per-node "$processes" \
        --max-restarts "${MAX_RESTARTS:-0}" -m vt "$@" --launcher pytorch
}
