#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: check.sh [JOB...]            (make check; default: all jobs; `check.sh list` prints them)
# Runs independent jobs side by side, each with its own build tree and its own log in build/check/,
# prints CUnit's summaries, then what failed in at most 30 lines, and ends with "N passed, N failed,
# N skipped": tests of all variants, and one for each job without tests.
set -u
cd "$(dirname "$0")/../.."
cores=$(nproc)
lanes=${LANES:-$((cores < 8 ? 2 : 4))}
make_jobs=$(((cores + lanes - 1) / lanes))
logs=build/check
fuzz_seconds=${FUZZ_SECONDS:-8}
mkdir -p "$logs"

# Each job is a make of its own: nothing of the make that called us is handed on.
unset MAKEFLAGS MFLAGS MAKELEVEL
# Functions and lines are enough for a stack: all that -g writes would take a gigabyte more.
export WERROR=1 ASSERT=1 CFLAGS='-O2 -g1'
mk() { make --no-print-directory -j"$make_jobs" "$@"; }

# ---- the jobs; the longest first ----
# Damage, leaks and undefined behaviour; job_gcc runs the longer random tests.
job_asan() {
    [ -d /proc/self/task ] || echo "SKIP asan: no /proc, so no search for leaks"
    TANDEM_TEST_EFFORT=1 mk BUILD=build/asan CC=clang SAN=address,undefined CFLAGS='-O1 -g1' check-suites
}
# Everything with GCC as users get it.
job_gcc() {
    mk BUILD=build/gcc CC=gcc all benches examples build/gcc/make-models || return 1
    mk BUILD=build/gcc CC=gcc check-suites
}
# The programs of the documents run.
job_examples() {
    local example
    for example in docs/examples/*.c; do
        [[ $example != */backend.c ]] || continue # a plugin, no program: suite_plugin and install
        example=build/gcc/example-$(basename "$example" .c)
        "$example" || { echo "$example failed"; return 1; }
    done
}
# The programs as users run them: commands, options, messages, exit codes.
job_tools() {
    bash tests/tools.sh build/gcc && bash tests/table_tool.sh build/gcc &&
        bash tests/simulate_tool.sh build/gcc && bash tests/advise_tool.sh build/gcc &&
        bash tests/gpu_day.sh build/gcc && bash tests/graph_tool.sh build/gcc &&
        bash tools/dev/check_report.sh build/gcc
}
# What stands in for the test data of others, where that is there and gcc's run took it.
job_clone() {
    [ -d "${TANDEM_TEST_DATA:-../shared/data}" ] || return 0
    export TANDEM_TEST_DATA=none TANDEM_TEST_EFFORT=1
    mk BUILD=build/gcc CC=gcc SUITES="formats ggml llama table" check-suites &&
        bash tests/tools.sh build/gcc data
}
# Some of the allocations and file calls of the tools fail; all of them in `make soak`.
job_faults() { mk BUILD=build/gcc CC=gcc faults && bash tests/faults.sh build/gcc 4; }
# The tools with tight limits, small disks, jumping clocks, without /proc, and killed 50 times.
job_machines() { mk BUILD=build/gcc CC=gcc faults && bash tests/machines.sh build/gcc 50; }
# Data races: the suites that start threads.
job_tsan() {
    mk BUILD=build/tsan CC=clang SAN=thread CFLAGS='-O1 -g1' \
        SUITES="${TSAN_SUITES:-sched stress runtime backends server}" check-suites
}
job_clang() { mk BUILD=build/clang CC=clang CFLAGS=-O3 all benches suites; }
job_gcc_O0() { mk BUILD=build/gcc-O0 CC=gcc CFLAGS=-O0 all; }
job_gcc_O3() { mk ASSERT= BUILD=build/gcc-O3 CC=gcc CFLAGS=-O3 all; }
# The optional parts left out; the suites must still pass.
job_without() {
    mk BUILD=build/without CC=gcc CFLAGS=-O1 NO_HWLOC=1 NO_CJSON=1 NO_OPENCL=1 all || return 1
    TANDEM_TEST_EFFORT=1 mk BUILD=build/without CC=gcc CFLAGS=-O1 NO_HWLOC=1 NO_CJSON=1 NO_OPENCL=1 \
        SUITES="sched runtime" check-suites
}
# The kernels for ARM in an emulator.
job_neon() { JOBS_MAKE=$make_jobs bash tools/dev/check_neon.sh; }
# What Windows misses is what docs/platforms.md says.
job_mingw() { JOBS_MAKE=$make_jobs bash tools/dev/check_mingw.sh; }
job_fuzz() { mk fuzz-all SECONDS_EACH="$fuzz_seconds"; }
# The backend for programs with ggml, in small hosts of our own.
job_bridge() { mk BUILD=build/gcc CC=gcc bridge-hosts && bash tests/bridge.sh build/gcc; }
# The package for Python, without numpy and network; `make judges JOBS=python` runs all of its tests.
job_python() {
    command -v python3 >/dev/null || { echo "SKIP python: no python3"; return 0; }
    TANDEM_INFER_LIBRARY=$PWD/build/gcc PYTHONDONTWRITEBYTECODE=1 CC=gcc \
        python3 bindings/python/tests/smoke.py
}
# The server as users start it; it says so where it was left out.
job_server() {
    mk BUILD=build/gcc CC=gcc all server-load build/gcc/make-models && bash tests/server.sh build/gcc
}
# What kernel-pack refuses and makes, and compilers of tile instructions.
job_pack() {
    mk BUILD=build/pack build/pack/kernel-pack && bash tests/kernel_pack.sh build/pack &&
        bash tests/amx_code.sh
}
job_includes() { bash tools/dev/check_includes.sh; }
job_style() { bash tools/dev/check_style.sh; }
job_docs() { bash tools/dev/check_docs.sh && bash tools/dev/check_spelling.sh; }
# The commands of the documents are right, and run.
job_commands() { bash tools/dev/check_commands.sh build/gcc; }
# Small additions touch as few files as CONTRIBUTING.md promises.
job_recipes() { JOBS_MAKE=$make_jobs bash tools/dev/check_recipes.sh; }
job_words() { bash tools/dev/check_words.sh; }
job_headers() { bash tools/dev/check_headers.sh; }
job_symbols() {
    bash tools/dev/check_symbols.sh build/gcc && bash tools/dev/check_hardening.sh build/gcc
}
# No function of libtandem.so is out of reach, and none of the library is dead.
job_reach() { bash tools/dev/check_reach.sh build/gcc; }
job_install() { bash tools/dev/check_install.sh build/gcc; }

