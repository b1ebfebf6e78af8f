#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: faults.sh BUILD [POINTS] [CASES]     (needs `make faults`; POINTS: calls tried for each case, 0: all)
# Lets every allocation and every file call of the tools fail, of all libraries in the process: the N-th call alone,
# and every call from the N-th on (tests/faults/fault_preload.c). Judged each time: no crash, no hang, a message
# when the exit code is not 0, the right result when it is, files old or new and whole, no temporary file left,
# and after a single failure nothing of ours still allocated. Ends with figures and "N passed, N failed, N skipped".
set -u
cd "$(dirname "$0")/.."
build=$PWD/${1:-build/gcc}
points=${2:-12}
only=${3:-run plan convert merge save bench}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset TANDEM_LOG TANDEM_CPU TANDEM_TABLE TANDEM_THREADS TANDEM_TRACE FAULT FAULT_REPORT
in=$work/in
# Drivers of devices (PoCL, with LLVM) abort when memory ends: no device here. suite_faults lets their calls fail.
export TANDEM_DEVICE=none
mkdir -p "$in"/{hf,torch,meta,sharded,old}
"$build/make-models" "$in" || exit 1
cd "$work" || exit 1

# Libraries that crash when memory fails and that nothing outside of them can help (docs/reliability.md).
known='libhwloc|libgfortran|libquadmath|libopenblas|ld-linux'
fault=() # what the environment of a tool gets
tool() { timeout --kill-after=5 30 env "${fault[@]}" "$build/$1" "${@:2}"; }

# ---- the cases: each runs in a fresh copy of $in/old, the working folder, and judges what is left there ----

model=(--threads 2 --temp 0 -n 4 -t "$in/tokenizer.bin")
cell=(-model 64x64 -threads 1 -profile cpu -effort estimate)
same() { cmp -s "$1" "$2"; }
# Whether file $1 is what it was or what the run without faults made of it.
old_or_new() { same "$1" "$in/old/$1" || same "$1" "$work/clean-$name/$1"; }

run_run() { tool tandem-llama run "$in/model.bin" "${model[@]}" --table none; }
judge_run() { [ "$1" -ne 0 ] || same ../out "../out-$name"; }
run_plan() { tool tandem-llama run "$in/model.bin" "${model[@]}" --table t1.json --plan; }
judge_plan() { [ "$1" -ne 0 ] || same ../out "../out-$name"; }
run_convert() { tool tandem-llama convert "$in/model.bin" out.gguf --type q4_0; }
judge_convert() { old_or_new out.gguf && { [ "$1" -ne 0 ] || same out.gguf "$work/clean-$name/out.gguf"; }; }
run_merge() { tool mulmat-tune table merge t1.json t2.json; }
judge_merge() { old_or_new t1.json && { [ "$1" -ne 0 ] || same t1.json "$work/clean-$name/t1.json"; }; }
run_save() { printf 'hi\n/save state\n' | tool tandem-llama chat "$in/model.bin" "${model[@]}" --table none --template plain; }
judge_save() {
    fault=()
    printf '/load state\n' | tool tandem-llama chat "$in/model.bin" "${model[@]}" --table none --template plain >loaded 2>&1
    ! grep -q 'state:' loaded && rm loaded
}
run_bench() { tool mulmat-tune bench "${cell[@]}" -m 2 -budget 1 -file t1.json -y; }
judge_bench() {
    fault=()
    tool mulmat-tune table show t1.json >shown 2>&1 && grep -q 64 shown && rm shown
}

# What the cases find: two tables, a converted model, a saved state. (The cases change a copy.)
export XDG_CACHE_HOME=$in/old/cache
mkdir -p "$XDG_CACHE_HOME"
(cd "$in/old" && tool mulmat-tune bench "${cell[@]}" -m 1 -budget 1 -file t1.json -y &&
    tool mulmat-tune bench "${cell[@]}" -m 4 -budget 1 -file t2.json -y && run_save &&
    tool tandem-llama convert "$in/model.bin" out.gguf --type q8_0) >setup.log 2>&1 || { cat setup.log; exit 1; }

