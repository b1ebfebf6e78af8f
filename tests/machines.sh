#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: machines.sh BUILD [KILLS] [GROUPS]     (needs `make faults`)
# The tools on odd machines: stopped and continued, moved among CPUs, with clocks that jump, with little memory, few
# files and small stacks, on full and read-only disks, without HOME, /proc, /sys or cgroups, and killed KILLS times at
# random moments. Judged as in faults.sh: the right result or a message, files old or new, and the next start works.
# Ends with figures and "N passed, N failed, N skipped".
set -u
cd "$(dirname "$0")/.."
build=$PWD/${1:-build/gcc}
kills=${2:-50}
groups=${3:-limits disks missing clock moved quota rights kills}
. tests/tool_cases.sh

tried=0 failed=0 skipped=0 n_kills=0 bad_kills=0
skip() { # REASON...
    skipped=$((skipped + 1))
    echo "SKIP machines: $*"
}
bad() { # TEXT...
    failed=$((failed + 1))
    echo "FAILED: $*"
}
# Runs a case in a fresh folder under the commands in `fault` and judges it. $1: what is odd.
attack() {
    local why
    attempt
    tried=$((tried + 1))
    why=$(judge_result; leftovers)
    [ -z "$why" ] || { bad "$name, $1: ${why//$'\n'/; }"; sed -n '1,3s/^/    /p' ../err; }
    cd "$work" || exit 1
}
# under WHAT CASES COMMAND...: attacks the cases, started by a command (which ends with "$@").
under() {
    local what=$1 cases=$2 script=$3
    for name in $cases; do
        fault=(bash -c "$script" sh)
        attack "$what"
    done
}
all="run plan convert merge save bench"
for name in $all; do
    attempt_clean
done
# A namespace of its own, where things can be mounted over others: not everybody may have one.
may_mount() { unshare -m true 2>/dev/null || { skip "no rights to mount: $1"; false; }; }

