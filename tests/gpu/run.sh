#!/usr/bin/env bash
# The acceptance on a GPU: builds roofprof in a folder of its own, or takes a wheel, runs every part as a process with a
# time limit, writes three files to $OUT: results.json, recorded.tar.gz, log.txt. At most eight minutes, without a network.
# README.md beside this says more.
#
#   OUT=out/gpu      results, and what was recorded         PYTHON=python3   the one that has torch with CUDA
#   BUILD=/tmp/...   what is built, and the parts' logs:    DEADLINE=470     seconds for everything
#                    not in $OUT
#   ONLY=.           a regex of parts                       WHEEL=           of roofprof for this torch: build nothing
#   INSTALLED=       a folder with a built roofprof, as a wheel (ACCEPTANCE_CPP: the C++ program)
#
# Exit code 0: everything passed, or there is no GPU. 1: something failed.
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
OUT=${OUT:-$root/out/gpu}
mkdir -p "$OUT" || exit 1
OUT=$(cd "$OUT" && pwd)
BUILD=${BUILD:-${TMPDIR:-/tmp}/roofprof-gpu-$(id -u)}
PYTHON=${PYTHON:-python3}
DEADLINE=${DEADLINE:-470}
ONLY=${ONLY:-.}
PARTS=$BUILD/parts
RECORDED=$BUILD/recorded
export PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1

say() { echo "[$SECONDS s] $*"; }
stop() { echo "tests/gpu: $*"; exit 1; }
mkdir -p "$BUILD" || stop "the build folder cannot be made; set BUILD to one that can"
BUILD=$(cd "$BUILD" && pwd)
case $BUILD/ in "$OUT"/*) stop "BUILD lies in OUT ($OUT), which is for results alone: set BUILD to another folder" ;; esac

# ---- is there a GPU, and can anything be built

command -v "$PYTHON" >/dev/null || stop "$PYTHON is not there; set PYTHON to the Python that has torch"
PYTHON=$(command -v "$PYTHON")
PYTHON=$(cd "$(dirname "$PYTHON")" && pwd)/$(basename "$PYTHON")  # CMake is given it, and works elsewhere
gpu=$(timeout -k 5 60 "$PYTHON" - <<'PYTHON_CODE'
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
if [ -n "${WHEEL:-}" ]; then
  [ -f "$WHEEL" ] || stop "WHEEL is no file: $WHEEL"
  INSTALLED=$BUILD/wheel
  rm -rf "$INSTALLED"
  "$PYTHON" -m zipfile -e "$WHEEL" "$INSTALLED" || stop "WHEEL cannot be unpacked: $WHEEL"
fi
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
  "$CMAKE" -S "$root" -B "$BUILD/cmake" "${generator[@]}" "-DPython_EXECUTABLE=$(command -v "$PYTHON")" -DROOFPROF_TESTS=OFF &&
    "$CMAKE" --build "$BUILD/cmake" --parallel "$jobs" --target roofprof_package &&
    mkdir -p "$SITE" &&
    (cd "$root/python" && tar -c --exclude='_C*.so' --exclude=_build_info.py --exclude=__pycache__ --exclude=roofprof/lib \
      --exclude=roofprof/include --exclude=roofprof/share roofprof) | tar -x -C "$SITE" &&
    "$CMAKE" --install "$BUILD/cmake" --prefix "$SITE/roofprof"
}
# What the part cpp needs: without it that says so.
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
  collect
  return "$code"
}
# Files for $OUT, which are written anew after each part.
collect() {
  summary --quiet
  cat "$PARTS"/*.log >"$OUT/log.txt" 2>/dev/null
  tar -czf "$OUT/recorded.tar.gz" -C "$BUILD" recorded
}
left() { local all=$((DEADLINE - SECONDS)); echo $((all < $1 ? (all > 1 ? all : 1) : $1)); }

if [ -n "${INSTALLED:-}" ]; then
  SITE=$(cd "$INSTALLED" && pwd) || exit 1
else
  SITE=$BUILD/site
  say "building in $BUILD"
  export -f build build_program
  export root BUILD SITE CMAKE NINJA PYTHON
  timeout -k 5 "$(left 300)" bash -c 'set -o pipefail; build' >"$PARTS/build.log" 2>&1
  code=$?
  if [ "$code" -ne 0 ]; then
    echo "build $code $SECONDS" >>"$PARTS/index"
    collect
    tail -30 "$PARTS/build.log"
    [ "$code" -ne 124 ] || stop "roofprof was not built within $SECONDS seconds; the whole log is in $OUT/log.txt"
    stop "roofprof could not be built; the whole log is in $OUT/log.txt"
  fi
fi
export PYTHONPATH=$SITE:$PYTHONPATH
say "built"

# ---- the parts, what tells most first

part() { ask "$1" "$2" "$PYTHON" -m acceptance "$1" "$PARTS" "$RECORDED"; }
part environment 60
part bare 100
part sustained 70
part observing 80
part training 60
part replays 120
part ncu 60
part times 60
part traffic 100
part sums 100
part roofs 90
if [ -z "${INSTALLED:-}" ] && [[ cpp =~ $ONLY ]]; then
  timeout -k 5 "$(left 90)" bash -c build_program >"$PARTS/build_cpp.log" 2>&1 && export ACCEPTANCE_CPP=$BUILD/cpp/profile_on_gpu
fi
part cpp 60
part overhead 190

# ---- put together

collect
summary
code=$?
say "results: $OUT/results.json; recorded: $OUT/recorded.tar.gz; what the parts printed: $OUT/log.txt"
exit "$code"
