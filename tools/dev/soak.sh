#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: soak.sh [JOB...]      (make soak JOBS="..." SECONDS_EACH=N or MINUTES=N; `soak.sh list` names the jobs)
# Long attacks, one after the other. A job is a function job_NAME below. Each line that it prints of the form
#     N tried, N survived: KIND
# is a figure of docs/reliability.md, whose row begins with KIND. The figures go to build/soak/summary.txt;
# reliability.sh writes them into the page. SECONDS_EACH replaces the length of every job that has one.
set -u
cd "$(dirname "$0")/../.."
out=build/soak
mkdir -p "$out"
unset MAKEFLAGS MFLAGS MAKELEVEL
[ -z "${MINUTES:-}" ] || SECONDS_EACH=$((MINUTES * 60))

mk() { make --no-print-directory -j"$(nproc)" ASSERT=1 "$@"; }
# The seconds that this run gives to a job whose full length is $1.
seconds() { echo "${SECONDS_EACH:-$1}"; }
# Turns "N passed, N failed, N skipped" of the jobs of `make check` into a figure.
tell_tests() { # KIND
    awk -v kind="$1" '{print} /^[0-9]+ passed, [0-9]+ failed/ {n += $1 + $3; good += $1}
        END {printf "%d tried, %d survived: %s\n", n, good, kind}'
}

# ---- the jobs; each says what it does ----
# All suites with full effort, three fresh seeds.
job_suites() {
    local seed
    for seed in 1 2 3; do
        TANDEM_TEST_EFFORT=3 TANDEM_TEST_SEED=$((RANDOM * 3 + seed)) TANDEM_TEST_TIMEOUT=7200 \
            mk BUILD=build/soak-suites check-suites || return 1
    done 2>&1 | tell_tests 'Tests with full effort and fresh seeds'
    return "${PIPESTATUS[0]}"
}
# Two hours for each fuzz target.
job_fuzz() {
    mk fuzz-all SECONDS_EACH="$(seconds 7200)" 2>&1 | awk '
        {print}
        /^fuzz_.*: good/ {n += $4; good += $4}
        /^fuzz_.*: FAILED/ {n++}
        END {printf "%d tried, %d survived: Hostile files and texts for each parser\n", n, good}'
    return "${PIPESTATUS[0]}"
}
# Every allocation and file call of the tools fails (20,000 runs, an hour), or some of them.
job_faults() {
    mk BUILD=build/soak-tools faults && bash tests/faults.sh build/soak-tools $(($(seconds 0) / 5))
}
# Odd machines, and 10,000 kills at random moments (half an hour).
job_machines() {
    mk BUILD=build/soak-tools faults && bash tests/machines.sh build/soak-tools $(($(seconds 2000) * 5))
}
# A chat of an hour.
job_memory() {
    mk BUILD=build/soak-tools all build/soak-tools/make-models &&
        bash tests/chat_memory.sh build/soak-tools "$(seconds 3600)"
}
# A server with 64 clients for ten minutes, some of which leave or read slowly; memory stays flat.
job_server() {
    mk BUILD=build/soak-tools all server-load build/soak-tools/make-models &&
        bash tests/server.sh build/soak-tools "$(seconds 600)" 64 >build/soak/clients.txt 2>&1
    local code=$?
    cat build/soak/clients.txt
    sed -nE 's/^.* s: ([0-9]+) requests, ([0-9]+) errors.*/\1 \2/p' build/soak/clients.txt |
        awk '{printf "%d tried, %d survived: Requests of 64 clients to a server\n", $1, $1 - $2}'
    return $code
}
# Reads of memory that was never written, and of what is not ours. AVX2 is what valgrind knows; the kernels in
# plain C run too, in a second round of their suites. FORTIFY's memmove confuses it. Leaks are LeakSanitizer's, and
# assertions are other jobs' matter: tests that start themselves anew by /proc/self/exe start valgrind here.
# Registers are kept exact, because the handler of SIGBUS goes on where a read of a cut file has failed.
job_valgrind() {
    local suite n=0 good=0
    command -v valgrind >/dev/null || { echo "SKIP valgrind: not installed"; return 0; }
    mk BUILD=build/valgrind CFLAGS='-O1 -g' HARDENING= suites || return 1
    for suite in avx2:{base,table,tune,ggml,formats,report,measure,runtime,llama,sched,backends} scalar:{ggml,backends}; do
        n=$((n + 1))
        if TANDEM_CPU=${suite%:*} TANDEM_TEST_EFFORT=1 timeout 7200 valgrind -q --error-exitcode=99 --fair-sched=yes \
            --vex-iropt-register-updates=allregs-at-each-insn "build/valgrind/suite_${suite#*:}" >build/valgrind/log 2>&1 || [ $? -eq 1 ]; then
            good=$((good + 1))
        else
            echo "$suite: errors of memory, a crash or no end"
            grep -E '==|FAILED|^    [0-9]' build/valgrind/log | head -40
        fi
    done
    echo "$n tried, $good survived: Suites under valgrind's memcheck"
    [ "$good" -eq "$n" ]
}
# Twenty planted faults are found.
job_mutants() { bash tools/dev/mutants.sh; }
# A million schedules of the pool: a seed decides who goes on at each atomic access.
job_schedules() {
    mk BUILD=build/soak-suites suite_schedule || return 1
    TANDEM_TEST_EFFORT=3 TANDEM_TEST_SEED=$((RANDOM + 1)) build/soak-suites/suite_schedule | tee build/soak/schedules.txt
    awk '/schedules,/ {n = $0; sub(/.*\(/, "", n); all = n + 0} / passed$/ && all && !told {good = told = 1}
        END {printf "%d tried, %d survived: Schedules of the pool, by a seeded scheduler\n", all, good ? all : 0}' \
        build/soak/schedules.txt
    grep -q ' failed=0 ' build/soak/schedules.txt
}
# 2,000 drawn machines under the observer: noise, outliers, other programs, heat, devices that lie or become slow.
job_zoo() {
    mk BUILD=build/soak-suites build/soak-suites/suite_runtime || return 1
    TANDEM_TEST_EFFORT=3 build/soak-suites/suite_runtime -s observer -t a_zoo_of_machines_is_served_well >build/soak/zoo.txt
    local code=$?
    sed -E 's/^ +([0-9]+ tried)/\1/' build/soak/zoo.txt
    return $code
}
# Half an hour of everything at once under ThreadSanitizer: runtimes, graphs, cancels, failing devices, changes.
job_threads() {
    mk BUILD=build/tsan CC=clang WERROR=1 SAN=thread CFLAGS='-O1 -g' build/tsan/suite_runtime || return 1
    TANDEM_TEST_SECONDS=$(seconds 1800) TANDEM_TEST_SEED=$((RANDOM + 1)) TANDEM_DEVICE=none \
        build/tsan/suite_runtime -s soak >build/soak/threads.txt 2>&1
    local code=$?
    cat build/soak/threads.txt
    awk -v code=$code '/ computed, / {n = $0; sub(/.*\(/, "", n); all = n + 0}
        END {printf "%d tried, %d survived: Computations beside changes of everything, under ThreadSanitizer\n", all,
            code == 0 ? all : 0}' build/soak/threads.txt
    return $code
}
# 2,000 runs of several ranks, one of which is killed, stopped or loses its link (five hours).
job_ranks() {
    mk BUILD=build/soak-tools all shaped-switch && bash tests/cluster_soak.sh build/soak-tools $(($(seconds 20000) / 10)) $RANDOM
}
# The same bytes from two builds.
job_reproducible() { bash tools/dev/check_reproducible.sh; }

