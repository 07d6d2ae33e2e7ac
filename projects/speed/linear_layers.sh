#!/usr/bin/env bash
# Measure vision transformers with linear layers by the BLAS and by oneDNN beside timm's and torchvision's, a run each:
# linear_layers.sh [FOLDER [arguments of projects.speed.compare ...]]. About 15 minutes on one core. FOLDER is
# projects/speed/measured/linear_layers by default. Then: python -m projects.speed.report
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder="${1:-projects/speed/measured/linear_layers}"
shift $(($# > 0))
python="${PYTHON:-python}"
export CUDA_VISIBLE_DEVICES='' OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
mkdir -p "$folder"
while read -r name references; do
    # shellcheck disable=SC2086 # several names
    "$python" -m projects.speed.compare configs/*/"${name}_16xb64-300e_in1k.py" $references --sizes 224 --batch-sizes 8 \
        --only whole --seconds 40 --token-products blas onednn \
        --out "$folder/${name}_cpu.json" "$@" </dev/null
done <<'MODELS'
deit-small timm:deit_small_patch16_224
swin-tiny timm:swin_tiny_patch4_window7_224 torchvision:swin_t
mvitv2-tiny timm:mvitv2_tiny
vit-base timm:vit_base_patch16_224
MODELS
