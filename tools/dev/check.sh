#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: check.sh [JOB...]     (make check, make check-full; default: the jobs of make check)
#        check.sh full         all jobs
#        check.sh ci           all jobs, the most valuable first; starts none after BUDGET (25) minutes
#        check.sh list         prints the names of all jobs
# Runs independent jobs side by side, each with its own build tree and its own log in build/check/. Says
# at once how long that may take, every 20 s what is running, then CUnit's summaries, and at the end each
# test that failed once, whatever number of checks and variants it failed in. A job that takes longer than
# JOB_LIMIT minutes (120; of ci 25) is ended and has failed. The last line is "N passed, N failed, N skipped": tests
# of all variants, and one for each job without tests. SIGINT and SIGTERM end all jobs; the finished
# ones are summed up.
set -u
cd "$(dirname "$0")/../.."
cores=$(nproc)
lanes=${LANES:-$((cores < 8 ? 2 : 4))}
make_jobs=$(((cores + lanes - 1) / lanes))
logs=build/check
fuzz_seconds=${FUZZ_SECONDS:-5}
job_limit=$((${JOB_LIMIT:-120} * 60)) # for jobs that hang: a slow or busy machine takes 40 minutes for a job
mkdir -p "$logs"

# Each job runs its own make: nothing of the calling make is inherited.
unset MAKEFLAGS MFLAGS MAKELEVEL
# Functions and lines are enough for a stack trace: a full -g would take a gigabyte more.
export WERROR=1 ASSERT=1 CFLAGS='-O2 -g1'
# Kernels are compiled once for all jobs, as PoCL does it.
export TANDEM_FAKE_CUDA_PROGRAMS=${TANDEM_FAKE_CUDA_PROGRAMS:-$PWD/build/fake_cuda_programs}
mk() { make --no-print-directory -j"$make_jobs" "$@"; }

