#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: [OUT=folder] [BUILD=path] [DEVICE=0] [PEER=llama-bench MODEL=file.gguf] [QUICK=1] gpu_day.sh [STEPS]
# Does on a machine with an OpenCL or CUDA device, in at most 25 minutes and without network, what was
# never tried on a GPU, and leaves summary.md, tables, a report, a trace and all logs in OUT. STEPS: numbers
# as 1-3,5 (default: all); `list` names them. What one step made serves the next ones, also of a later
# call, from WORK. A step that fails or has no time left stops no other; SIGTERM ends the running one
# and still leaves what there is. docs/opencl.md, "A day with a GPU", says how to prepare it.
set -u
cd "$(dirname "$0")/../.." || exit 2
OUT=${OUT:-build/gpu-day-out}
WORK=${WORK:-build/gpu-day}
DEVICE=${DEVICE:-0}
MINUTES=${MINUTES:-25}
mkdir -p "$OUT" "$WORK/logs" || exit 2
OUT=$(cd "$OUT" && pwd) WORK=$(cd "$WORK" && pwd)
bin=${BUILD:-$WORK/build}
case $bin in /*) ;; *) bin=$PWD/$bin ;; esac
table=$WORK/table.json
export XDG_CACHE_HOME=$WORK/cache TANDEM_TEST_EFFORT=1
unset TANDEM_TABLE TANDEM_LOG TANDEM_TRACE TANDEM_THREADS TANDEM_CPU

# name and seconds at most; QUICK: a third of them.
steps=(
    "machine 20"
    "build 480"
    "devices 30"
    "suites 240"
    "golden 120"
    "check 180"
    "tune 180"
    "bench 240"
    "ways 240"
    "streaming 180"
    "experts 120"
    "report 120"
    "oracle 150"
    "cuda 300"
    "drivers 120"
    "peer 300"
)

# ---- what steps say: lines of their logs that the summary includes ---------------------------------
figure() { echo "FIGURE: $*"; }
fault() { echo "FAULT: $*"; faults=1; }
absent() { echo "ABSENT: $*"; exit 77; }
faults=0

# A driver without a vendors file (NVIDIA's in a container), and a loader outside of the usual paths.
find_driver() {
    local file place
    for place in /usr/local/nvidia/lib64 /usr/local/nvidia/lib /usr/local/cuda/lib64; do
        [ -d "$place" ] && LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$place
    done
    export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}
    [ -n "${OCL_ICD_VENDORS:-}${OCL_ICD_FILENAMES:-}" ] && return
    # PoCL beside a GPU's driver would be device 0, which the suites take.
    if grep -qs pocl /etc/OpenCL/vendors/*.icd; then
        mkdir -p "$WORK/vendors"
        for file in /etc/OpenCL/vendors/*.icd; do
            grep -q pocl "$file" || { cp "$file" "$WORK/vendors/"; export OCL_ICD_VENDORS=$WORK/vendors/; }
        done
    fi
    grep -qs nvidia /etc/OpenCL/vendors/*.icd && return
    for file in /usr/local/nvidia/lib64 /usr/local/nvidia/lib /usr/lib/x86_64-linux-gnu /usr/lib64; do
        file=$file/libnvidia-opencl.so.1
        [ -e "$file" ] || continue
        mkdir -p "$WORK/vendors"
        cp /etc/OpenCL/vendors/*.icd "$WORK/vendors/" 2>/dev/null
        echo "$file" >"$WORK/vendors/nvidia.icd"
        export OCL_ICD_VENDORS=$WORK/vendors/
        return
    done
}

need_build() { [ -x "$bin/mulmat-tune" ] || absent "no build: $bin/mulmat-tune is not there"; }
need_device() {
    need_build
    "$bin/mulmat-tune" devices --json 2>/dev/null | grep -q "\"index\": $DEVICE, " ||
        absent "no OpenCL device $DEVICE on this machine"
}
need_table() { [ -s "$table" ] || absent "no timing table: step bench made none"; }

# median FILE KEY: of the numbers behind KEY.
median() {
    awk -v key="$2" '$1 == key { print $2 }' "$1" | sort -g |
        awk '{ v[NR] = $1 } END { if (NR) print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

# ---- the steps -----------------------------------------------------------------------------------------
step_machine() {
    uname -a
    lscpu 2>/dev/null | grep -E 'Model name|^CPU\(s\)|Thread|Socket|NUMA node\(s\)|L3'
    free -g 2>/dev/null | head -2
    figure "processor: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) threads"
    ls -l /etc/OpenCL/vendors "$WORK/vendors" 2>/dev/null
    echo "LD_LIBRARY_PATH=$LD_LIBRARY_PATH OCL_ICD_VENDORS=${OCL_ICD_VENDORS:-}"
    if command -v nvidia-smi >/dev/null; then
        figure "GPU: $(nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader | head -4 | paste -sd';')"
        nvidia-smi -q -d CLOCK,PERFORMANCE 2>/dev/null | head -60
    fi
    command -v clinfo >/dev/null && clinfo 2>/dev/null | head -200
    true
}

step_build() {
    if [ -n "${BUILD:-}" ]; then
        "$bin/mulmat-tune" version || { fault "the carried build does not run here"; ldd "$bin/mulmat-tune"; }
        return
    fi
    command -v make >/dev/null && command -v "${CC:-cc}" >/dev/null || absent "no compiler; carry a build: BUILD=path"
    make -s -j"$(nproc)" BUILD="$WORK/build" all || { fault "the build fails"; return; }
    make -s -j"$(nproc)" BUILD="$WORK/build" suites "$WORK/build/make-models" || fault "the suites do not build (CUnit?)"
    "$bin/mulmat-tune" version
}

step_devices() {
    need_build
    "$bin/mulmat-tune" devices
    "$bin/mulmat-tune" devices --json >"$WORK/devices.json"
    need_device
    figure "device $DEVICE: $(sed -n "s/.*\"index\": $DEVICE, \"name\": \"\([^\"]*\)\".*\"driver\": \"\([^\"]*\)\".*\"type\": \"\([^\"]*\)\".*/\1, driver \2, \3/p" "$WORK/devices.json")"
    [ "$DEVICE" = 0 ] || figure "the suites use device 0, the rest device $DEVICE"
    "$bin/mulmat-tune" profiles --device "$DEVICE" 2>&1 | head -80
}

