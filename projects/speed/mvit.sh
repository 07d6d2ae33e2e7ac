#!/usr/bin/env bash
# Measure multiscale vision transformers beside the same of torchvision, timm and MMPretrain, and beside ViT, a run each:
# mvit.sh [arguments of projects.speed.compare ...]. A file that is there is left alone; delete it to measure it anew. Then:
# python -m projects.speed.report
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
python="${PYTHON:-python}"
export CUDA_VISIBLE_DEVICES=''
folder=projects/speed/measured/mvit
mkdir -p "$folder"

measure() { # measure NAME SIZE BATCH MODEL ...: the first model is ours
    local out="$folder/$1_cpu.json"
    [ -e "$out" ] && { echo "$out is there"; return; }
    echo "$out"
    "$python" -m projects.speed.compare "${@:4}" --sizes "$2" --batch-sizes "$3" --only whole --seconds 90 --out "$out" \
        "${options[@]}"
}

options=("$@")
measure video 16x224x224 1 configs/mvit/mvit-base-16x4_k400.py torchvision:mvit_v1_b
measure video-v2 16x224x224 1 configs/mvitv2/mvitv2-small-16x4_k400.py torchvision:mvit_v2_s
measure video-vit 16x224x224 1 configs/mvit/mvit-base-16x4_k400.py configs/mvit/vit-base-16x4_k400.py
measure image-v2 224 8 configs/mvitv2/mvitv2-tiny_16xb64-300e_in1k.py mmpretrain:mvitv2-tiny_3rdparty_in1k timm:mvitv2_tiny
measure image-vit 224 8 configs/mvit/mvit-base16_in1k.py configs/vit/vit-base_16xb64-300e_in1k.py