# ---- the jobs ----
# A job without tests of its own that cannot run here prints a line "SKIP NAME: WHY" and succeeds.
# Damage, leaks and undefined behaviour; job_gcc runs the longer random tests.
job_asan() {
    [ -d /proc/self/task ] || echo "SKIP asan: no /proc, so no search for leaks"
    TANDEM_TEST_EFFORT=1 mk BUILD=build/asan CC=clang SAN=address,undefined CFLAGS='-O1 -g1' \
        SUITES="$asan_suites" check-suites
}
# Everything with GCC, built as for users.
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
        bash tests/completion_shells.sh build/gcc &&
        bash tests/simulate_tool.sh build/gcc && bash tests/advise_tool.sh build/gcc &&
        bash tests/gpu_day.sh build/gcc && bash tests/graph_tool.sh build/gcc &&
        bash tools/dev/check_report.sh build/gcc
}
# A newcomer's machine: a clone without test data beside it, and neither git nor python3.
job_clone() {
    local place code file
    place=$(mktemp -d) || return 1
    mkdir "$place/tandem" "$place/bin"
    find . \( -path ./build -o -path ./.git \) -prune -o -type f -print | tar -cf - -T - |
        tar -xf - -C "$place/tandem"
    tr ':' '\n' <<<"$PATH" | while IFS= read -r folder; do
        for file in "$folder"/*; do
            case ${file##*/} in git* | python* | py*) ;; *) ln -s "$file" "$place/bin/" 2>/dev/null ;; esac
        done
    done
    (cd "$place/tandem" && PATH=$place/bin TANDEM_TEST_DATA=none TANDEM_TEST_EFFORT=1 LANES=1 \
        POCL_CACHE_DIR=${POCL_CACHE_DIR:-$OLDPWD/build/pocl} \
        bash tools/dev/check.sh gcc tools server bridge commands includes style words docs recipes)
    code=$?
    rm -rf "$place"
    return "$code"
}
# Some of the allocations and file calls of the tools fail; all of them in `make soak`.
job_faults() { mk BUILD=build/gcc CC=gcc faults && bash tests/faults.sh build/gcc 4; }
# The tools with tight limits, small disks, jumping clocks, without /proc, and killed 50 times.
job_machines() { mk BUILD=build/gcc CC=gcc faults && bash tests/machines.sh build/gcc 50; }
# Data races: the suites that start threads.
job_tsan() {
    TANDEM_TEST_EFFORT=1 mk BUILD=build/tsan CC=clang SAN=thread CFLAGS='-O1 -g1' \
        SUITES="${TSAN_SUITES:-$tsan_suites}" check-suites
}
job_clang() { mk BUILD=build/clang CC=clang CFLAGS=-O3 all benches suites; }
job_gcc_O0() { mk BUILD=build/gcc-O0 CC=gcc CFLAGS=-O0 all; }
job_gcc_O3() { mk ASSERT= BUILD=build/gcc-O3 CC=gcc CFLAGS=-O3 all; }
# Without the optional parts; the suites must still pass.
job_without() {
    mk BUILD=build/without CC=gcc CFLAGS=-O1 NO_HWLOC=1 NO_CJSON=1 NO_OPENCL=1 all || return 1
    TANDEM_TEST_EFFORT=1 mk BUILD=build/without CC=gcc CFLAGS=-O1 NO_HWLOC=1 NO_CJSON=1 NO_OPENCL=1 \
        SUITES="sched runtime" check-suites
}
# The kernels for ARM in an emulator.
job_neon() { JOBS_MAKE=$make_jobs bash tools/dev/check_neon.sh; }
# Windows lacks exactly what docs/platforms.md lists.
job_mingw() { JOBS_MAKE=$make_jobs bash tools/dev/check_mingw.sh; }
job_fuzz() { mk fuzz-all SECONDS_EACH="$fuzz_seconds"; }
# The backend for programs with ggml, in small hosts of our own.
job_bridge() { mk BUILD=build/gcc CC=gcc bridge-hosts && bash tests/bridge.sh build/gcc; }
# The package for Python, without numpy and network; `make judges JOBS=python` runs all of its tests.
job_python() {
    command -v python3 >/dev/null || { echo "SKIP python: no python3"; return 0; }
    local test
    for test in smoke test_first_calls test_any_file misuse; do
        TANDEM_INFER_LIBRARY=$PWD/build/gcc PYTHONDONTWRITEBYTECODE=1 CC=gcc \
            python3 "bindings/python/tests/$test.py" || return 1
    done
}
# The server as users start it; reports if the build has none.
job_server() {
    mk BUILD=build/gcc CC=gcc all server-load build/gcc/make-models && bash tests/server.sh build/gcc
}
# What kernel-pack refuses and generates, and compilers with tile instructions.
job_pack() {
    mk BUILD=build/pack build/pack/kernel-pack && bash tests/kernel_pack.sh build/pack &&
        bash tests/amx_code.sh
}
# Ranks with each installed MPI, started as users do.
job_cluster() {
    mk BUILD=build/gcc CC=gcc all build/gcc/cluster-ranks || return 1
    mk BUILD=build/gcc CC=gcc shaped-switch || return 1
    bash tests/cluster.sh build/gcc && bash tests/cluster_files.sh build/gcc && bash tests/cluster_soak.sh build/gcc 6
}
job_includes() { bash tools/dev/check_includes.sh; }
job_style() { bash tools/dev/check_style.sh; }
job_docs() { bash tools/dev/check_docs.sh && bash tools/dev/check_spelling.sh; }
# The commands in the documents are correct, and run.
job_commands() { bash tools/dev/check_commands.sh build/gcc; }
# Small additions touch as few files as CONTRIBUTING.md promises.
job_recipes() { JOBS_MAKE=$make_jobs bash tools/dev/check_recipes.sh; }
job_words() { bash tools/dev/check_words.sh; }
job_headers() { bash tools/dev/check_headers.sh; }
job_symbols() {
    bash tools/dev/check_symbols.sh build/gcc && bash tools/dev/check_hardening.sh build/gcc
}
# Every function of libtandem.so is reachable, and the library has no dead ones.
job_reach() { bash tools/dev/check_reach.sh build/gcc; }
job_install() { bash tools/dev/check_install.sh build/gcc; }

