#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: cluster_soak.sh BUILD [RUNS [SEED]]
# Ranks that compute, one of which is killed, stopped or loses its link at a random moment, with each MPI in turn, by
# rows and by layers. A run is good if all others have ended in time with the right message, and no process and no shared memory is left. (Links
# are cut in network namespaces, where those are permitted.) Prints figures for `make soak`.
set -u
cd "$(dirname "$0")/.."
build=$(cd "${1:-build/release}" && pwd)
runs=${2:-40}
RANDOM=${3:-$$}
. tests/netns.sh
work=$(mktemp -d)
stopped=
trap 'kill -KILL $stopped 2>/dev/null; net_down; rm -rf "$work"' EXIT
export TANDEM_TABLE=none TANDEM_DEVICE=none XDG_CACHE_HOME=$work
limit=2    # seconds that a rank waits for another one
in_time=60 # seconds in which a run has to end: ten times that, and what a busy machine adds

mpis=()
for mpi in openmpi mpich; do
    [ -e "$build/libtandem-mpi-$mpi.so" ] && command -v "mpirun.$mpi" >/dev/null && mpis+=("$mpi")
done
[ ${#mpis[@]} -gt 0 ] || { echo "SKIP cluster: no MPI"; exit 0; }
faults=(kill stop)
if why=$(net_up "$build" 2 10 0.05 0; net_down) && [ -z "$why" ]; then
    faults+=(cut)
else
    echo "SKIP links that are cut: $why"
fi
"$build/tandem-llama" synth "$work/dense.gguf" -q --shape 64,256,3,4,4,320 --type q4_0 || exit 1

launch() { # MPI RANKS COMMAND...
    local mpi=$1 ranks=$2
    shift 2
    net_limit=$in_time
    case $fault:$mpi in
    cut:*) net_launch "$mpi" "$ranks" "$@" ;;
    *:openmpi) timeout --kill-after=5 "$in_time" mpirun.openmpi --allow-run-as-root --oversubscribe -np "$ranks" "$@" ;;
    *:mpich) timeout --kill-after=5 "$in_time" mpirun.mpich -np "$ranks" "$@" ;;
    esac
}
ours() { pgrep -f "^$build/tandem-llama bench $work/dense.gguf"; }
rank_pid() { # RANK
    local pid
    for pid in $(ours); do
        grep -qsz "^\(OMPI_COMM_WORLD_RANK\|PMI_RANK\)=$1\$" "/proc/$pid/environ" && echo "$pid"
    done
}
await() { # TENTHS CONDITION...
    local n=$1
    shift
    for _ in $(seq "$n"); do
        "$@" && return 0
        sleep 0.1
    done
    return 1
}
has_begun() { grep -qs 'ranks (' "$work/err"; }
nothing_left() { [ -z "$(ours)" ]; }
# What is said where a rank is lost: by the others, or by the launcher that sees a process die.
lost='rank [0-9]+ on [a-z0-9]+ did not take part in|another rank did not take part|signal 9|KILLED BY SIGNAL|Killed'
tells() { grep -qsE "$lost" "$work/err" "$work/out"; }
# (Where other ranks run on this machine, theirs are not ours.)
held() { pgrep -x 'mpirun.*' >/dev/null && { echo 0; return; }; find /dev/shm -mindepth 1 -newer "$work/began" 2>/dev/null | wc -l; }

declare -A tried good
unbegun=0
for run in $(seq "$runs"); do
    mpi=${mpis[run % ${#mpis[@]}]}
    fault=${faults[run / ${#mpis[@]} % ${#faults[@]}]}
    divisions=(rows layers mixed)
    divide=${divisions[$((run / ${#mpis[@]} / ${#faults[@]} % 3))]}
    ranks=$((2 + RANDOM % 2))
    [ "$fault" = cut ] && ranks=2
    victim=$((RANDOM % ranks))
    [ "$fault" = cut ] && { victim=1; net_up "$build" 2 10 0.05 0; }
    : >"$work/began"
    rm -f "$work/err" "$work/out"
    launch "$mpi" "$ranks" "$build/tandem-llama" bench "$work/dense.gguf" --prompt 8 --gen 2000 --repeat 64 --threads 1 \
        --rank-limit "$limit" --divide "$divide" --shares "$([ "$ranks" = 2 ] && echo 1,1 || echo 1,1,1)" >"$work/out" 2>"$work/err" &
    launcher=$!
    # (On a machine that is too busy MPI's own start takes longer, and what is lost then is MPI's: no run of ours. A few of them.)
    if ! await 300 has_begun; then
        echo "run $run, $mpi, $fault: did not begin in 30 s, nothing was tried: $(tail -3 "$work/err")"
        unbegun=$((unbegun + 1))
        kill "$launcher" 2>/dev/null
        wait "$launcher"
        kill -KILL $(ours) 2>/dev/null
        [ "$fault" = cut ] && net_down
        continue
    fi
    sleep "0.$((RANDOM % 10))"
    pid=$(rank_pid "$victim")
    began=$SECONDS
    case $fault in
    kill) kill -KILL "$pid" ;;
    stop) kill -STOP "$pid"; stopped=$pid ;;
    cut) net_cut "$victim" ;;
    esac
    await $((10 * in_time)) tells
    told=$?
    said_after=$((SECONDS - began))
    # A stopped process is beyond a launcher of MPICH, and so is all behind a cut link: whoever runs ranks ends those.
    [ "$fault" = stop ] && kill -KILL "$pid" 2>/dev/null
    [ "$fault" = cut ] && { await 150 nothing_left; kill "$launcher" 2>/dev/null; }
    wait "$launcher"
    code=$?
    stopped=
    await 100 nothing_left
    left=$(ours | wc -l)
    [ "$fault" = cut ] && net_down
    tried[$fault]=$((${tried[$fault]:-0} + 1))
    if [ $told -eq 0 ] && [ $code -ne 0 ] && [ "$left" -eq 0 ] && [ "$(held)" -eq 0 ]; then
        good[$fault]=$((${good[$fault]:-0} + 1))
    else
        echo "FAILED: run $run, $mpi, $ranks ranks, $divide, $fault of $victim: told $told after $said_after s, code $code, $left left, $(held) in /dev/shm"
        tail -5 "$work/err"
        find /dev/shm -mindepth 1 -newer "$work/began" -delete
        kill -KILL $(ours) 2>/dev/null
    fi
    [ $((run % 50)) -ne 0 ] || echo "$run of $runs runs after $SECONDS s"
done
all=0
for fault in "${!tried[@]}"; do
    echo "${tried[$fault]} tried, ${good[$fault]:-0} survived: Ranks, one of which is lost: $fault"
    all=$((all + ${tried[$fault]} - ${good[$fault]:-0}))
done
[ "$all" -eq 0 ] && [ "$unbegun" -le $((1 + runs / 50)) ]
