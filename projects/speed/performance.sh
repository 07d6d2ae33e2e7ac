#!/usr/bin/env bash
# Measure everything that projects/speed/performance.md shows: performance.sh [FOLDER [arguments of projects.speed.compare ...]]
# On two cores of a CPU about 40 minutes; for a GPU there is projects/speed/gpu_report.py. A file that is there is left alone, so
# that a stopped run goes on; delete it to measure it anew. FOLDER is projects/speed/measured by default; then:
#   python -m projects.speed.report
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder="${1:-projects/speed/measured}"
shift $(($# > 0))
more=("$@")
python="${PYTHON:-python}"
mkdir -p "$folder"

export CUDA_VISIBLE_DEVICES=''

run() { # run TOOL NAME ARGUMENTS...: one run of a tool, unless its file is there
    local tool="$1" out="$folder/$2_cpu.json"
    shift 2
    [ -e "$out" ] && { echo "$out is there"; return; }
    echo "$out"
    "$python" -m "projects.speed.$tool" "$@" --out "$out"
}

measure() { # measure NAME ARGUMENTS...: models
    run compare "$@" --ceilings "${more[@]}"
}

fpn=configs/baselines/fpn_r50_4xb8-90k_coco-stuff164k-800x1216.py
vt_fpn=configs/vt_fpn/vt-fpn_r50_4xb8-90k_coco-stuff164k-800x1216.py
segmentors=("$fpn" "$vt_fpn" --num-classes 54 --sizes 800x1216)
resnet() { echo "configs/baselines/resnet$1_8xb32-90e_in1k.py"; }
vt_resnet() { echo "configs/vt_resnet/vt-resnet$1_8xb32-90e_in1k.py"; }

# Inference as deployed: normalisations folded into the convolutions.
folded=(--fuse-conv-bn --kinds inference --no-memory)

measure necks_800x1216 "${segmentors[@]}" --batch-sizes 1 --only neck
measure segmentors_800x1216 "${segmentors[@]}" --batch-sizes 1 --only whole
ade20k=4xb4-160k_ade20k-512x512.py
measure systems_512x512 "configs/baselines/fpn_r50_$ade20k" "configs/vt_fpn/vt-fpn_r50_$ade20k" \
    "configs/vt_fpn/vt-fpn_vt-r50_$ade20k" --batch-sizes 1 --sizes 512x512 --only whole
measure small configs/{baselines/resnet18,vt_resnet/vt-resnet18}-half_digits.py --sizes 32 64 --batch-sizes 1 32 \
    --seconds 20 --no-memory
for depth in 18 34 50 101; do
    measure "resnet$depth-folded" "$(resnet $depth)" "$(vt_resnet $depth)" "${folded[@]}" \
        --sizes 224 --seconds 40 --rounds 60 --batch-sizes 8
    measure "resnet$depth" "$(resnet $depth)" "$(vt_resnet $depth)" "torchvision:resnet$depth" \
        --sizes 224 --seconds 75 --rounds 60 --batch-sizes 8
done
few=(--kinds inference --no-memory --seconds 30)
measure scaling_necks "$fpn" "$vt_fpn" --only neck --batch-sizes 1 --sizes 512 724 1024 1448 2048 "${few[@]}"
measure scaling_resnets "$(resnet 18)" "$(vt_resnet 18)" --batch-sizes 1 --sizes 224 320 448 640 896 1344 "${few[@]}"
tokens=(--tokens 8 16 32 64 128 "${few[@]}")
measure tokens_necks "$fpn" "$vt_fpn" --only neck --batch-sizes 1 --sizes 800x1216 "${tokens[@]}"
measure tokens_resnets "$(resnet 18)" "$(vt_resnet 18)" --batch-sizes 8 --sizes 224 "${tokens[@]}"
settings=("${segmentors[@]}" --only neck --batch-sizes 1 --no-memory)
measure necks-contiguous_800x1216 "${settings[@]}" --memory-formats contiguous
measure necks-bfloat16_800x1216 "${settings[@]}" --dtypes bfloat16
measure segmentors-folded_800x1216 "${segmentors[@]}" --only whole --batch-sizes 1 "${folded[@]}"
measure necks-default-allocator_800x1216 "${settings[@]}" --default-allocator
run products products
run startup startup configs/vt_resnet/vt-resnet18_{digits,1xb32-90e_image-folder}.py \
    configs/vt_fpn/vt-fpn_r18_digit-scenes.py --synthetic 128
run loading_steps loading_steps
run inference_parts inference_parts deit-small_16xb64-300e_in1k resnet18_8xb32-90e_in1k vt-resnet18_8xb32-90e_in1k
run data_loading data_loading \
    configs/vt_resnet/vt-resnet{50_8xb32-90e,18_8xb256-400e-distill,50_8xb32-90e-torchvision}_in1k.py \
    configs/deit/deit-small_16xb64-300e_in1k.py configs/t2t_vit/t2t-vit-t-14_8xb64-310e-authors_in1k.py \
    configs/mvitv2/mvitv2-tiny_64xb64-300e-authors_in1k.py configs/vt_fpn/vt-fpn_r50_4xb4-160k_ade20k-512x512.py \
    configs/vt_resnet/vt-resnet18_fashion-mnist.py --synthetic 128 --workers 1 2 --batches 6 \
    --rounds 5 --max-batch-size 64
run data_loading clip_loading configs/mvit/mvit-base-16x4_k400.py configs/mvitv2/mvitv2-small-16x4_k400.py \
    --synthetic 16 --workers 1 2 --batches 6 --rounds 5 --max-batch-size 8
