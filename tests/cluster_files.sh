#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: cluster_files.sh BUILD
# Ranks without the model file: rank 0 sends it once, into a cache that is checked. What may go wrong with that. And
# commands of several ranks: compare, saved texts, drafts, Ctrl-C. The last line is "N passed, N failed, N skipped".
set -u
cd "$(dirname "$0")/.."
build=$(cd "${1:-build/release}" && pwd)
work=$(mktemp -d)
trap 'umount "$work/small" 2>/dev/null; rm -rf "$work"' EXIT
export TANDEM_TABLE=none TANDEM_DEVICE=none XDG_CACHE_HOME=$work/cache
unset TANDEM_LOG TANDEM_CPU TANDEM_THREADS TANDEM_TRACE
passed=0 failed=0 skipped=0
good() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)) && echo "FAILED: $*"; }
skip() { skipped=$((skipped + 1)) && echo "SKIP cluster: $*"; }

mpis=
for mpi in openmpi mpich; do
    [ -e "$build/libtandem-mpi-$mpi.so" ] && command -v "mpirun.$mpi" >/dev/null && mpis+=" $mpi"
done
if [ -z "$mpis" ]; then
    echo "SKIP cluster: no MPI (libopenmpi-dev and openmpi-bin, or mpich)"
    exit 0
fi
start() { # MPI ARGS... of its launcher
    local mpi=$1
    shift
    case $mpi in
    openmpi) timeout --kill-after=5 60 mpirun.openmpi --allow-run-as-root --oversubscribe "$@" ;;
    mpich) timeout --kill-after=5 60 mpirun.mpich "$@" ;;
    esac
}
# Rank 0 in folder one, ranks 1 and 2 in folder two: a model's relative path is there, or it is not.
bench() { # MPI MODEL OPTIONS...
    local mpi=$1 model=$2
    shift 2
    local command=("$build/tandem-llama" bench "$model" --prompt 16 --gen 4 --repeat 1 --threads 1 --output csv "$@")
    (cd "$work/one" && start "$mpi" -np 1 -wdir "$work/one" "${command[@]}" : -np 2 -wdir "$work/two" "${command[@]}")
}
mkdir -p "$work/one" "$work/two" "$work/cache"
models=$work/cache/tandem/models
"$build/tandem-llama" synth "$work/one/m.gguf" -q --shape 192,640,3,6,3,320 --type q4_0 || exit 1

for mpi in $mpis; do
    rm -rf "$models"
    bench "$mpi" m.gguf >"$work/out" 2>"$work/err" && [ "$(grep -c '^generation,4' "$work/out")" = 1 ] &&
        [ "$(grep -c 'go to rank' "$work/err")" = 1 ] && cmp -s "$work/one/m.gguf" "$models"/*-m.gguf && good ||
        bad "sent, $mpi: $(tail -5 "$work/err")"
    bench "$mpi" m.gguf >"$work/out" 2>"$work/err" && ! grep -q 'go to rank' "$work/err" && good ||
        bad "sent again, $mpi: $(tail -5 "$work/err")"

    # One byte of the copy has changed.
    printf X | dd of="$(echo "$models"/*-m.gguf)" bs=1 seek=300000 conv=notrunc 2>/dev/null
    bench "$mpi" m.gguf >"$work/out" 2>"$work/err" && grep -q 'does not hold what was written into it' "$work/err" &&
        cmp -s "$work/one/m.gguf" "$models"/*-m.gguf && good || bad "a changed copy, $mpi: $(tail -5 "$work/err")"

    # Another file of the same name.
    "$build/tandem-llama" synth "$work/one/m.gguf" -q -y --shape 128,256,2,4,2,320 --type q8_0
    bench "$mpi" m.gguf >"$work/out" 2>"$work/err" && [ "$(find "$models" -name '*-m.gguf' | wc -l)" = 2 ] && good ||
        bad "another file, $mpi: $(tail -5 "$work/err")"
    "$build/tandem-llama" synth "$work/one/m.gguf" -q -y --shape 192,640,3,6,3,320 --type q4_0

    # What an interrupted transfer has left goes; what a running one writes stays.
    rm -rf "$models"
    mkdir -p "$models"
    name=$(cd "$work/one" && bench "$mpi" m.gguf >/dev/null 2>&1; ls "$models")
    rm "$models/$name"
    : >"$models/$name.part-dead00"
    : >"$models/$name.part-alive0"
    flock "$models/$name.part-alive0" sleep 60 &
    locked=$!
    for _ in $(seq 50); do
        flock -n "$models/$name.part-alive0" true || break
        sleep 0.1
    done
    bench "$mpi" m.gguf >"$work/out" 2>"$work/err" && [ ! -e "$models/$name.part-dead00" ] && [ -e "$models/$name.part-alive0" ] && good ||
        bad "left-overs, $mpi: $(ls "$models"; tail -5 "$work/err")"
    pkill -P "$locked"
    kill "$locked" 2>/dev/null
    wait "$locked" 2>/dev/null

    # Two jobs at once.
    rm -rf "$models"
    bench "$mpi" m.gguf >"$work/out" 2>"$work/err" &
    other=$!
    bench "$mpi" m.gguf >"$work/out2" 2>"$work/err2"
    code=$?
    wait "$other" && [ $code -eq 0 ] && cmp -s "$work/one/m.gguf" "$models"/*-m.gguf && [ "$(find "$models" -type f | wc -l)" = 1 ] && good ||
        bad "two at once, $mpi: $(ls "$models"; tail -5 "$work/err" "$work/err2")"

    # What cannot be: one line, with the rank.
    mkdir -p "$work/one/folder"
    : >"$work/file"
    for want in "folder:: is a folder, which is not sent" "m.gguf:--model-cache=$work/file/x:rank 1 on .*cannot make this folder" "none.gguf::rank 0 on .* none.gguf cannot be opened"; do
        IFS=: read -r model option text <<<"$want"
        bench "$mpi" "$model" ${option:+"$option"} >"$work/out" 2>"$work/err"
        [ $? -ne 0 ] && [ "$(grep -c "tandem-llama: .*$text" "$work/err")" = 1 ] && good || bad "$want, $mpi: $(tail -5 "$work/err")"
    done
    mkdir -p "$work/small"
    if mount -t tmpfs -o size=200k tmpfs "$work/small" 2>/dev/null; then
        bench "$mpi" m.gguf --model-cache "$work/small" >"$work/out" 2>"$work/err"
        [ $? -ne 0 ] && [ "$(grep -c 'tandem-llama: rank 1 on .* are free for a copy' "$work/err")" = 1 ] && [ -z "$(ls -A "$work/small")" ] && good ||
            bad "a full disk, $mpi: $(ls -l "$work/small"; tail -5 "$work/err")"
        umount "$work/small"
    else
        skip "a small file system cannot be mounted here"
    fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
