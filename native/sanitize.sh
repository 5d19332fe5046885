#!/usr/bin/env bash
# Build the engine with the address and undefined behavior sanitizers, and run the tests of the compiled code on it.
# Usage: native/sanitize.sh [python] [pytest arguments]; the python needs nanobind, numpy, scipy, pytest and hypothesis.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
python=$(realpath -s "$(command -v "${1:-python3}")")
shift || true
PATH=$(dirname "$python"):$PATH  # where cmake may be
build=${ONLINEGP_BUILD:-$root/build/sanitize}
tree=$build/tree

cmake -S "$root" -B "$build" -DONLINEGP_SANITIZE=ON -DCMAKE_BUILD_TYPE=Debug -DPython_EXECUTABLE="$python" >/dev/null
cmake --build "$build" --parallel 2

# the package with the instrumented module beside it, away from the installed one
rm -rf "$tree" && mkdir -p "$tree"
cp -r "$root/src/onlinegp" "$tree/onlinegp"
rm -f "$tree"/onlinegp/engine/_native*.so
cp "$build"/_native*.so "$tree/onlinegp/engine/"

# an editable install puts its own finder first; without it PYTHONPATH decides
cat >"$tree/sitecustomize.py" <<'PYTHON'
import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "ScikitBuild" not in type(finder).__name__]
PYTHON

# leaks of the interpreter itself are not ours
export ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export PYTHONPATH=$tree OPENBLAS_NUM_THREADS=1 PYTHONMALLOC=malloc
preload=$("${CXX:-g++}" -print-file-name=libasan.so):$("${CXX:-g++}" -print-file-name=libubsan.so)
cd "$root"
LD_PRELOAD=$preload "$python" -m pytest tests/engine tests/models/local tests/models/test_expansion.py tests/models/linear tests/models/lms tests/models/affine tests/fleet tests/laws/test_random_trees.py -p no:cacheprovider -q "$@"