run_suite() { # SUITE [ARGUMENT...]: counts as passed or as a fault
    local name=$1 got
    shift
    [ -x "$bin/suite_$name" ] || { fault "suite_$name was not built"; return; }
    timeout "${SUITE_S:-200}" "$bin/suite_$name" "$@" >"$WORK/suite" 2>&1
    got=$?
    cat "$WORK/suite"
    figure "suite_$name $*: $(grep -a '^TANDEM-SUITE' "$WORK/suite" | cut -d' ' -f2-4), status $got"
    [ $got -eq 0 ] || { grep -a -A3 'FAILED' "$WORK/suite" | head -40; fault "suite_$name $* ends with status $got"; }
}

step_suites() {
    need_device
    if [ -n "${QUICK:-}" ]; then
        run_suite opencl -s device
    else
        run_suite opencl
        run_suite backends -s conformance
        run_suite runtime -s devices
    fi
}

step_golden() {
    need_device
    local model=$bin/stand-ins/llama/stories260K.bin here there
    run_suite llama -s devices
    [ -e ../shared/data/llama/stories260K.bin ] && model=../shared/data/llama/stories260K.bin
    [ -e "$model" ] || return
    here=$("$bin/tandem-llama" run "$model" -t "${model%/*}/tok512.bin" --temp 0 -n 200 --table none --device none)
    there=$("$bin/tandem-llama" run "$model" -t "${model%/*}/tok512.bin" --temp 0 -n 200 --table none \
        --device "$DEVICE" --profile opencl)
    if [ "$here" = "$there" ]; then
        figure "200 tokens of the trained model: the same text on the CPU and on the device"
    else
        fault "200 tokens of the trained model: the texts of CPU and device differ"
        printf '%s\n---\n%s\n' "$here" "$there"
    fi
}

