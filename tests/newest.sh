#!/usr/bin/env bash
# Run the tests with the newest packages, whatever constraints.txt and requirements.txt allow, in a fresh environment in
# .cache/newest (6 GB). Arguments go to pytest:
#
#   bash tests/newest.sh                 # the whole suite
#   bash tests/newest.sh tests/models    # a part of it
#   TORCH_INDEX=https://download.pytorch.org/whl/nightly/cpu bash tests/newest.sh    # PyTorch's nightly build
#   UPSTREAM=1 bash tests/newest.sh      # with OpenMMLab's own mmengine and mmcv-lite
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../tools/environment.sh"
cd "$root"
export PIP_CONSTRAINT=/dev/null # without pip's own settings of this machine, too
"${PYTHON:-python3}" -m venv --clear .cache/newest
python="$root/.cache/newest/bin/python"
"$python" -m pip install --quiet --editable '.[tests]'
"$python" -m pip install --quiet --upgrade --pre ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} torch torchvision
"$python" -m pip install --quiet --upgrade onedl-mmengine onedl-mmcv onedl-mmpretrain onedl-mmsegmentation
if [ -n "${UPSTREAM:-}" ]; then
    "$python" -m pip uninstall --quiet --yes onedl-mmengine onedl-mmcv
    "$python" -m pip install --quiet --no-deps mmengine mmcv-lite 'setuptools<81' # of later ones pkg_resources is gone
fi
"$python" -m pip freeze
OMP_NUM_THREADS=1 "$python" -m pytest --numprocesses auto --maxprocesses 8 --dist loadscope --no-loadscope-reorder "$@"
