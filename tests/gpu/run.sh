#!/usr/bin/env bash
# The acceptance on a GPU: builds roofprof in a folder of its own, runs every part as a process with a time limit, writes
# $OUT/results.json and $OUT/recorded.tar.gz. At most nine minutes, without a network. README.md beside this says more.
#
#   OUT=out/gpu      results, and what was recorded         PYTHON=python3   the one that has torch with CUDA
#   BUILD=$OUT/build what is built, and the parts' logs     DEADLINE=530     seconds for everything
#   ONLY=.           a regex of parts                       INSTALLED=       a folder with a built roofprof: build nothing
#                                                           (ACCEPTANCE_RAW, ACCEPTANCE_CPP: the library, the program)
#
# Exit code 0: everything passed, or there is no GPU. 1: something failed.
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
OUT=${OUT:-$root/out/gpu}
mkdir -p "$OUT" || exit 1
OUT=$(cd "$OUT" && pwd)
BUILD=${BUILD:-$OUT/build}
PYTHON=${PYTHON:-python3}
DEADLINE=${DEADLINE:-530}
ONLY=${ONLY:-.}
PARTS=$BUILD/parts
RECORDED=$BUILD/recorded
export PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1

say() { echo "[$SECONDS s] $*"; }
stop() { echo "tests/gpu: $*"; exit 1; }

# ---- is there a GPU, and can anything be built

command -v "$PYTHON" >/dev/null || stop "$PYTHON is not there; set PYTHON to the Python that has torch"
gpu=$("$PYTHON" - <<'PYTHON_CODE'
import ctypes, os
try:
    cuda = ctypes.CDLL(os.environ.get("ROOFPROF_CUDA_LIB", "libcuda.so.1"))
except OSError:
    raise SystemExit(print("no driver (libcuda.so.1) was found"))
count = ctypes.c_int()
code = cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count))
print("" if code == 0 and count.value else f"the driver answers {code} and has {count.value} devices")
PYTHON_CODE
) || gpu="the driver could not be asked"
if [ -n "$gpu" ]; then
  echo "tests/gpu: there is no GPU here, so nothing was run: $gpu"
  exit 0
fi

missing=()
need() { "${@:2}" >/dev/null 2>&1 || missing+=("$1"); }
of_torch() { "$PYTHON" -c "import torch; v = tuple(map(int, torch.__version__.split('.')[:2])); assert v >= (2, 11)"; }
# pip's programs lie beside Python, not always on the PATH.
tool() { local beside; beside=$(dirname "$(command -v "$PYTHON")")/$1; if [ -x "$beside" ]; then echo "$beside"; else command -v "$1"; fi; }
cplusplus() { printf '#include <bit>\n#include <source_location>\nint main() {}\n' | "${CXX:-g++}" -std=c++20 -fsyntax-only -x c++ -; }
CMAKE=$(tool cmake)
NINJA=$(tool ninja)
need "torch 2.11 or newer for $PYTHON" of_torch
if [ -z "${INSTALLED:-}" ]; then
  need "a C++20 compiler (g++ 11 or newer, or CXX=...)" cplusplus
  need "cmake 3.25 or newer (pip's will do)" "${CMAKE:-false}" --version
  [ -n "$NINJA" ] || need "ninja (pip's will do) or make" command -v make
  need "Python.h (python3-dev)" "$PYTHON" -c 'import os, sysconfig; os.stat(sysconfig.get_path("include") + "/Python.h")'
