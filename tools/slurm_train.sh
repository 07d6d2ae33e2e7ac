#!/usr/bin/env bash
# Train with several processes in a SLURM job: slurm_train.sh CONFIG [arguments of vt train ...], for example
#   sbatch --nodes=1 --ntasks-per-node=8 --gpus-per-node=8 --cpus-per-task=8 --requeue --signal=USR1@120 \
#       tools/slurm_train.sh configs/vt_resnet/vt-resnet18_8xb32-90e_in1k.py
# or with SRUN_ARGS='--partition=gpu --ntasks=8 ...' outside of a job. One task is one process; one fails, all end.
set -euo pipefail
[ $# -ge 1 ] || { echo "usage: $0 CONFIG [arguments of vt train ...]" >&2; exit 2; }
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-${SLURM_CPUS_PER_TASK:-1}}"
read -r -a srun_arguments <<<"${SRUN_ARGS:-}"
exec srun "${srun_arguments[@]}" --kill-on-bad-exit=1 \
    "${PYTHON:-python}" -m vt train "$@" --launcher slurm