# ---- one run ----

# Runs case $name in a fresh folder `now`; its exit code is in `code`.
attempt() {
    rm -rf now
    cp -a "$in/old" now
    cd now || exit 1
    export XDG_CACHE_HOME=$PWD/cache
    "run_$name" >../out 2>../err </dev/null
    code=$?
}
# Complains about what is left, in folder `now`. $1: whether it was a single failure.
judge() {
    local extra left is_stuck
    if [ "$code" -ge 124 ]; then
        echo "exit code $code"
    elif [ "$code" -ne 0 ] && [ ! -s ../err ]; then
        echo "exit code $code without a message"
    fi
    "judge_$name" "$code" || echo "exit code $code, but not the result, or a damaged file"
    # (Who cannot remove files leaves one.)
    grep -q '^failed unlink' "$work/report" || [[ "${fault[*]}" == *file:*+* ]] && is_stuck=true || is_stuck=false
    extra=$(diff -rq "$in/old" . | sed -n 's/^Only in \.[^:]*: //p' | grep -vE '\.lock$|^pocl$' | tr '\n' ' ')
    [ -z "$extra" ] || $is_stuck || echo "left behind: $extra"
    left=$(sed -n 's/^end .* live=//p' "$work/report")
    [ "$1" != single ] || [ "${left:-0}" -le "${live_clean:-0}" ] || echo "leaked $left allocations"
}

declare -A tried=([memory]=0 [file]=0) bad=([memory]=0 [file]=0) crashed=()
failed=0
# All points of class $1 (memory, file), $2 (single, lasting).
walk() {
    local class=$1 how=$2 total step n why where
    total=$(sed -n "s/^end .*$class=\([0-9]*\).*/\1/p" "$work/report-$name")
    step=$((points > 0 && total > points ? total / points : 1))
    for ((n = 1 + RANDOM % step; n <= total; n += step)); do
        fault=(FAULT="$class:$n$([ "$how" = lasting ] && echo +)" FAULT_REPORT="$work/report" LD_PRELOAD="$build/libfaults.so")
        attempt
        tried[$class]=$((tried[$class] + 1))
        why=$(judge "$how")
        # (libgfortran's start ends the process by itself.)
        where=$(grep -oE "^crash .* ($known)[^ ]*" "$work/report" || { [ "$code" -eq 0 ] ||
            grep -oE "^failed [^ ]* lib(gfortran|quadmath)[^ ]*" "$work/report"; })
        where=${where##* }
        if [ -n "$where" ]; then
            bad[$class]=$((bad[$class] + 1))
            crashed[$where]=$((${crashed[$where]:-0} + 1))
        elif [ -n "$why" ]; then
            failed=$((failed + 1))
            bad[$class]=$((bad[$class] + 1))
            echo "FAILED: $name, $class call $n of $total, $how ($(sed -n 's/^failed //p; s/^crash /crash /p' "$work/report" | paste -sd,)): ${why//$'\n'/; }"
            sed -n '1,2s/^/    /p' ../err
        fi
        cd "$work" || exit 1
    done
}

for name in $only; do
    fault=(FAULT=none FAULT_REPORT="$work/report" LD_PRELOAD="$build/libfaults.so")
    attempt
    cd "$work" || exit 1
    mv now "clean-$name"
    mv report "report-$name"
    mv out "out-$name"
    live_clean=$(sed -n 's/^end .* live=//p' "report-$name")
    [ "$code" -eq 0 ] || { echo "$name fails without a fault:"; cat err; exit 1; }
    for class in memory file; do
        for how in single lasting; do
            walk $class $how
        done
    done
done
for class in memory file; do
    echo "${tried[$class]} tried, $((tried[$class] - bad[$class])) survived: $([ $class = memory ] &&
        echo "Failing allocations and thread starts, of all libraries" || echo "Failing file calls, of all libraries")"
done
for where in "${!crashed[@]}"; do
    echo "inside $where: ${crashed[$where]} crashes"
done
echo "$((tried[memory] + tried[file] - failed)) passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
