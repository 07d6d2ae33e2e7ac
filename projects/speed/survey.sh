#!/usr/bin/env bash
# Measure the survey's models beside timm's and MMPretrain's of the same name, a run each: survey.sh [arguments
# of benchmark.py ...]. About 25 minutes on two cores. A file that is there is left alone, so that a stopped run goes on;
# delete it to measure it anew. Then: python -m projects.speed.report
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
python="${PYTHON:-python}"
export CUDA_VISIBLE_DEVICES=''
mkdir -p projects/speed/measured/survey

"$python" - <<'MODELS' |
import json

for name, model in json.load(open('docs/reports/survey_models.json'))['models'].items():
    references = [f'{library}:{model[key]}' for library, key in dict(timm='reference', mmpretrain='mmpretrain').items() if key in model]
    if references and name != 'deit-small-distilled':  # whose training step is its teacher's, and DeiT-S otherwise
        print(name, model.get('image_size', 224), *references)
MODELS
    while read -r name size references; do
        out="projects/speed/measured/survey/${name}_cpu.json"
        [ -e "$out" ] && { echo "$out is there"; continue; }
        echo "$out"
        # shellcheck disable=SC2086 # several names
        "$python" -m projects.speed.compare configs/*/"${name}_16xb64-300e_in1k.py" $references --sizes "$size" \
            --batch-sizes 8 --only whole --seconds 45 --out "$out" "$@" </dev/null
    done
