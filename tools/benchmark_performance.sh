#!/usr/bin/env bash
# Measure everything that docs/performance.md shows: benchmark_performance.sh [FOLDER [arguments of benchmark.py ...]]
# On two cores of a CPU about 35 minutes. Where there is a GPU, it is measured. A file that is there is left alone, so
# that a stopped run goes on; delete it to measure it anew. FOLDER is docs/benchmarks by default; then:
#   python tools/report.py performance
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder="${1:-docs/benchmarks}"
shift $(($# > 0))
more=("$@")
python="${PYTHON:-python}"
mkdir -p "$folder"

# The file names' end: cpu, or the GPU's name.
device="$("$python" -c "
import torch
print(torch.cuda.get_device_name().lower().replace(' ', '-') if torch.cuda.is_available() else 'cpu')")"

run() { # run TOOL NAME ARGUMENTS...: one run of a tool, unless its file is there
    local tool="$1" out="$folder/$2_$device.json"
    shift 2
    [ -e "$out" ] && { echo "$out is there"; return; }
    echo "$out"
    "$python" "tools/$tool.py" "$@" --out "$out"
}

measure() { # measure NAME ARGUMENTS...: models
    run benchmark "$@" "${more[@]}"
}

fpn=configs/baselines/fpn_r50_4xb8-90k_coco-stuff164k-800x1216.py
vt_fpn=configs/vt_fpn/vt-fpn_r50_4xb8-90k_coco-stuff164k-800x1216.py
segmentors=("$fpn" "$vt_fpn" --num-classes 54 --sizes 800x1216)
resnet() { echo "configs/baselines/resnet$1_8xb32-90e_in1k.py"; }
vt_resnet() { echo "configs/vt_resnet/vt-resnet$1_8xb32-90e_in1k.py"; }

if [ "$device" = cpu ]; then
    neck=(--batch-sizes 1) whole=(--batch-sizes 1) classifier=(--batch-sizes 8)
else
    precisions=(--dtypes bfloat16 float32)
    neck=(--batch-sizes 1 8 64 "${precisions[@]}") whole=(--batch-sizes 1 8 "${precisions[@]}")
    classifier=(--batch-sizes 1 8 64 "${precisions[@]}")
fi
# timm's ResNets too, where timm is installed.
has_timm="$("$python" -c "import importlib.util as util; print(util.find_spec('timm') and 'yes' or '')")"

# Inference as deployed: normalisations folded into the convolutions.
folded=(--fuse-conv-bn --kinds inference --no-memory)

measure necks_800x1216 "${segmentors[@]}" "${neck[@]}" --only neck
measure segmentors_800x1216 "${segmentors[@]}" "${whole[@]}" --only whole
for depth in 18 34 50 101; do
    [ "$device" != cpu ] || measure "resnet$depth-folded" "$(resnet $depth)" "$(vt_resnet $depth)" "${folded[@]}" \
        --sizes 224 --seconds 40 --rounds 60 "${classifier[@]}"
    measure "resnet$depth" "$(resnet $depth)" "$(vt_resnet $depth)" "torchvision:resnet$depth" \
        ${has_timm:+"timm:resnet$depth"} --sizes 224 --seconds 75 --rounds 60 "${classifier[@]}"
done
few=(--kinds inference --no-memory --seconds 30)
measure scaling_necks "$fpn" "$vt_fpn" --only neck --batch-sizes 1 --sizes 512 724 1024 1448 2048 "${few[@]}"
measure scaling_resnets "$(resnet 18)" "$(vt_resnet 18)" --batch-sizes 1 --sizes 224 320 448 640 896 1344 "${few[@]}"
tokens=(--tokens 8 16 32 64 128 "${few[@]}")
measure tokens_necks "$fpn" "$vt_fpn" --only neck --batch-sizes 1 --sizes 800x1216 "${tokens[@]}"
measure tokens_resnets "$(resnet 18)" "$(vt_resnet 18)" --batch-sizes 8 --sizes 224 "${tokens[@]}"
if [ "$device" = cpu ]; then
    settings=("${segmentors[@]}" --only neck --batch-sizes 1 --no-memory)
    measure necks-contiguous_800x1216 "${settings[@]}" --memory-formats contiguous
    measure necks-bfloat16_800x1216 "${settings[@]}" --dtypes bfloat16
    measure segmentors-folded_800x1216 "${segmentors[@]}" --only whole --batch-sizes 1 "${folded[@]}"
    measure necks-default-allocator_800x1216 "${settings[@]}" --default-allocator
    run benchmark_startup startup configs/vt_resnet/vt-resnet18_digits.py configs/vt_fpn/vt-fpn_r18_digit-scenes.py
    run benchmark_data data_loading "$(vt_resnet 18)" configs/vt_resnet/vt-resnet18_8xb256-400e-distill_in1k.py \
        --synthetic 256 --decoders cv2 pillow --workers 0 2 --batches 8 --rounds 3
else
    compiled=(--compile off reduce-overhead --dtypes bfloat16 --batch-sizes 1 --no-memory)
    measure necks_800x1216-compiled "${segmentors[@]}" --only neck "${compiled[@]}"
    for depth in 18 50; do
        measure "resnet$depth-compiled" "$(resnet $depth)" "$(vt_resnet $depth)" --sizes 224 "${compiled[@]}"
    done
fi