step_check() {
    need_device
    local types=all
    [ -n "${QUICK:-}" ] && types=q4_0
    "$bin/mulmat-tune" test --device "$DEVICE" --type "$types" >"$WORK/check" 2>&1 ||
        fault "mulmat-tune test: a profile computes wrong results on the device"
    cat "$WORK/check"
    figure "$(tail -1 "$WORK/check")"
}

step_tune() {
    need_device
    local most
    [ -n "${QUICK:-}" ] && most="-most 1 -dry"
    "$bin/mulmat-tune" tune-device --device "$DEVICE" --type q4_0 ${most:-} 2>&1 | tee "$WORK/tune"
    [ "${PIPESTATUS[0]}" -eq 0 ] || fault "tune-device fails"
    figure "tile numbers of q4_0: $(grep -oE '^[a-z]+ +[a-z_]+=[a-z_0-9=,]+' "$WORK/tune" | sed 's/^[a-z]* *//' | tr '\n' ' ')"
}

# A small model and a large one, so that one fits the caches and the other none.
step_bench() {
    need_device
    local budget=100 shapes=1.1B
    [ -n "${QUICK:-}" ] && budget=6 shapes=quick
    "$bin/mulmat-tune" bench --model "$shapes" --type q4_0 --device "$DEVICE" --budget "$budget" -y --file "$table" ||
        fault "bench fails"
    if [ -z "${QUICK:-}" ]; then
        "$bin/mulmat-tune" bench --model 7B --type q4_0 --device "$DEVICE" --budget 100 -y --file "$WORK/7B.json" &&
            "$bin/mulmat-tune" table merge -y --file "$table" "$table" "$WORK/7B.json" ||
            fault "bench of 7B fails, or its table cannot be merged"
    fi
    need_table
    figure "table: $("$bin/mulmat-tune" table show "$table" | tail -1)"
    "$bin/mulmat-tune" table show "$table" | sed -n '/transfers/,/^[^ ]/p'
}

# way NAME ARGUMENT...: one round of this candidate; speeds go to $rounds as NAME/prompt and NAME/generation.
way() {
    local name=$1 got
    shift
    "$bin/tandem-llama" bench --synth "$synth" --table "$table" --repeat 1 --prompt "$prompt" --gen "$generate" \
        --output csv "$@" >"$WORK/csv" 2>"$WORK/said"
    got=$?
    if [ $got -ne 0 ]; then
        tail -3 "$WORK/said"
        fault "$name: tandem-llama bench ends with status $got: $(tail -1 "$WORK/said" | cut -c1-200)"
        return
    fi
    cat "$WORK/said"
    if grep -q 'dropped for good' "$WORK/said"; then
        figure "$name: the guard: $(grep -m1 'dropped for good' "$WORK/said" | cut -c1-200)"
    fi
    awk -F, -v name="$name" 'NR > 1 { print name "/" $1, $3 }' "$WORK/csv" | tee -a "$rounds"
}

# ratios BEST...: each candidate against the best of these, for prompts and generation.
ratios() {
    local what name best speed
    for what in prompt generation; do
        best=0
        for name in "$@"; do
            speed=$(median "$rounds" "$name/$what")
            best=$(awk -v a="$best" -v b="${speed:-0}" 'BEGIN { print (a > b) ? a : b }')
        done
        for name in $(sed -n "s,/$what .*,,p" "$rounds" | sort -u); do
            speed=$(median "$rounds" "$name/$what")
            figure "$what, $name: $speed tokens/s, $(awk -v a="$speed" -v b="$best" 'BEGIN { if (b > 0) printf "%.3f", a / b }') of the best of $*"
        done
    done
}

