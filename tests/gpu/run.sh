#!/usr/bin/env bash
# The acceptance on a GPU: runs every part as a process with a time limit and writes three files to $OUT: results.json,
# recorded.tar.gz, log.txt. Seven minutes at most, without a network. README.md beside this says more.
#
#   INSTALLED=       a folder with a built roofprof         ACCEPTANCE_CPP=  the C++ program, or the part cpp is skipped
#   OUT=out/gpu      results, and what was recorded         PYTHON=python3   the one that has torch with CUDA
#   BUILD=/tmp/...   the parts' logs: not in $OUT           DEADLINE=420     seconds for everything
#   ONLY=.           a regex of parts
#
# Exit code 0: everything passed, or there is no GPU. 1: something failed.
set -u
stop() { echo "tests/gpu: $*"; exit 1; }
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
OUT=${OUT:-$root/out/gpu}
BUILD=${BUILD:-${TMPDIR:-/tmp}/roofprof-gpu-$(id -u)}
PYTHON=${PYTHON:-python3}
DEADLINE=${DEADLINE:-420}
ONLY=${ONLY:-.}
[ -n "${INSTALLED:-}" ] || stop "set INSTALLED to a folder with a built roofprof: python/ of this tree, or an unpacked wheel"
mkdir -p "$OUT" "$BUILD" || stop "OUT or BUILD cannot be made"
OUT=$(cd "$OUT" && pwd)
BUILD=$(cd "$BUILD" && pwd)
case $BUILD/ in "$OUT"/*) stop "BUILD lies in OUT ($OUT), which is for results alone: set BUILD to another folder" ;; esac
PARTS=$BUILD/parts
RECORDED=$BUILD/recorded
PYTHONPATH=$(cd "$INSTALLED" && pwd):$root/tests/gpu
export PYTHONPATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
export ROOFPROF_CACHE_DIR=$BUILD/cache  # roofs are measured here and now
rm -rf "$PARTS" "$RECORDED" "$ROOFPROF_CACHE_DIR"
mkdir -p "$PARTS" "$RECORDED"
timeout -k 5 60 "$PYTHON" -m acceptance here || exit $(($? == 3 ? 0 : 1))

# Files for $OUT, which are written anew after each part.
collect() {
  "$PYTHON" -m acceptance summary "$PARTS" "$OUT/results.json" "$@"
  code=$?
  cat "$PARTS"/*.log >"$OUT/log.txt" 2>/dev/null
  tar -czf "$OUT/recorded.tar.gz" -C "$BUILD" recorded
  return "$code"
}

# What tells most first, each with the most seconds that it may take.
while read -r name limit; do
  [[ $name =~ $ONLY ]] || continue
  echo "[$SECONDS s] $name"
  left=$((DEADLINE - SECONDS))
  started=$SECONDS
  code=124
  [ "$DEADLINE" -le 420 ] || limit=$((limit * DEADLINE / 420))
  [ "$limit" -lt "$left" ] || limit=$left
  if [ "$limit" -ge 5 ]; then
    timeout -k 5 "$limit" "$PYTHON" -m acceptance "$name" "$PARTS" "$RECORDED" >"$PARTS/$name.log" 2>&1 </dev/null
    code=$?
  fi
  echo "$name $code $((SECONDS - started))" >>"$PARTS/index"
  collect >/dev/null
done <<'END'
calls 150
traffic 100
roofs 90
training 60
graphs 120
cpp 60
overhead 100
END
collect
code=$?
echo "[$SECONDS s] results: $OUT/results.json; recorded: $OUT/recorded.tar.gz; what the parts printed: $OUT/log.txt"
exit "$code"
