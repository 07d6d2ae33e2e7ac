#!/usr/bin/env bash
# Export models to every format but AOTInductor, compare and time them: what docs/export.md shows. Ten minutes on two
# cores. Weights are as the configs initialise them: neither speed nor differences hang on training. Then:
# python -m docs.reports
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
python="${PYTHON:-python}"
export CUDA_VISIBLE_DEVICES='' PYTHONPATH="$PWD"
folder=work_dirs/exported
mkdir -p "$folder"
mkdir -p docs/benchmarks/export

for name in resnet18_8xb32-90e_in1k vt-resnet18_8xb32-90e_in1k vt-fpn_r18_digit-scenes deit-small_digits \
    mvit-tiny_moving-digits; do
    checkpoint="$folder/$name.pth"
    "$python" - "$name" "$checkpoint" <<'WEIGHTS'
import sys

import torch

from vt import apis

torch.manual_seed(0)
model = apis.get_model(sys.argv[1])
model.init_weights()
torch.save(dict(state_dict=model.state_dict()), sys.argv[2])
WEIGHTS
    images=()
    case "$name" in *in1k) images=(--inputs docs/tokens.jpg docs/tokens_vt-fpn.jpg) ;; esac
    "$python" tools/export.py "$name" "$checkpoint" --benchmark --out-dir "$folder" "${images[@]}" \
        --out "docs/benchmarks/export/${name}_cpu.json" "$@" </dev/null
done