set_size() {
    rounds=$WORK/rounds-$1
    : >"$rounds"
    n_rounds=3 synth=1.1b prompt=512 generate=32
    if [ -n "${QUICK:-}" ]; then
        n_rounds=1 synth=quick prompt=32 generate=4
    fi
}

# Single profiles against the plan, which may split products and overlap nodes; in turns.
step_ways() {
    need_device
    need_table
    local round parts
    set_size ways
    for ((round = 0; round < n_rounds; round++)); do
        way cpu --device none
        way device --device "$DEVICE" --profile opencl
        way plan --device "$DEVICE"
    done
    ratios cpu device
    TANDEM_TRACE=$WORK/trace.json "$bin/tandem-llama" bench --synth "$synth" --table "$table" --repeat 1 \
        --prompt "$prompt" --gen 2 --device "$DEVICE" >/dev/null 2>&1 || fault "no trace of the plan"
    "$bin/tandem-llama" bench --synth "$synth" --table "$table" --repeat 1 --prompt "$prompt" --gen 2 \
        --device "$DEVICE" --output csv 2>&1 | tail -2
    parts=$(grep -cE ' part [0-9]' "$WORK/trace.json" 2>/dev/null)
    if [ "${parts:-0}" -gt 0 ]; then
        figure "the plan splits products: $parts parts in the trace"
    else
        echo "ABSENT: splits: the plan of this model has none (or this version makes none)"
    fi
}

# Half of the weights do not fit: they are uploaded for each use, or the CPU computes with them.
step_streaming() {
    need_device
    need_table
    "$bin/mulmat-tune" profiles --device "$DEVICE" 2>/dev/null | grep -q '^opencl+stream' ||
        absent "streaming: this version has no profile opencl+stream"
    local round budget=300
    set_size streaming
    [ -n "${QUICK:-}" ] && budget=30
    for ((round = 0; round < n_rounds; round++)); do
        way cpu --device none
        way plan-half --device "$DEVICE" --settings "opencl:budget=$budget"
        way stream-half --device "$DEVICE" --settings "opencl:budget=$budget" --profile opencl+stream
    done
    ratios cpu
}

# A mixture of experts: on the CPU, on the device, and by the plan; one product beside plain ones.
step_experts() {
    need_device
    need_table
    local round
    set_size experts
    n_rounds=1 synth=1b-moe
    [ -n "${QUICK:-}" ] && synth=256,256,2,4,2,512,8,2
    for ((round = 0; round < n_rounds; round++)); do
        way cpu --device none
        way device --device "$DEVICE" --profile opencl
        way plan --device "$DEVICE"
    done
    ratios cpu device
    [ -x "$bin/bench-experts" ] && [ -z "${QUICK:-}" ] || return 0
    timeout 60 "$bin/bench-experts" --rounds 5 --device "$DEVICE" | tee "$WORK/experts"
    figure "prompts of 512, experts over plain products: $(awk -F'|' '$5 == 512 { printf "%s%s", sep, $9; sep = "," }' "$WORK/experts")"
}

step_report() {
    need_build
    need_table
    "$bin/mulmat-tune" analyze "$table" --html "$WORK/report.html" || fault "no report"
    "$bin/mulmat-tune" simulate "$table" --model "$([ -n "${QUICK:-}" ] && echo quick || echo 1.1B)" -m 1,512 ||
        echo "simulate: not all passes"
    "$bin/mulmat-tune" explain --table "$table" mul_mat:q4_0:n5632:k2048:m512 | head -60
}

step_oracle() {
    need_device
    need_table
    local budget=90
    [ -n "${QUICK:-}" ] && budget=5
    "$bin/mulmat-tune" test --oracle --table "$table" --device "$DEVICE" --type q4_0 --budget "$budget" >"$WORK/oracle" 2>&1 ||
        fault "the oracle's bounds do not hold on this machine"
    cat "$WORK/oracle"
    figure "oracle: $(grep -E 'median regret .* worst' "$WORK/oracle")"
}