fi
[ ${#missing[@]} -eq 0 ] || stop "cannot run, as this is missing: $(IFS=';'; echo "${missing[*]}")"

rm -rf "$PARTS" "$RECORDED"
mkdir -p "$PARTS" "$RECORDED" || exit 1
export PYTHONPATH=$root/tests/gpu:$root/tests/fakes
export ROOFPROF_CACHE_DIR=$BUILD/cache  # roofs are measured here and now

# ---- build: what setup.py does, without touching the source tree

build() {
  local generator=(-G "Unix Makefiles") jobs
  [ -n "$NINJA" ] && generator=(-G Ninja "-DCMAKE_MAKE_PROGRAM=$NINJA")
  jobs=$(nproc)
  "$CMAKE" -S "$root" -B "$BUILD/cmake" "${generator[@]}" "-DPython_EXECUTABLE=$(command -v "$PYTHON")" -DROOFPROF_TESTS=OFF \
    -DROOFPROF_ACCEPTANCE=ON &&
    "$CMAKE" --build "$BUILD/cmake" --parallel "$jobs" --target roofprof_package &&
    mkdir -p "$SITE" &&
    (cd "$root/python" && tar -c --exclude='_C*.so' --exclude=_build_info.py --exclude=__pycache__ --exclude=roofprof/lib \
      --exclude=roofprof/include --exclude=roofprof/share roofprof) | tar -x -C "$SITE" &&
    "$CMAKE" --install "$BUILD/cmake" --prefix "$SITE/roofprof"
}
# What only some parts need: without it these say so.
build_raw() { "$CMAKE" --build "$BUILD/cmake" --parallel "$(nproc)" --target raw_device; }
build_program() {
  local generator=(-G "Unix Makefiles")
  [ -n "$NINJA" ] && generator=(-G Ninja "-DCMAKE_MAKE_PROGRAM=$NINJA")
  "$CMAKE" -S "$root/tests/gpu/cpp" -B "$BUILD/cpp" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release \
    "-DCMAKE_PREFIX_PATH=$SITE/roofprof/share/cmake" &&
    "$CMAKE" --build "$BUILD/cpp" --parallel "$(nproc)"
}
summary() { "$PYTHON" -m acceptance.summary "$PARTS" "$OUT/results.json" "$@"; }
# ask NAME LIMIT COMMAND...: a process of its own; results are put together after each, so that there are some whenever
# this is cut short.
ask() {
  local name=$1 limit=$2 left=$((DEADLINE - SECONDS)) started=$SECONDS code
  shift 2
  [[ $name =~ $ONLY ]] || return 0
  [ "$limit" -lt "$left" ] || limit=$left
  say "$name"
  if [ "$limit" -lt 5 ]; then code=124; else timeout -k 5 "$limit" "$@" >"$PARTS/$name.log" 2>&1; code=$?; fi
  echo "$name $code $((SECONDS - started))" >>"$PARTS/index"
  summary --quiet
  return "$code"
}

if [ -n "${INSTALLED:-}" ]; then
  SITE=$(cd "$INSTALLED" && pwd) || exit 1
else
  SITE=$BUILD/site
  say "building in $BUILD"
  export -f build build_program
  export root BUILD SITE CMAKE NINJA PYTHON
  if ! timeout -k 5 300 bash -c 'set -o pipefail; build' >"$PARTS/build.log" 2>&1; then
    echo "build 1 $SECONDS" >>"$PARTS/index"
    summary
    tail -30 "$PARTS/build.log"
    stop "roofprof could not be built; the whole log is $PARTS/build.log"
  fi
fi
export PYTHONPATH=$SITE:$PYTHONPATH
if [ -z "${INSTALLED:-}" ]; then
  export -f build_raw build_program
  if timeout -k 5 60 bash -c build_raw >"$PARTS/raw.log" 2>&1; then
    export ACCEPTANCE_RAW=$BUILD/cmake/tests/gpu/raw/libraw_device.so
  else
    say "the library that asks CUPTI directly was not built: $PARTS/raw.log"
  fi
  if timeout -k 5 120 bash -c build_program >"$PARTS/program.log" 2>&1; then
    export ACCEPTANCE_CPP=$BUILD/cpp/profile_on_gpu
  else
    say "the C++ program was not built: $PARTS/program.log"
  fi
fi
say "built"

# ---- the parts, what matters most first

part() { ask "$1" "$2" "$PYTHON" -m acceptance "$1" "$PARTS" "$RECORDED"; }
part environment 60
part traffic 120
part sums 120
part hardware 120
part questions 120
part cpp 60
part others 100
part roofs 150
part overhead 100
part ncu 120

# ---- put together

cat "$PARTS"/*.log >"$OUT/log.txt" 2>/dev/null
tar -czf "$OUT/recorded.tar.gz" -C "$BUILD" recorded
summary
code=$?
say "results: $OUT/results.json; recorded: $OUT/recorded.tar.gz; what the parts printed: $OUT/log.txt"
exit "$code"
