#!/usr/bin/env bash
# Train the ablations on the embedded data: run_ablations.sh [SEED ...] (default: 0 1 2).
# One run a core at a time; a finished run is left alone, an interrupted one goes on. Work directories: work_dirs/ablations.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ $# -gt 0 ] || set -- 0 1 2
jobs="${JOBS:-$(nproc)}"

# Runs beside each other have one thread each; glibc keeps its memory instead of asking for it in every step.
export OMP_NUM_THREADS=1
export GLIBC_TUNABLES=glibc.malloc.mmap_threshold=4294967296:glibc.malloc.trim_threshold=8589934592:glibc.malloc.hugetlb=1

train() { # train SEED CONFIG
    local work_dir
    work_dir="work_dirs/ablations/$(basename "$2" .py)_seed-$1"
    [ -e "$work_dir/training.json" ] && return
    echo "$work_dir"
    mkdir -p "$work_dir"
    "${PYTHON:-python}" tools/train.py "$2" --work-dir "$work_dir" --resume --cfg-options "randomness.seed=$1" \
        >"$work_dir/output.txt" 2>&1 || { tail -n 3 "$work_dir/output.txt"; return 255; }
}
export -f train

# Seed by seed, so that a stop leaves whole tables of fewer seeds.
{
    for seed in "$@"; do
        for data in twin-digits digits; do
            printf "$seed %s\\n" configs/{baselines/resnet18,vt_resnet/vt-resnet18}-half_"$data".py \
                configs/ablations/*/*-half_*_"$data".py
        done
    done
    for seed in "$@"; do
        printf "$seed %s\\n" configs/{baselines/fpn,vt_fpn/vt-fpn}_r18_relational-scenes.py
    done
} | xargs --max-procs "$jobs" --max-lines=1 bash -c 'train $0 $1'
