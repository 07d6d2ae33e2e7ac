#!/usr/bin/env bash
# From a clone to a trained VT-ResNet-18 beside the ResNet-18 that it replaces, on real handwritten digits.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
cd "$root"

step() { # step NAME COMMAND...: run it and say how long it took
    local name="$1" start=$SECONDS
    shift
    printf '\n== %s\n' "$name"
    "$@"
    times+=("$(printf '%5d s  %s' $((SECONDS - start)) "$name")")
}

progress() { # progress COMMAND...: leave out what a run logs before its first iteration; its log file has it
    "$@" | sed -u -n '/Epoch(/,$p'
}

train_and_test() { # train_and_test MODEL: a run that was interrupted goes on, a finished one is left alone
    local name="$1"
    step "train $name" progress "$python" -m vt train "$name" --resume
    step "test $name" progress "$python" -m vt test "work_dirs/$name" --benchmark
}

times=()
step 'install' install_vt ''
train_and_test resnet18_digits
train_and_test vt-resnet18-tuned_digits
step 'figure' "$python" -m vt show-tokens work_dirs/vt-resnet18-tuned_digits \
    --out work_dirs/vt-resnet18-tuned_digits/tokens.png
printf '\n'
"$python" -m vt report runs work_dirs/resnet18_digits work_dirs/vt-resnet18-tuned_digits
printf 'Where each token looks: work_dirs/vt-resnet18-tuned_digits/tokens.png\n\nTime of each step:\n'
printf '%s\n' "${times[@]}"