# The jobs of make check, and those that take long and find little beside them. (The longest first; gcc
# before those that look at its results.)
quick_jobs="gcc asan tsan recipes tools server pack install commands examples symbols reach bridge python cluster"
quick_jobs+=" includes style words docs headers"
more_jobs="clone fuzz faults machines without neon clang gcc_O3 gcc_O0 mingw"
needs_gcc=" symbols reach install examples commands python server tools faults machines cluster "
case ${1:-quick} in
list)
    echo "$quick_jobs $more_jobs"
    exit 0
    ;;
quick) jobs=$quick_jobs ;;
full | ci) jobs="clone $quick_jobs ${more_jobs#clone }" ;;
*) jobs=$* ;;
esac
budget=0 asan_suites='' tsan_suites="sched stress"
case ${1:-quick} in
# Products and devices take four fifths of the time and have few lines that handle memory.
quick | ci)
    asan_suites="base cluster formats ggml graph llama net plugin report runtime sched server table tune"
    ;;&
ci) budget=$((${BUDGET:-25} * 60)) job_limit=$((${JOB_LIMIT:-25} * 60)) ;;&
quick) ;;
*) tsan_suites="sched stress runtime backends server" ;;
esac
asan_suites=${asan_suites:-$(ls tests/suite_*.c | sed 's,.*/suite_\([a-z]*\).*,\1,' | sort -u | tr '\n' ' ')}

# Seconds of each job alone on one of two cores, as far as they are worth naming (Zen 4, from nothing).
declare -A weight=([gcc]=300 [asan]=640 [tsan]=300 [recipes]=60 [tools]=60 [server]=40 [commands]=40
    [install]=30 [clone]=400 [fuzz]=420 [faults]=60 [machines]=60 [without]=120 [neon]=180 [clang]=100
    [gcc_O3]=90 [gcc_O0]=40 [mingw]=80 [pack]=20)
[ "${1:-quick}" != quick ] || weight[asan]=400 weight[tsan]=150
# Times of the last run take precedence.
if [ -r "$logs/seconds" ]; then
    while read -r job seconds; do weight[$job]=$seconds; done <"$logs/seconds"
fi

passed=0 failed=0 skipped=0 broken='' finished='' tick=''
declare -A name_of=() started_at=() is_overdue=()
clock() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

announce() {
    local job sum=0 n=0
    for job in $jobs; do
        n=$((n + 1)) sum=$((sum + ${weight[$job]:-5}))
    done
    sum=$((sum / (cores < 2 ? 1 : cores < lanes * 2 ? lanes : cores / 2 + 1)))
    [ "$budget" -eq 0 ] || [ "$sum" -lt "$budget" ] || sum=$budget
    echo "$n jobs, $lanes at a time on $cores cores: about $(((sum + 59) / 60)) minutes when nothing else runs"
    echo "$jobs" | fold -s -w 76 | sed 's/^/    /'
    [ -d "${TANDEM_TEST_DATA:-../shared/data}" ] ||
        echo "No test data of others (../shared/data): stand-ins take its place."
}

# What each running job is doing.
tell_progress() {
    local pid doing
    for pid in "${!name_of[@]}"; do
        doing=$(grep -aE '^(== |  [A-Z]+ +[a-z]|\[ |fuzz_|check_)' "$logs/${name_of[$pid]}.log" | tail -1)
        printf '[ %s] %s, %d s: %s\n' "$(clock $SECONDS)" "${name_of[$pid]}" $((SECONDS - started_at[$pid])) \
            "$(sed -E 's/^== //; s/^ +//; s/ +/ /g; s/^(.{52}).*/\1/' <<<"$doing")"
    done
}

