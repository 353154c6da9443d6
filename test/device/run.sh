#!/usr/bin/env bash
# Runs the suites that pack.sh has packed, on this machine's devices, or
# measures models beside their peers there. See README.md beside it.
set -uo pipefail

usage() {
  cat <<'EOF'
usage: run.sh [--bench | --sanitize TOOL] [--device NAME]... ARCHIVE.tar.xz

Runs the suites of an archive that pack.sh made, prints a table, and ends with
1 if anything failed. With --sanitize, runs those of ops, pages and sampling on
cuda under a tool of compute-sanitizer (memcheck, racecheck, initcheck,
synccheck); what it finds is a failure. With --bench, measures models of random
weights instead, PyTorch and the GPU's ceilings beside them, and prints tables
in Markdown. --device names what to run on instead of cuda and vulkan, or what
to measure instead of cuda: cpu for a CPU that is not to be had elsewhere.
EOF
}

[[ ${1:-} != -h && ${1:-} != --help ]] || { usage; exit 0; }
bench='' sanitizer=() devices=()
while [[ ${1:-} == -* ]]; do
  case $1 in
    --bench) bench=1; shift ;;
    --device)
      [[ $# -ge 2 ]] || { usage >&2; exit 2; }
      devices+=("$2"); shift 2 ;;
    --sanitize)
      [[ ${2:-} =~ ^(mem|race|init|sync)check$ ]] || { usage >&2; exit 2; }
      sanitizer=("$(command -v compute-sanitizer ||
        echo /usr/local/cuda/bin/compute-sanitizer)" --error-exitcode 1 --tool "$2")
      [[ -x ${sanitizer[0]} ]] || {
        echo "run.sh: error: compute-sanitizer is missing: install the CUDA Toolkit" >&2
        exit 1
      }
      shift 2 ;;
    *) usage >&2; exit 2 ;;
  esac