# The first device of CUDA: $cuda, its index.
need_cuda() {
    need_build
    cuda=$("$bin/mulmat-tune" devices --json 2>/dev/null | sed -n 's/.*"index": \([0-9]*\), "backend": "cuda".*/\1/p' | head -1)
    [ -n "$cuda" ] || absent "no CUDA device on this machine: $("$bin/mulmat-tune" devices 2>&1 | grep -i -m1 cuda || echo 'mulmat-tune devices lists none')"
}

# The suites of the device once more, on the real driver; then what a user does.
step_cuda() {
    need_cuda
    local model=$bin/stand-ins/llama/stories260K.bin here there n=200 tool what profile
    export TANDEM_TEST_LIBCUDA=libcuda.so.1
    if [ -n "${QUICK:-}" ]; then
        n=3
        run_suite opencl-cuda -s memory
    else
        run_suite opencl-cuda
        timeout 90 "$bin/mulmat-tune" tune-device --device "$cuda" --type q4_0 2>&1 | tee "$WORK/tune-cuda"
        [ "${PIPESTATUS[0]}" -eq 0 ] || fault "tune-device fails on CUDA"
        for what in 0 1; do # without tensor cores, and with them: the fastest
            figure "q4_0, M = 128: $(sed -n "s/^\[.*%\] \(tiled .*mma=$what .* us .*\)/\1/p" "$WORK/tune-cuda" |
                sort -k 5,5g | head -1 | tr -s ' ')"
        done
        grep -qE 'mma=1 .*(refused|wrong)' "$WORK/tune-cuda" && fault "a product on tensor cores is refused or wrong"
    fi
    "$bin/mulmat-tune" devices | grep 'serve for cuBLAS' && echo "ABSENT: cuBLAS"
    for profile in cuda cuda+cublas cpu+cublas; do
        "$bin/mulmat-tune" test --device "$cuda" --type q4_0 --profile $profile >"$WORK/check" 2>&1 ||
            fault "mulmat-tune test: $profile computes wrong results"
        cat "$WORK/check"
        figure "$profile: $(tail -1 "$WORK/check")"
    done
    [ -e ../shared/data/llama/stories260K.bin ] && model=../shared/data/llama/stories260K.bin
    if [ -e "$model" ]; then
        here=$("$bin/tandem-llama" run "$model" -t "${model%/*}/tok512.bin" --temp 0 -n $n --table none --device none)
        for profile in cuda cuda+cublas; do
            there=$("$bin/tandem-llama" run "$model" -t "${model%/*}/tok512.bin" --temp 0 -n $n --table none \
                --device "$cuda" --profile $profile)
            if [ "$here" = "$there" ]; then
                figure "$n tokens of the trained model: the same text on the CPU and by $profile"
            else
                fault "$n tokens of the trained model: the texts of CPU and $profile differ"
                printf '%s\n---\n%s\n' "$here" "$there"
            fi
        done
    fi
    tool=$(command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer 2>/dev/null | head -1)
    if [ -z "$tool" ]; then
        echo "ABSENT: compute-sanitizer is not installed"
    elif [ -z "${QUICK:-}" ]; then
        for check in memcheck racecheck; do
            if timeout 60 "$tool" --tool "$check" --error-exitcode 9 "$bin/suite_opencl-cuda" -s ops >"$WORK/sanitizer" 2>&1; then
                figure "compute-sanitizer $check: $(grep -m1 'ERROR SUMMARY' "$WORK/sanitizer")"
            else
                fault "compute-sanitizer $check: $(grep -m1 'ERROR SUMMARY' "$WORK/sanitizer" || echo 'no end, see the log')"
            fi
            tail -40 "$WORK/sanitizer"
        done
    fi
}