# Prints the summary of a job's log and adds its counts.
report() { # NAME CODE SECONDS
    local name=$1 code=$2 seconds=$3 log=$logs/$1.log line verdict=good n_skips
    # (Some jobs run several scripts, each with such a line.)
    line=$(awk '/^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ {n++; p += $1; f += $3; s += $5}
        END {if (n > 0) print p " passed, " f " failed, " s " skipped"}' "$log")
    n_skips=$(grep -ac '^SKIP ' "$log")
    if [ "$code" -ne 0 ]; then
        verdict="FAILED, see $log"
        broken="$broken $name"
    elif [ "$n_skips" -gt 0 ] && ! grep -avqE '^SKIP |^ *$|^0 passed, 0 failed' "$log"; then
        verdict="skipped: $(sed -n 's/^SKIP [^:]*: //p' "$log" | head -1)"
    fi
    echo "---- $name: $verdict, $seconds s"
    finished="$finished $name"
    [ "$code" -ne 0 ] ||
        grep -aE '^== |^ +(suites|tests|asserts) |^fuzz_|^check_|^SKIP |^left out|^[0-9]+ tried, ' "$log"
    if [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped ]]; then
        passed=$((passed + BASH_REMATCH[1]))
        failed=$((failed + BASH_REMATCH[2]))
        n_skips=$((BASH_REMATCH[3] > n_skips ? BASH_REMATCH[3] : n_skips)) # most are told by both
        [ "$code" -eq 0 ] || [ "${BASH_REMATCH[2]}" -gt 0 ] || failed=$((failed + 1))
    elif [ "$code" -ne 0 ]; then
        failed=$((failed + 1))
    elif [[ $verdict != skipped* ]]; then
        passed=$((passed + 1))
    fi
    skipped=$((skipped + n_skips))
    [ "$code" -ne 0 ] || [[ $verdict == skipped* ]] || weight[$name]=$seconds
}

# The failures in the logs of these jobs, one line a test (its first check, how many more failed, and in
# which jobs): a CI log is cut to its last lines. Of a job whose log names no failure, the end of the log.
name_failures() { # NAME...
    local name
    for name in "$@"; do
        awk -v job="$name" '
            /^== / {where = $2; sub(/.*\/suite_/, "suite_", where); test = ""}
            /^  Test: / {test = $2}
            /^    [0-9]+\. / {sub(/^    [0-9]+\. +/, ""); tell(where " " test, $0)}
            /^FAILED / { # of a check within this one
                sub(/^FAILED /, "")
                sub(/ \[[A-Za-z0-9_, ]*\]$/, "")
                at = index($0, ": ")
                tell(at > 0 ? substr($0, 1, at - 1) : $0, at > 0 ? substr($0, at + 2) : "")
                next
            }
            /^SUMMARY: |: (ended in the middle|exit code|unexpected skip)|^FAILED: |^fuzz_.*: FAILED|^(make: )?\*\*\*|: error: / {
                sub(/^FAILED: /, "")
                sub(/^[^ ]*\/suite_/, "suite_")
                tell($0, "")
            }
            NF {last[n_lines++ % 3] = $0}
            function tell(key, text) {
                print key "\t" job "\t" text
                n_told++
            }
            END {
                for (i = n_lines > 3 ? n_lines - 3 : 0; n_told == 0 && i < n_lines; i++) {
                    print last[i % 3] "\t" job "\t"
                }
            }' "$logs/$name.log"
    done | awk -F '\t' '
        !($1 in first) {first[$1] = $3; order[++n] = $1}
        {n_checks[$1, $2]++}
        !(($1, $2) in seen) {
            seen[$1, $2] = 1
            where[$1] = where[$1] (where[$1] == "" ? "" : ", ") $2
            if (!($1 in one)) one[$1] = $2
        }
        END {
            for (i = 1; i <= n; i++) {
                key = order[i]
                more = n_checks[key, one[key]] - 1
                print substr("FAILED " key (first[key] == "" ? "" : ": " first[key]), 1, 240) \
                    (more > 0 && first[key] != "" ? " (and " more " more)" : "") " [" where[key] "]"
            }
        }'
}