done
[[ $# -eq 1 ]] || { usage >&2; exit 2; }
fail() { echo "run.sh: error: $*" >&2; exit 2; }
[[ -z $bench || ${#sanitizer[@]} -eq 0 ]] ||
  fail "--bench and --sanitize are for runs of their own"
[[ -z $bench || ${#devices[@]} -le 1 ]] || fail "--bench measures one --device"
[[ ${#sanitizer[@]} -eq 0 || ${devices[*]:-cuda} == cuda ]] ||
  fail "--sanitize is for cuda"

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bench_device=${devices[0]:-${KF_BENCH_DEVICE:-cuda}}
((${#devices[@]})) || read -r -a devices <<< "${KF_DEVICES:-cuda vulkan}"
((${#sanitizer[@]} == 0)) || devices=(cuda)
limit=${KF_SECONDS:-$((bench ? 240 : 470))}
shards=${KF_SHARDS:-$(nproc)}
((shards <= 16)) || shards=16
[[ -f $1 ]] || { printf "run.sh: error: no archive '%s': make one with pack.sh\n" "$1" >&2; exit 1; }
work=$(mktemp -d)
logs=${KF_LOGS:-$work/logs}
mkdir -p "$logs"
tar -C "$work" -xJf "$1" || exit 1

export KF_TEST_ROOT=$work/files KF_TEST_VALIDATION=${KF_TEST_VALIDATION:-0}
export LD_LIBRARY_PATH=$work/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export XDG_CACHE_HOME=$work/cache
unset CI
mkdir "$XDG_CACHE_HOME"
chmod 700 "$XDG_CACHE_HOME"
kf_run=$work/bin/kf-run
failures=0

now() { date +%s.%N; }
left() { printf '%d' $((limit - SECONDS)); }
# within SECONDS COMMAND...: ends it after that, or when the limit is reached.
within() {
  local most=$1
  shift
  (($(left) > most)) || most=$(left)
  ((most > 0)) && timeout -k 5 "$most" "$@"
}

# row SUITE DEVICE PASSED FAILED SKIPPED BEGIN
row() {
  local seconds
  seconds=$(awk -v a="$6" -v b="$(now)" 'BEGIN {printf "%.1f", b - a}')
  printf '%-11s %-8s %7s %7s %7s %8s\n' "$1" "$2" "$3" "$4" "$5" "$seconds"
  failures=$((failures + $4))
}

# sum PATTERN LOG...: the numbers that stand behind the pattern.
sum() {
  local pattern=$1
  shift
  sed -n "s/^\[  $pattern \] \([0-9]*\) test.*/\1/p" "$@" |
    awk '{n += $1} END {print n + 0}'
}

# suite NAME DEVICE FILTER: GoogleTests, in several processes.
suite() {
  local name=$1 device=$2 filter=$3 begin pids=() files=() i code
  local passed failed skipped lost=0
  begin=$(now)
  if (($(left) <= 0)); then
    row "$name" "$device" 0 1 0 "$begin"
    echo "$name on $device did not begin: $limit seconds are over" >> "$logs/lost"
    return
  fi
  for ((i = 0; i < shards; ++i)); do
    files+=("$logs/$name-$device-$i.log")
    GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$i timeout -k 5 "$(left)" \
      "${sanitizer[@]}" "$work/bin/kf_device_suites" --gtest_filter="$filter" \
      > "${files[i]}" 2>&1 &
    pids+=($!)
  done
  for ((i = 0; i < shards; ++i)); do
    wait "${pids[i]}"
    code=$?
    # One that ends without a summary has failed, whatever it was at.
    if ((code != 0)) && ! grep -q '^\[  FAILED  \] [0-9]* test' "${files[i]}"; then
      lost=$((lost + 1))
      echo "$name on $device: exit code $code in" \
        "$(grep '^\[ RUN' "${files[i]}" | tail -n 1)" >> "$logs/lost"
    fi
  done
  passed=$(sum 'PASSED ' "${files[@]}")
  skipped=$(sum 'SKIPPED' "${files[@]}")
  failed=$(($(sum 'FAILED ' "${files[@]}") + lost))
  if ((passed + skipped + failed == 0)); then
    failed=1
    echo "$name on $device: no test is called $filter" >> "$logs/lost"
  fi
  row "$name" "$device" "$passed" "$failed" "$skipped" "$begin"
}

# Commands of kf-run beside what they give on the CPU, in f32.
commands() {
  local device=$1 begin passed=0 failed=0 skipped=0 out=$logs/kf-run-$1
  local cpu=$logs/kf-run-cpu prompt="Once upon a time" id
  begin=$(now)
  mkdir -p "$out" "$cpu"
  same() { # same NAME CHECK COMMAND...: on both devices
    local name=$1 check=$2
    shift 2
    if [[ ! -e $cpu/$name ]]; then
      within 60 "$kf_run" "$@" --device cpu > "$cpu/$name" 2> "$cpu/$name.err"
    fi
    if within 120 "$kf_run" "$@" --device "$device" > "$out/$name" \
      2> "$out/$name.err" && "$check" "$cpu/$name" "$out/$name"; then
      passed=$((passed + 1))
    else
      failed=$((failed + 1))
      echo "kf-run on $device: $name differs from $cpu/$name, or fails:" \
        "$(head -n 1 "$out/$name.err")" >> "$logs/lost"
    fi
  }
  agree_within() { # MOST A B: the numbers of two JSON texts, by MOST at most
    paste <(grep -o '[-0-9.e]\{2,\}' "$2") <(grep -o '[-0-9.e]\{2,\}' "$3") |
      awk -v most="$1" '{d = $1 - $2; if (d < 0) d = -d; if (d > most) bad = 1}
                        END {exit bad || NR == 0}'
  }
  near() { agree_within 0.002 "$@"; }
  # GPUs round several rows to 16 bits for their matrix units.
  nearby() { agree_within 0.05 "$@"; }
  for ((id = 0; id < 16; ++id)); do
    printf '{"prompt": "%s", "n": %d}\n' "${prompt:0:$((5 + id % 12))}" \
      $((20 + id))
  done > "$logs/requests.jsonl"
  same generate cmp generate -p "$prompt" -n 40 --quiet --cache-type f32
  same sampled cmp generate -p "$prompt" -n 12 --quiet --cache-type f32 \
    --temp 0.8 --seed 3
  same gguf cmp generate \
    "$KF_TEST_ROOT/models/kf-stories-gguf/kf-stories-Q8_0.gguf" -p "$prompt" \
    -n 9 --quiet
  same batch16 cmp batch --file "$logs/requests.jsonl" --parallel 16 --quiet \
    --cache-type f32
  same batch1 cmp batch --file "$logs/requests.jsonl" --parallel 1 --quiet \
    --cache-type f32
  same logit near logits --ids 1 --json - --cache-type f32
  same logits nearby logits --ids 1,2,3,4,5,6,7 --json - --cache-type f32
  for id in batch16 batch1; do # reused tokens differ, texts do not
    sed 's/,"prompt_tokens_reused":[0-9]*//' "$out/$id" > "$out/$id.text"
  done
  if cmp -s "$out/batch16.text" "$out/batch1.text"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "kf-run on $device: 16 at once differ from one at a time" >> "$logs/lost"
  fi
  if [[ $device == cuda* ]]; then # a cache of 1008 GiB
    if within 60 "$kf_run" bench llama-3-8b --dummy-weights --weight-type q4_0 \
      --device "$device" -p 0 -n 1 -d 8000 -s 1024 -r 1 > "$out/large" \
      2> "$out/large.err" || ! grep -q '1008.00 GiB .* more than the .* free' \
      "$out/large.err"; then
      failed=$((failed + 1))
      echo "kf-run on $device: a cache that is too large is not refused:" \
        "$(head -n 1 "$out/large.err")" >> "$logs/lost"
    else
      passed=$((passed + 1))
    fi
  fi
  if [[ $device == cuda ]] &&
    (($(grep '^cuda ' "$logs/devices" | grep -vc unavailable) > 1)); then
    if within 120 "$kf_run" generate -p "$prompt" -n 40 --quiet \
      --cache-type f32 --device cuda --tensor-parallel 2 > "$out/ranks" \
      2> "$out/ranks.err" && cmp -s "$out/generate" "$out/ranks"; then
      passed=$((passed + 1))
    elif grep -q 'error: .*no NCCL' "$out/ranks.err"; then
      skipped=1
      head -n 1 "$out/ranks.err" >> "$logs/skipped"
    else
      failed=$((failed + 1))
      echo "kf-run on $device: a text of two GPUs differs from" \
        "$out/generate, or fails: $(head -n 1 "$out/ranks.err")" >> "$logs/lost"
    fi
  fi
  row kf-run "$device" "$passed" "$failed" "$skipped" "$begin"
}

# measure MODEL FORMAT NAME OPTION...: MODEL.FORMAT.NAME.json in $ours.
measure() {
  local name=$1.$2.$3 model=$1 format=$2 code
  shift 3
  if (($(left) < 5)); then
    echo "$name: not begun, $limit seconds are over" >> "$logs/lost"
    failures=$((failures + 1))
    return
  fi
  # What is finished is whole JSON when the limit interrupts the rest.
  timeout -s INT -k 5 "$(left)" "$kf_run" bench "$model" --dummy-weights \
    --weight-type "$format" --device "$bench_device" -r "$repetitions" "$@" \
    -o json > "$ours/$name.json" 2> "$logs/$name.err"
  code=$?
  if ((code != 0)); then
    echo "$name: exit code $code: $(grep -v '^$' "$logs/$name.err" |
      tail -n 1)" >> "$logs/lost"
    failures=$((failures + 1))
    [[ -s $ours/$name.json ]] || rm -f "$ours/$name.json"
  fi
}

# Models of random weights beside PyTorch.
measure_all() {
  local ours=$logs/bench repetitions=${KF_REPETITIONS:-3} models model peers=()
  read -r -a models <<< "${KF_MODELS:-llama-3-8b:bf16 llama-3-8b:q4_k \
    llama-3.2-1b:bf16 llama-3-8b:q8_0 llama-3-8b:q4_0}"
  mkdir -p "$ours"
  rm -f "$ours"/*.json "$logs/lost" "$logs/peers.jsonl"
  if [[ $bench_device == cpu ]]; then
    echo "peers are measured of GPUs alone"
  elif ! command -v python3 > /dev/null; then
    echo "python3 is missing: no peers"
  elif [[ ! -e $here/peers.py ]]; then
    echo "peers.py is not beside run.sh: no peers"
  else
    peers=(python3 "$here/peers.py" --json "$logs/peers.jsonl")
    # It ends by itself; whatever hangs must leave time for ours.
    TORCHINDUCTOR_CACHE_DIR=$work/cache/torch \
      within 90 "${peers[@]}" --seconds "${KF_PEER_SECONDS:-70}" \
      > "$logs/peers.log" 2> "$logs/peers.err" ||
      echo "peers.py: exit code $?: $(tail -n 1 "$logs/peers.err")"
  fi
  for model in "${models[@]}"; do
    measure "${model%:*}" "${model#*:}" short -p "${KF_PROMPTS:-512,2048}" \
      -n "${KF_TOKENS:-64}" -s "${KF_SEQUENCES:-1,16,17,32,64,128,256}"
  done
  for model in "${models[@]}"; do
    measure "${model%:*}" "${model#*:}" long -p 0 -n 64 \
      -d "${KF_DEPTHS:-8000}"
  done
  if ((${#peers[@]})); then
    "${peers[@]}" --no-measure --ours "$ours" || failures=$((failures + 1))
  else
    printf '\n| model, weights | test | sequences | tok/s |\n| --- | --- | --- | --- |\n'
    awk '{gsub(/[",]/, ""); value[$1] = $2}
         /^    test:/ {test = $0; sub(/.*test: /, "", test)}
         /^  }/ {n = split(FILENAME, path, "/"); sub(/\.[a-z]*\.json/, "", path[n])
                 printf "| %s | %s | %s | %.1f |\n", path[n], test,
                        value["n_sequences:"], value["avg_ts:"]}' "$ours"/*.json
  fi
}

printf 'revision %s\n' "$(cat "$work/revision")"
if [[ -n $bench ]]; then
  "$kf_run" devices > "$logs/devices"
  grep "^$bench_device" "$logs/devices"
  measure_all
  printf '\n%d seconds\n' "$SECONDS"
  if ((failures > 0)); then
    printf '%d not measured; logs are in %s\n' "$failures" "$logs"
    [[ ! -e $logs/lost ]] || cat "$logs/lost"
    exit 1
  fi
  [[ -n ${KF_LOGS:-} ]] || rm -rf "$work"
  exit 0
fi
"$kf_run" devices | tee "$logs/devices"
printf '\n%-11s %-8s %7s %7s %7s %8s\n' suite device passed failed skipped seconds
for device in "${devices[@]}"; do
  if ! grep "^$device " "$logs/devices" | grep -qv unavailable; then
    row devices "$device" 0 1 0 "$(now)"
    continue
  fi
  if ((${#sanitizer[@]} == 0)); then
    suite interface "$device" "Devices/DeviceInterfaceTest.*/$device:Devices/DeviceInterfaceTest.*/${device}_staging"
  fi
  suite blocks "$device" "All/OpConformance.*/blocks_*_$device"
  suite ops "$device" "All/OpConformance.*_$device-*/blocks_*"
  suite pages "$device" "Devices/PagedCacheTest.*/$device"
  suite sampling "$device" "All/SamplerAgreement.*/${device}_*"
  ((${#sanitizer[@]} == 0)) || continue
  suite steps "$device" "All/Steps.*_${device}"
  suite sequences "$device" "All/ManySequences.*/${device}1"
  suite goldens "$device" "*/GoldenModels.*_${device}"
  [[ $device != cuda ]] || suite ranks cuda "*/Ranked*.*cuda_*"
  [[ $device != cuda ]] ||
    suite training cuda "Functions/Gradients.*OnCuda/*:Devices/Stories.*/cuda"
  suite kf-stories "$device" "All/KfStories.*/$device"
  suite gguf "$device" "All/GgufModels.*_${device}_native"
  # Texts are those that the CPU gives.
  [[ $device == cpu ]] || commands "$device"
done

if ((failures > 0)); then
  printf '\n%d failed; logs are in %s\n' "$failures" "$logs"
  [[ ! -e $logs/lost ]] || cat "$logs/lost"
  grep -h '^========= .*SUMMARY: [1-9]' "$logs"/*.log 2>/dev/null | sort | uniq -c
  grep -h '^\[  FAILED  \] .*ms)$' "$logs"/*.log 2>/dev/null | sort -u | head -n 100
  exit 1
fi
[[ -n ${KF_LOGS:-} ]] || rm -rf "$work"
printf '\nall passed\n'
