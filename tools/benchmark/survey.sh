#!/usr/bin/env bash
# Measure the survey's systems beside timm's and MMPretrain's of the same name, a run each: survey.sh [arguments
# of benchmark.py ...]. About 25 minutes on two cores. A file that is there is left alone, so that a stopped run goes on;
# delete it to measure it anew. Then: python -m docs.reports
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
python="${PYTHON:-python}"
export CUDA_VISIBLE_DEVICES=''
mkdir -p docs/benchmarks/survey

"$python" - <<'SYSTEMS' |
import json

for name, system in json.load(open('docs/reports/survey_systems.json'))['systems'].items():
    twins = [f'{library}:{system[key]}' for library, key in dict(timm='twin', mmpretrain='mmpretrain').items() if key in system]
    if twins and name != 'deit-small-distilled':  # whose training step is its teacher's, and DeiT-S otherwise
        print(name, system.get('image_size', 224), *twins)
SYSTEMS
    while read -r name size twins; do
        out="docs/benchmarks/survey/${name}_cpu.json"
        [ -e "$out" ] && { echo "$out is there"; continue; }
        echo "$out"
        # shellcheck disable=SC2086 # several names
        "$python" tools/benchmark.py configs/*/"${name}_16xb64-300e_in1k.py" $twins --sizes "$size" \
            --batch-sizes 8 --only whole --seconds 45 --out "$out" "$@" </dev/null
    done