summary() {
    if [ -n "$broken" ]; then
        echo "failed:$broken (logs in $logs/)"
        name_failures $broken | head -60
    fi
    for job in "${!weight[@]}"; do echo "$job ${weight[$job]}"; done >"$logs/seconds"
    echo "$passed passed, $failed failed, $skipped skipped"
}

# Ends jobs that hang: SIGTERM at one tick, SIGKILL at the next. (Nothing may run in the foreground here:
# bash would report the end of the job itself, and wait -n would not.)
end_overdue() {
    local pid signal
    for pid in "${!name_of[@]}"; do
        [ $((SECONDS - started_at[$pid])) -gt "$job_limit" ] || continue
        signal=KILL
        if [ -z "${is_overdue[$pid]:-}" ]; then
            is_overdue[$pid]=1 signal=TERM
            echo "FAILED ${name_of[$pid]}: not done after $((job_limit / 60)) minutes" \
                >>"$logs/${name_of[$pid]}.log"
        fi
        kill -"$signal" -- "-$pid" 2>/dev/null
    done
}

# Ends all running jobs with their children, and sums up the finished ones.
stop() { # SIGNAL
    local pid
    trap '' INT TERM
    exec 2>/dev/null # (bash says which of its jobs were ended)
    for pid in "${!name_of[@]}" $tick; do
        kill -TERM -- "-$pid" 2>/dev/null
    done
    sleep 1
    for pid in "${!name_of[@]}"; do
        kill -KILL -- "-$pid" 2>/dev/null
    done
    echo "stopped by SIG$1 after $(clock $SECONDS); finished:${finished:- nothing}; not finished:$(printf ' %s' "${name_of[@]}")"
    skipped=$((skipped + ${#name_of[@]}))
    summary
    exit $((128 + $2))
}
trap 'stop INT 2' INT
trap 'stop TERM 15' TERM
# Each job is a process group, so that it can be ended with its children.
set -m

wait_for_one() {
    local pid code
    while :; do
        if [ -z "$tick" ]; then
            sleep 20 &
            tick=$!
        fi
        wait -n -p pid
        code=$?
        if [ "$pid" = "$tick" ]; then
            tick=''
            tell_progress
            end_overdue
        elif [ -n "${name_of[$pid]:-}" ]; then
            break
        fi
    done
    report "${name_of[$pid]}" "$code" $((SECONDS - started_at[$pid]))
    unset "name_of[$pid]"
}

announce
for job in $jobs; do
    # The jobs that look at the results of gcc wait for it.
    if [[ $needs_gcc == *" $job "* ]]; then
        while [[ " ${name_of[*]} " == *" gcc "* ]]; do
            wait_for_one
        done
    fi
    while [ "${#name_of[@]}" -ge "$lanes" ]; do
        wait_for_one
    done
    if [ "$budget" -gt 0 ] && [ $SECONDS -gt "$budget" ]; then
        echo "---- $job: skipped: $((budget / 60)) minutes are over"
        skipped=$((skipped + 1))
        continue
    fi
    "job_$job" >"$logs/$job.log" 2>&1 </dev/null &
    name_of[$!]=$job
    started_at[$!]=$SECONDS
done
while [ "${#name_of[@]}" -gt 0 ]; do
    wait_for_one
done
[ -z "$tick" ] || { kill "$tick" && wait "$tick"; } 2>/dev/null
echo "check took $(clock $SECONDS)"
summary
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
