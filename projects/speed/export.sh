#!/usr/bin/env bash
# Export models, compare, score and time them: what docs/export.md shows. Half an hour on two cores, most of it training.
# Models of small data are trained briefly; those at 224x224 have the weights that the configs start from. Then:
# python -m projects.speed.report
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
python="${PYTHON:-python}"
export CUDA_VISIBLE_DEVICES='' PYTHONPATH="$PWD"
folder=work_dirs/exported
mkdir -p "$folder" projects/speed/measured/export

measure() { # NAME CHECKPOINT OPTIONS
    "$python" -m projects.speed.exported "$1" "$2" --benchmark --out-dir "$folder" --out "projects/speed/measured/export/$1_cpu.json" \
        program onnx int8 openvino "${@:3}" </dev/null
}

train() { # CONFIG OPTIONS
    "$python" tools/train.py "configs/$1.py" --work-dir "$folder/$(basename "$1")" --cfg-options "${@:2}"
}

train vt_resnet/vt-resnet18-half_digits train_cfg.max_epochs=10
measure vt-resnet18-half_digits "$folder/vt-resnet18-half_digits/epoch_10.pth" --accuracy
train deit/deit-small_digits train_cfg.max_epochs=4
measure deit-small_digits "$folder/deit-small_digits/epoch_4.pth" --accuracy
train vt_fpn/vt-fpn_r18_digit-scenes train_cfg.max_iters=300 train_cfg.val_interval=300
measure vt-fpn_r18_digit-scenes "$folder/vt-fpn_r18_digit-scenes/iter_300.pth" --accuracy 100

for name in resnet18_8xb32-90e_in1k vt-resnet18_8xb32-90e_in1k; do
    "$python" - "$name" "$folder/$name.pth" <<'WEIGHTS'
import sys

import torch

from vt import apis

torch.manual_seed(0)
model = apis.get_model(sys.argv[1])
model.init_weights()
torch.save(dict(state_dict=model.state_dict()), sys.argv[2])
WEIGHTS
    images=()
    case "$name" in
    *in1k)
        images=(--inputs docs/figures/china.jpg docs/figures/batch.jpg)
        images+=(--calibrate docs/figures/{china,batch,labels}.jpg projects/relations/figures/tasks.jpg)
        ;;
    esac
    measure "$name" "$folder/$name.pth" "${images[@]}"
done
"$python" -m docs.reports layout projects/speed/measured/export/*.json