group_limits() {
    local n
    for n in 20000 60000 150000 300000 600000; do
        under "$n KiB of addresses" "$all" "ulimit -v $n; exec \"\$@\""
    done
    for n in 4 5 6 8 16; do
        under "$n open files" "$all" "ulimit -n $n; exec \"\$@\""
    done
    for n in 128 512; do
        under "a stack of $n KiB" "$all" "ulimit -s $n; exec \"\$@\""
    done
    under "one process" "$all" 'ulimit -u 1; exec "$@"'
    for n in 1 64; do
        under "files of at most $n KiB" "convert merge save bench" "ulimit -f $n; exec \"\$@\""
    done
    # (Each command in a shell of its own: what it prints goes to a full device.)
    under "a full standard output" "$all" 'exec "$@" >/dev/full'
    under "a closed standard output" "$all" 'exec "$@" >&-'
}
# The folder lies on a small disk of its own; what is there at the end is copied back.
group_disks() {
    may_mount "full and read-only disks" || return
    local more used
    used=$(du -sk "$in/old" | cut -f1)
    for more in "size=$((used + 16))k" "size=$((used + 64))k" "size=$((used + 900))k" size=64m,ro; do
        under "a disk with $more" "convert merge save bench" "exec unshare -m bash -c '
            home=\$PWD disk=$work/disk
            mkdir -p \$disk && mount -t tmpfs -o ${more%,ro} none \$disk && cp -a . \$disk && cd \$disk || exit 126
            [ ${more#*,} != ro ] || mount -o remount,ro \$disk
            XDG_CACHE_HOME=\$disk/cache \"\$@\"
            code=\$?
            cd \$home && find . -mindepth 1 -delete; cp -a \$disk/. .
            exit \$code' sh \"\$@\""
    done
}
group_missing() {
    local over
    under "neither HOME nor a cache folder" "run plan convert merge save" 'unset HOME XDG_CACHE_HOME; exec "$@"'
    under "a cache folder that cannot be made" "run plan convert merge save" 'XDG_CACHE_HOME=/dev/null/x exec "$@"'
    under "an empty environment" "run plan convert merge save" 'exec env -i "$@"'
    may_mount "/proc and /sys missing, faked CPUs" || return
    for over in /proc /sys /sys/devices/system/cpu /sys/fs/cgroup /dev; do
        under "no $over" "$all" "exec unshare -m bash -c 'mount -t tmpfs none $over; exec \"\$@\"' sh \"\$@\""
    done
    for over in 0 1 0-1023 7-3 , abc '' 4294967296; do
        under "online CPUs '$over'" "run bench" "exec unshare -m bash -c 'echo $over >$work/online
            for file in online present possible; do mount --bind $work/online /sys/devices/system/cpu/\$file; done
            exec \"\$@\"' sh \"\$@\""
    done
}
group_clock() {
    for name in $all; do
        for n in 1 3 10 100; do
            fault=(FAULT=clock:$n+ FAULT_REPORT="$work/report" LD_PRELOAD="$build/libfaults.so")
            attack "the clock jumps from call $n on"
        done
    done
}
group_moved() {
    local away='for i in 1 2 3 4 5 6 7 8 9; do sleep 0.0$((RANDOM % 5 + 1))'
    under "stopped and continued" "run save bench" "($away; kill -STOP \$\$; sleep 0.02; kill -CONT \$\$; done) 2>/dev/null & exec \"\$@\""
    if [ "$(nproc)" -gt 1 ]; then
        under "moved from CPU to CPU" "run save bench" "($away; taskset -apc \$((i % 2)) \$\$; done) >/dev/null 2>&1 & exec \"\$@\""
    else
        skip "one CPU: nothing to move to"
    fi
}
group_quota() {
    local quota
    may_mount "faked quotas of cgroup v2" || return
    for quota in '20000 100000' '1 100000' 'max 100000' '-5 0' 'abc' '99999999999999999999 1' ''; do
        under "cpu.max '$quota'" "run bench" "exec unshare -m bash -c 'mount -t tmpfs none /sys/fs/cgroup
            echo cpu >/sys/fs/cgroup/cgroup.controllers; echo $quota >/sys/fs/cgroup/cpu.max; exec \"\$@\"' sh \"\$@\""
    done
}

# A program with more rights than its user takes neither settings nor files from the user's environment.
group_rights() {
    local what pattern
    [ "$(id -u)" -eq 0 ] || { skip "not root: no setuid programs"; return; }
    mkdir -p rights/open && chmod 755 rights && chmod 777 rights/open && cd rights || exit 1
    cp "$in/model.bin" "$in/tokenizer.bin" "$in/old/t1.json" .
    cp "$build/tandem-llama" usual && cp usual raised && chown 65534 raised && chmod 4755 raised
    XDG_CACHE_HOME=$PWD/cache tool mulmat-tune bench "${cell[@]}" -m 1 --budget 1 -y >made 2>&1
    heeds() { # PROGRAM VARIABLE=VALUE PATTERN: whether what it prints, or a trace, shows the variable
        rm -f open/trace.json
        env XDG_CACHE_HOME=/dev/null/x "$2" "./$1" run model.bin -t tokenizer.bin --temp 0 -n 4 --stats >out 2>&1 ||
            bad "$1, $2: exit code $?"
        [ ! -e open/trace.json ] || echo traced >>out
        tried=$((tried + 1))
        grep -qE "$3" out
    }
    while read -r what pattern; do
        heeds usual "$what" "$pattern" || bad "a usual program does not heed $what"
        ! heeds raised "$what" "$pattern" || bad "a setuid program heeds $what"
    done <<END
TANDEM_TABLE=t1.json ^table: t1.json
TANDEM_LOG=debug left out: backend
TANDEM_THREADS=3 ^threads: 3
TANDEM_CPU=scalar ^machine: .*scalar
TANDEM_TRACE=open/trace.json ^traced
XDG_CACHE_HOME=$PWD/cache ^table: .*/cache/
END
    cd "$work" || exit 1
}

# ---- kills: one folder, which nobody tidies in between ----

group_kills() {
    local began turn why types=(q4_0 q8_0) cases=(convert merge save bench) names more
    declare -A length
    fault=()
    cp -a "$in/old" killed
    cd killed || exit 1
    export XDG_CACHE_HOME=$PWD/cache
    for name in "${cases[@]}"; do
        began=${EPOCHREALTIME/./}
        "run_$name" >../out 2>../err </dev/null
        length[$name]=$((${EPOCHREALTIME/./} - began))
    done
    for ((turn = 0; turn < kills; turn++)); do
        name=${cases[turn % 4]}
        type=${types[turn / 4 % 2]}
        [ "$name" != merge ] || { cp "$in/old/t1.json" fresh && mv fresh t1.json; }
        printf -v more '%06d' $((RANDOM * 32768 % ${length[$name]}))
        limit=(-s KILL "$((10#$more / 1000000)).${more: -6}")
        "run_$name" >../out 2>../err </dev/null
        code=$?
        limit=("${patient[@]}")
        n_kills=$((n_kills + (code == 137)))
        why=$([ "$code" -eq 0 ] || [ "$code" -eq 137 ] || echo "exit code $code"; "judge_$name" 1 || echo "a damaged file")
        [ -z "$why" ] || { bad "$name, killed after 0.$more s: ${why//$'\n'/; }"; bad_kills=$((bad_kills + 1)); }
    done
    for name in "${cases[@]}"; do
        "run_$name" >../out 2>../err </dev/null || bad "$name does not start after the kills: $(head -3 ../err)"
    done
    names=$(leftovers)
    [ "$(wc -w <<<"$names")" -le $((2 + kills / 100)) ] || bad "left by $n_kills kills: $names"
    cd "$work" || exit 1
}

for group in $groups; do
    "group_$group"
done
echo "$tried tried, $((tried - failed + bad_kills)) survived: Odd machines: limits, disks, clocks, CPUs, missing folders"
[ "$n_kills" -eq 0 ] || echo "$n_kills tried, $((n_kills - bad_kills)) survived: Killed at random moments"
echo "$((tried + n_kills - failed)) passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
