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
. tests/tool_cases.sh

# Libraries that crash when memory fails and that nothing outside of them can help (docs/reliability.md).
known='libhwloc|libgfortran|libquadmath|libopenblas|ld-linux'

# Complains about what is left, in folder `now`. $1: whether it was a single failure.
judge() {
    local extra left
    judge_result
    # (Who cannot remove files leaves one.)
    if ! grep -q '^failed unlink' "$work/report" && [[ "${fault[*]}" != *file:*+* ]]; then
        extra=$(leftovers)
        [ -z "$extra" ] || echo "left behind: $extra"
    fi
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
    attempt_clean
    mv report "report-$name"
    live_clean=$(sed -n 's/^end .* live=//p' "report-$name")
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
