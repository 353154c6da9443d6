#!/usr/bin/env bash
# Runs the conformance suite's cuda cases on this CPU. See README.md beside it.
set -euo pipefail

usage() {
  cat <<'END'
usage: run.sh [OPTION]... BUILD FILTER

Runs BUILD/bin/kf_op_conformance_test --gtest_filter=FILTER with a driver of CUDA
that runs kernels on this CPU.
  --chip sm_80|sm_90a             what the device is; sm_90a by default
  --order fifo|lifo|random:SEED   which thread that can go on does; fifo
  --copies late|now               when cp.async is done; late
  --plant SED                     changes each kernel's PTX by `sed -E SED`
  --log                           a line for each kernel that runs
END
}
fail() {
  echo "run.sh: error: $1" >&2
  exit 2
}

export KF_EMULATOR_CHIP=sm_90a KF_EMULATOR_ORDER=fifo KF_EMULATOR_COPIES=late
export KF_EMULATOR_PLANT='' KF_EMULATOR_LOG=''
while [[ ${1:-} == -* ]]; do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --log) KF_EMULATOR_LOG=1; shift; continue ;;
  esac
  [[ $# -ge 2 ]] || { usage >&2; exit 2; }
  case $1=$2 in
    --chip=sm_80 | --chip=sm_90a) KF_EMULATOR_CHIP=$2 ;;
    --order=fifo | --order=lifo) KF_EMULATOR_ORDER=$2 ;;
    --order=random:*)
      [[ $2 =~ ^random:[0-9]+$ ]] || fail "'$2' has no seed: give a number, as in random:7"
      KF_EMULATOR_ORDER=$2 ;;
    --copies=late | --copies=now) KF_EMULATOR_COPIES=$2 ;;
    --plant=*) KF_EMULATOR_PLANT=$2 ;;
    *) fail "'$1 $2' is no option: run.sh --help lists them" ;;
  esac
  shift 2
done
[[ $# == 2 ]] || { usage >&2; exit 2; }

[[ $(uname -m) == x86_64 ]] || fail "its threads need an x86-64 CPU, this is $(uname -m)"
build=$1 test=$1/bin/kf_op_conformance_test
[[ -x $test ]] || fail "there is no '$test': ninja -C $build kf_op_conformance_test"
KF_EMULATOR_CLANG=$(command -v clang-22 || command -v clang) ||
  fail "neither clang-22 nor clang is in PATH: install clang-22"
KF_EMULATOR_SOURCES=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$KF_EMULATOR_SOURCES/../../.." && pwd)

# In a folder of the build: what was translated once is kept there, under names
# that the sources' sum is a part of.
KF_EMULATOR_LIBRARY=$(cd "$build" && pwd)/cuda-emulator
KF_EMULATOR_CACHE=$KF_EMULATOR_LIBRARY/kernels
KF_EMULATOR_STAMP=$(cat "$KF_EMULATOR_SOURCES"/*.{py,sh,h} | cksum)
export KF_EMULATOR_CLANG KF_EMULATOR_SOURCES KF_EMULATOR_LIBRARY KF_EMULATOR_CACHE
export KF_EMULATOR_STAMP
mkdir -p "$KF_EMULATOR_CACHE"
library=$KF_EMULATOR_LIBRARY/libcuda.so.1
stamp=$(cat "$KF_EMULATOR_SOURCES"/*.{cpp,h} "$root/runtime/devices/Cuda/CudaDriver.h" |
  cksum)
if [[ ! -e $library || $(cat "$library.stamp" 2>/dev/null) != "$stamp" ]]; then
  "$KF_EMULATOR_CLANG" --driver-mode=g++ -std=c++20 -O2 -ffp-contract=off \
    -fno-strict-aliasing -fPIC -shared -fvisibility=hidden -Wall -Wextra "-I$root" \
    -Wl,-soname,libcuda.so.1 "$KF_EMULATOR_SOURCES"/*.cpp -o "$library.$$" -ldl
  mv "$library.$$" "$library"
  echo "$stamp" >"$library.stamp"
fi
export LD_LIBRARY_PATH=$KF_EMULATOR_LIBRARY${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
cases=$("$test" --gtest_list_tests "--gtest_filter=$2" | grep -c '^  .*_cuda ' || true)
[[ $cases -gt 0 ]] || fail "no case on cuda matches '$2': $test --gtest_list_tests names them"
exec "$test" "--gtest_filter=$2"