# gcc comes first among equals: symbols and install look at its results.
all_jobs="asan gcc tsan clang fuzz neon without gcc_O3 gcc_O0 recipes pack includes style words docs headers mingw"
all_jobs+=" symbols reach install examples commands bridge python server tools clone faults machines"
[ "${1:-}" = list ] && { echo "$all_jobs"; exit 0; }
jobs=${*:-$all_jobs}

passed=0 failed=0 skipped=0 broken=''
declare -A name_of=() started_at=()

# Prints what a person wants of a job's log and adds its counts.
report() { # NAME CODE SECONDS
    local name=$1 code=$2 seconds=$3 log=$logs/$1.log line
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" | tail -1)
    echo "---- $name: $([ "$code" -eq 0 ] && echo good || echo FAILED), $seconds s"
    if [ "$code" -ne 0 ]; then
        grep -vE '^  (CC|AR|LD) |\.\.\.passed$' "$log" | tail -60
        broken="$broken $name"
    else
        grep -E '^== |^ +(suites|tests|asserts) |^fuzz_|^check_|^SKIP |^left out|^[0-9]+ tried, ' "$log"
    fi
    if [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped ]]; then
        passed=$((passed + BASH_REMATCH[1]))
        failed=$((failed + BASH_REMATCH[2]))
        skipped=$((skipped + BASH_REMATCH[3]))
        [ "$code" -eq 0 ] || [ "${BASH_REMATCH[2]}" -gt 0 ] || failed=$((failed + 1))
    elif [ "$code" -eq 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
    skipped=$((skipped + $(grep -c '^SKIP ' "$log")))
}

# The failures of a job's log, one line each: a CI log is cut to its last lines. Without a line that
# names a failure, the end of the log.
name_failures() { # NAME
    awk -v job="$1" '
        /^== / {where = $2; test = ""}
        /^  Test: / {test = $2}
        /^    [0-9]+\. / {sub(/^    [0-9]+\. /, ""); tell(test ": " $0)}
        /^SUMMARY: |: (ended in the middle|exit code|unexpected skip)|: FAILED|^(make: )?\*\*\*|: error: / {
            tell($0)
        }
        NF {last[n_lines++ % 3] = $0}
        function tell(text) {
            print "FAILED " (where == "" ? job : where) ": " substr(text, 1, 200)
            n_told++
        }
        END {
            for (i = n_lines > 3 ? n_lines - 3 : 0; n_told == 0 && i < n_lines; i++) {
                print "FAILED " job ": " substr(last[i % 3], 1, 200)
            }
        }' "$logs/$1.log"
}

wait_for_one() {
    local pid code
    wait -n -p pid
    code=$?
    report "${name_of[$pid]}" "$code" $((SECONDS - started_at[$pid]))
    unset "name_of[$pid]"
}

for job in $jobs; do
    # The jobs that look at the results of gcc wait for it.
    if [[ $job =~ ^(symbols|reach|install|examples|commands|python|server|tools|clone|faults|machines)$ ]]; then
        while [[ " ${name_of[*]} " == *" gcc "* ]]; do
            wait_for_one
        done
    fi
    while [ "${#name_of[@]}" -ge "$lanes" ]; do
        wait_for_one
    done
    "job_$job" >"$logs/$job.log" 2>&1 &
    name_of[$!]=$job
    started_at[$!]=$SECONDS
done
while [ "${#name_of[@]}" -gt 0 ]; do
    wait_for_one
done
echo "check took $SECONDS s"
if [ -n "$broken" ]; then
    echo "failed:$broken (logs in $logs/)"
    for job in $broken; do
        name_failures "$job"
    done | head -30
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
