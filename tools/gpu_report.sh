#!/usr/bin/env bash
# What a GPU tells of VT, in at most nine minutes of an H200: gpu_report.sh [--dry] [FOLDER]
# Tests, kernels, speed, trainings. FOLDER is docs/benchmarks by default; from it
#   python tools/report.py performance
# writes docs/performance.md. A file that is there is left alone, so that a stopped run goes on. What fails is named and
# the rest goes on; what no time is left for is left to the next call. --dry: all of it on the CPU, in the smallest sizes,
# to see that it runs; FOLDER is then work_dirs/gpu_report.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
dry=''
[ "${1:-}" != --dry ] || { dry=yes && shift; }
folder="${1:-${dry:+work_dirs/gpu_report}}"
folder="${folder:-docs/benchmarks}"
python="${PYTHON:-python}"
export PYTHON="$python"
logs=work_dirs/gpu_report/logs
mkdir -p "$folder" "$logs"

if [ "$dry" ]; then
    export CUDA_VISIBLE_DEVICES=''
    device=dry limit=100000 # seconds after which no part begins
    tests=(-m gpu -k 'not killed')
    fpn=configs/baselines/fpn_r18_digit-scenes.py vt_fpn=configs/vt_fpn/vt-fpn_r18_digit-scenes.py
    sizes=(64x96) images=64 batches=(2) few=(1) dtypes=(float32) depths=(18) modes=(off)
    brief=(--rounds 3 --seconds 1 --no-memory)
    amp=(--amp --cfg-options)
    few_digits=(train_cfg.max_epochs=1 train_dataloader.dataset.indices=64 val_dataloader.dataset.indices=32)
    few_scenes=(train_cfg.max_iters=2 train_cfg.val_interval=2 val_dataloader.dataset.indices=8)
else
    device="$("$python" -c "import torch; print(torch.cuda.get_device_name().lower().replace(' ', '-'))" 2>/dev/null)" ||
        { echo 'gpu_report.sh: there is no GPU that PyTorch can use; --dry does the same on the CPU' >&2 && exit 1; }
    limit=430 tests=(-m gpu)
    fpn=configs/baselines/fpn_r50_4xb8-90k_coco-stuff164k-800x1216.py
    vt_fpn=configs/vt_fpn/vt-fpn_r50_4xb8-90k_coco-stuff164k-800x1216.py
    sizes=(800x1216 512x512) images=224 batches=(1 32 256) few=(1 8) dtypes=(bfloat16 tf32 float32) depths=(18 50)
    modes=(off tokens default reduce-overhead)
    brief=(--rounds 30 --seconds 2)
    amp=(--amp --cfg-options optim_wrapper.dtype=bfloat16)
    few_digits=() few_scenes=()
fi
failed=()

part() { # part NAME COMMAND...: a command that writes the file named last, unless that is there or the time is over
    local out="$folder/$1_$device.json" log="$logs/$1.txt" begin=$SECONDS
    [ ! -e "$out" ] || { echo "$1: is there" && return; }
    [ $SECONDS -lt $limit ] || { echo "$1: left to the next call, $limit s are over" && return; }
    "${@:2}" "$out" >"$log" 2>&1 || { failed+=("$1") && tail -n 1 "$log"; }
    echo "$1: $((SECONDS - begin)) s, $log"
}

measure() { part "$1" "$python" tools/benchmark.py "${@:2}" "${brief[@]}" --out; } # measure NAME ARGUMENTS...

train() { # train NAME CONFIG OPTION... FILE: in bfloat16, and its record
    "$python" tools/train.py "$2" --work-dir "work_dirs/gpu_report/$1" "${amp[@]}" "${@:3:$#-3}" &&
        cp "work_dirs/gpu_report/$1/training.json" "${@: -1}"
}

run_tests() { # run_tests FILE: those marked gpu, and how each ended
    local report="$logs/tests.xml" several
    several="$("$python" -c "import importlib.util as util; print('--numprocesses=8' * bool(util.find_spec('xdist')))")"
    "$python" -m pytest tests/ops tests/engine "${tests[@]}" -rs $several --junitxml "$report"
    local code=$?
    "$python" - "$report" "$1" <<'PYTHON'
import json, sys
from xml.etree import ElementTree
cases = [(case, [mark.tag for mark in case]) for case in ElementTree.parse(sys.argv[1]).iter('testcase')]
ends = {f"{case.get('classname')}.{case.get('name')}": (marks or ['passed'])[0] for case, marks in cases}
with open(sys.argv[2], 'w') as file:
    json.dump(ends, file, indent=1)
PYTHON
    return $code
}

segmentors=("$fpn" "$vt_fpn" --num-classes 54 --sizes "${sizes[@]}")
has_timm="$("$python" -c "import importlib.util as util; print('yes' * bool(util.find_spec('timm')))")"
[ "$has_timm" ] || echo 'timm is not installed: its ResNets are skipped'

part tests run_tests
part kernel-times "$python" tools/benchmark_kernels.py --time --out
measure necks_800x1216 "${segmentors[@]}" --only neck --batch-sizes "${few[@]}" --dtypes "${dtypes[@]}"
for depth in "${depths[@]}"; do
    resnet=configs/baselines/resnet${depth}_8xb32-90e_in1k.py
    vt_resnet=configs/vt_resnet/vt-resnet${depth}_8xb32-90e_in1k.py
    peers=("torchvision:resnet$depth" ${has_timm:+"timm:resnet$depth"})
    measure "resnet$depth" "$resnet" "$vt_resnet" "${peers[@]}" --sizes $images --batch-sizes "${batches[@]}" --dtypes "${dtypes[@]}"
done
measure segmentors_800x1216 "${segmentors[@]}" --only whole --batch-sizes "${few[@]}" --dtypes "${dtypes[@]}"
part training-digits train digits configs/vt_resnet/vt-resnet18_digits.py "${few_digits[@]}"
part training-scenes train scenes configs/vt_fpn/vt-fpn_r18_digit-scenes.py "${few_scenes[@]}"
compiled=(--compile "${modes[@]}" --kinds inference --dtypes "${dtypes[0]}" --batch-sizes 1)
measure necks_800x1216-compiled "${segmentors[@]}" --only neck "${compiled[@]}"
measure resnet18-compiled configs/{baselines/resnet18,vt_resnet/vt-resnet18}_8xb32-90e_in1k.py --sizes $images \
    "${compiled[@]}"

[ ${#failed[@]} -eq 0 ] || { echo "failed: ${failed[*]}" && exit 1; }
