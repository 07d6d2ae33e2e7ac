# Sourced by tools/quickstart.sh and tests/run.sh: makes .venv where none is and installs VT with its tested versions.
#
#   install_vt EXTRAS    e.g. install_vt '[tests]'; a second call with nothing changed does nothing
#
# Everything stays inside the repository: caches of pip, PyTorch and matplotlib too.

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
python="$root/.venv/bin/python"

export XDG_CACHE_HOME="$root/.cache" MPLCONFIGDIR="$root/.cache/matplotlib" TORCH_HOME="$root/.cache/torch"
export TORCHINDUCTOR_CACHE_DIR="$root/.cache/inductor" MPLBACKEND=Agg
export PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONUNBUFFERED=1

install_vt() {
    local extras="$1" stamp="$root/.venv/installed$1" state
    state="$(cat "$root/pyproject.toml" "$root/requirements.txt" "$root/constraints.txt" | cksum) $root"
    if [ "$(cat "$stamp" 2>/dev/null)" = "$state" ] && "$python" -c '' 2>/dev/null; then
        return
    fi
    echo 'Installing into .venv: about two minutes and 6 GB the first time'
    # A virtual environment holds absolute paths: one that was moved, or half made, is made anew.
    "$python" -m pip --version >/dev/null 2>&1 || "${PYTHON:-python3}" -m venv --clear "$root/.venv"
    (cd "$root" && "$python" -m pip install --editable ".$extras" --constraint constraints.txt)
    echo "$state" >"$stamp"
}