# Both drivers side by side: the same products and the same text, in turns; the operations' own times.
step_drivers() {
    need_cuda
    need_device
    local round what
    set_size drivers
    local table=none
    [ -n "${QUICK:-}" ] && prompt=2 generate=1 synth=64,128,1,2,2,64
    for ((round = 0; round < n_rounds; round++)); do
        way opencl --device "$DEVICE" --profile opencl
        way cuda --device "$cuda" --profile cuda
        way cublas --device "$cuda" --profile cuda+cublas
    done
    ratios opencl
    for what in opencl:$DEVICE cuda:$cuda; do
        TANDEM_TRACE=$WORK/trace-${what%:*}.json timeout 60 "$bin/tandem-llama" bench --synth "$synth" --table none \
            --repeat 1 --prompt "$prompt" --gen 1 --device "${what#*:}" --profile "${what%:*}" \
            --settings "${what%:*}:profile=on" >/dev/null 2>&1 || fault "no trace of ${what%:*} with the device's own times"
        figure "${what%:*}: $(grep -c '"tid":"'"${what%:*}"'"' "$WORK/trace-${what%:*}.json" 2>/dev/null) steps timed on the device"
    done
}

step_peer() {
    need_build
    [ -n "${PEER:-}" ] || absent "PEER names no llama-bench"
    [ -n "${MODEL:-}" ] || absent "MODEL names no model with a vocabulary for the peer"
    local budget=240 keep=()
    [ -n "${QUICK:-}" ] && budget=60
    [ -s "$table" ] && keep=(--table "$table")
    "$bin/mulmat-tune" advise "$MODEL" "${keep[@]}" --measure "$PEER" --budget "$budget" || fault "advise --measure fails"
    "$bin/mulmat-tune" advise "$MODEL" "${keep[@]}" --json >"$WORK/advice.json" || fault "no advice"
    "$bin/tandem-llama" bench "$MODEL" "${keep[@]}" --device "$DEVICE" --prompt 512 --gen 32 --repeat 3 \
        --output csv >"$WORK/csv" || fault "tandem-llama bench fails"
    local what theirs ours
    for what in prompt generation; do
        theirs=$(sed -n "s/.*\"${what}_tps\": \([0-9.e+]*\).*/\1/p" "$WORK/advice.json")
        ours=$(awk -F, -v what="$what" '$1 == what { print $3 }' "$WORK/csv")
        figure "$what: Tandem $ours, peer ${theirs:-unknown} tokens/s: $(awk -v a="$ours" -v b="${theirs:-0}" 'BEGIN { if (b > 0) printf "%.2f", a / b; else print "?" }') times the peer"
    done
}

# ---- running them ----------------------------------------------------------------------------------------
never_tried() {
    cat <<'EOF'
## Never tried on a GPU before this day

- Kernels on hardware other than PoCL and oclgrind: work-group limits below 4096, local memory of 48 KiB,
  subgroups, fp16, denormals, contraction of multiply and add by the vendor's compiler
- Memory of its own: uploads and downloads over a bus, pinned staging memory, budget and eviction
- Two queues at once: weights in flight beside kernels, events between queues, times of events
- Programs kept on disk as the vendor's binaries
- CLBlast with the vendor's tuning, and its override interface
- Splits, overlaps and streaming against the best single way; the guard that drops those that lose
- CUDA at all: libcuda, NVRTC's code on a real multiprocessor, warps, three streams and their events
- Joules by NVML, two real devices at once, a device that is taken away while it computes
EOF
}