all_jobs=$(declare -F | sed -n 's/^declare -f job_//p' | tr '\n' ' ')
[ "${1:-}" = list ] && { echo "$all_jobs"; exit 0; }

cpu=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo 2>/dev/null | head -1)
passed=0 failed=0
for job in ${*:-$all_jobs}; do
    declare -F "job_$job" >/dev/null || { echo "no job '$job'; jobs: $all_jobs"; exit 2; }
    echo "---- $job"
    began=$SECONDS
    if "job_$job" >"$out/$job.log" 2>&1; then
        verdict=good
        passed=$((passed + 1))
    else
        verdict=FAILED
        failed=$((failed + 1))
        tail -40 "$out/$job.log"
    fi
    grep -E '^[0-9]+ tried, [0-9]+ survived: |^SKIP ' "$out/$job.log"
    echo "---- $job: $verdict, $((SECONDS - began)) s, $out/$job.log"
    # One line a figure; a job's new figures replace its old ones.
    touch "$out/summary.txt"
    { grep -v "^$job|" "$out/summary.txt"
      sed -nE 's/^([0-9]+) tried, ([0-9]+) survived: (.*)/\3|\1|\2/p' "$out/$job.log" |
          sed "s,^,$job|$(date +%F)|${cpu:-$(uname -m)}|,"; } >"$out/summary.new"
    mv "$out/summary.new" "$out/summary.txt"
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