summary() {
    local number=0 entry name state
    echo "# A day with a GPU: $(date -u +%Y-%m-%d)"
    echo
    echo "$(uname -srm), version $("$bin/mulmat-tune" version 2>/dev/null || echo 'not built'), commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown)${QUICK:+, QUICK}"
    echo
    echo "| step | result | seconds |"
    echo "|---|---|---|"
    for entry in "${steps[@]}"; do
        name=${entry% *} number=$((number + 1))
        state=$(cat "$WORK/state-$name" 2>/dev/null || echo "not run -")
        echo "| $number $name | ${state% *} | ${state##* } |"
    done
    for name in FIGURE FAULT ABSENT; do
        echo
        echo "## $(echo "$name" | tr 'FA' 'fa' | sed 's/FIGURE/Figures/i; s/FAULT/Faults/i; s/ABSENT/Absent/i')"
        echo
        for entry in "${steps[@]}"; do
            [ -e "$WORK/state-${entry% *}" ] || continue
            sed -n "s/^$name: /- ${entry% *}: /p" "$WORK/logs/${entry% *}.log" 2>/dev/null | cut -c1-300
        done
    done
    echo
    never_tried
}

# Few files in one folder: a lent machine returns no more.
publish() {
    local file
    summary >"$OUT/summary.md.new" 2>/dev/null && mv "$OUT/summary.md.new" "$OUT/summary.md"
    for file in table.json devices.json report.html advice.json; do
        [ -s "$WORK/$file" ] && cp "$WORK/$file" "$OUT/$file"
    done
    [ -s "$WORK/trace.json" ] && gzip -c "$WORK/trace.json" >"$OUT/trace.json.gz"
    tar -C "$WORK" -czf "$OUT/logs.tar.gz" logs 2>/dev/null
}

state_of() { # STATUS LIMIT
    case $1 in
    0) echo good ;;
    77) echo absent ;;
    124 | 137) echo "no end within $2 s" ;;
    *) echo "failed ($1)" ;;
    esac
}

stop() {
    trap '' TERM INT
    [ -n "${running:-}" ] && kill -TERM "$running" 2>/dev/null && wait "$running" 2>/dev/null
    [ -n "${current:-}" ] && echo "ended by a signal $((SECONDS - begun))" >"$WORK/state-$current"
    publish
    echo "gpu_day: ended by a signal; $OUT/summary.md says what there is"
    exit 143
}

run_step() { # NAME LIMIT
    local limit=$2 left=$((60 * MINUTES - SECONDS - 15)) got
    current=$1 begun=$SECONDS
    [ -n "${QUICK:-}" ] && [ "$1" != build ] && limit=$((limit / 2))
    [ "$limit" -gt "$left" ] && limit=$left
    if [ "$limit" -lt 5 ]; then
        echo "no time left 0" >"$WORK/state-$1"
        return
    fi
    printf '%-10s ' "$1"
    timeout -k 10 "$limit" bash "$0" --step "$1" >"$WORK/logs/$1.log" 2>&1 &
    running=$!
    wait "$running"
    got=$?
    running=''
    echo "$(state_of $got "$limit") $((SECONDS - begun))" >"$WORK/state-$1"
    cat "$WORK/state-$1"
    publish
    current=''
}

wanted() { # NUMBER: whether STEPS names it
    local part
    [ -z "$selection" ] && return 0
    for part in ${selection//,/ }; do
        [ "$1" -ge "${part%-*}" ] && [ "$1" -le "${part#*-}" ] && return 0
    done
    return 1
}

if [ "${1:-}" = --step ]; then
    "step_$2"
    exit $((faults != 0))
fi
if [ "${1:-}" = list ]; then
    printf '%s\n' "${steps[@]}" | cat -n
    exit 0
fi
selection=${1:-}
if ! [[ $selection =~ ^([0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*)?$ ]]; then
    sed -n '3s/^# //p' "$0" >&2
    exit 2
fi
find_driver
export OUT WORK
trap stop TERM INT
number=0
for entry in "${steps[@]}"; do
    number=$((number + 1))
    wanted "$number" && run_step "${entry% *}" "${entry#* }"
done
publish
grep -q '^FAULT' "$WORK"/logs/*.log && echo "gpu_day: faults were found"
echo "gpu_day: $OUT/summary.md"
