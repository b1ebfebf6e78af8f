#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: cluster_files.sh BUILD
# Ranks without the model file: rank 0 sends their part of it once, into a cache that is checked. What may go wrong with
# that. And commands of several ranks: compare, saved texts, drafts, Ctrl-C. The last line is "N passed, N failed, N skipped".
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
# Rank 0 in folder one, the others in folder two: a model's relative path is there, or it is not.
others=2
tell() { # MPI ARGS... of tandem-llama
    local mpi=$1
    shift
    (cd "$work/one" && start "$mpi" -np 1 -wdir "$work/one" "$build/tandem-llama" "$@" : \
        -np "$others" -wdir "$work/two" "$build/tandem-llama" "$@")
}
bench() { # MPI MODEL OPTIONS...
    local mpi=$1 model=$2
    shift 2
    tell "$mpi" bench "$model" --prompt 16 --gen 4 --repeat 1 --threads 1 --output csv "$@"
}
data=${TANDEM_TEST_DATA:-../shared/data}/llama
mkdir -p "$work/one" "$work/two" "$work/cache"
[ ! -e "$data/stories260K.bin" ] || "$build/tandem-llama" convert "$data/stories260K.bin" "$work/one/stories.gguf" -q -t "$data/tok512.bin" || exit 1
[ ! -e "$data/stories260K.bin" ] || env -u TANDEM_TABLE "$build/mulmat-tune" bench --model "$work/one/stories.gguf" -m 1,8,512 --threads 1 --profile cpu -q -y \
    -f "$work/own.json" >"$work/out" 2>&1 || exit 1
models=$work/cache/tandem/models
"$build/tandem-llama" synth "$work/one/m.gguf" -q --shape 192,640,3,6,3,320 --type q4_0 || exit 1
"$build/tandem-llama" synth "$work/one/experts.gguf" -q --shape 192,256,3,6,3,320,8,2 --type q4_0 || exit 1

copy() { echo "$models"/*-m.gguf.part; }
# What the copy has is what the file has, but for the mark in its version; the rest are zeros.
holds() { [ "$(cmp -l "$work/one/m.gguf" "$(copy)" | awk '$3 != 0 && $1 != 8' | wc -l)" = 0 ]; }
sent() { sed -nE 's|.*m.gguf: ([0-9.]+) of .*go to rank.*|\1|p' "$work/err" | awk '{ all += $1 } END { print all + 0 }'; }
refetched() { # OPTIONS OF BENCH...: the copy is mended, and serves
    bench "$mpi" m.gguf "$@" >"$work/out" 2>"$work/err" && grep -q 'go to rank' "$work/err" && holds &&
        bench "$mpi" m.gguf "$@" >"$work/out" 2>"$work/err" && ! grep -q 'go to rank\|note:' "$work/err"
}
for mpi in $mpis; do
    # Each way to divide a model: what a rank needs comes once, and another plan adds what it lacks.
    for way in rows layers mixed "mixed --layer-shares 0,2,1" "mixed --layer-shares 1,1,1 --shares 1,0,0" "rows --shares 1,0,3" "layers --shares 0,0,1"; do
        [[ $way == *0,2,1 ]] && way+=" --shares 3,2,1"
        rm -rf "$models"
        # shellcheck disable=SC2086
        bench "$mpi" m.gguf --divide $way >"$work/out" 2>"$work/err" && [ "$(grep -c '^generation,4' "$work/out")" = 1 ] && holds &&
            grep -q 'copy of rank 1 on' "$work/err" && ! cmp -s "$work/one/m.gguf" "$(copy)" && good || bad "sent, $way, $mpi: $(tail -5 "$work/err")"
        # shellcheck disable=SC2086
        bench "$mpi" m.gguf --divide $way >"$work/out" 2>"$work/err" && [ "$(sent)" = 0 ] && good || bad "sent again, $way, $mpi: $(tail -5 "$work/err")"
    done
    rm -rf "$models"
    bench "$mpi" m.gguf --divide layers --shares 2,1,0 >"$work/out" 2>"$work/err"
    first=$(sent)
    bench "$mpi" m.gguf --divide layers --shares 0,1,0 >"$work/out" 2>"$work/err" &&
        awk "BEGIN { exit !($(sent) > 0 && $(sent) + $first < 1) }" && holds && good ||
        bad "another plan, $mpi: $first, then $(sent): $(tail -5 "$work/err")"
    "$build/tandem-llama" inspect "$(copy)" >"$work/out" 2>"$work/err"
    [ $? -ne 0 ] && grep -q 'is the part of a model that a rank' "$work/err" && good || bad "a part alone, $mpi: $(tail -5 "$work/err")"

    # One byte has changed; the copy is cut short, the record damaged, cut short, or gone with the copy.
    at=$(od -An -v -tu1 -w1 -j 200000 "$(copy)" | awk '$1 != 0 { print 200000 + NR - 1; exit }')
    printf '\0' | dd of="$(copy)" bs=1 seek="$at" conv=notrunc 2>/dev/null
    bench "$mpi" m.gguf --divide layers >"$work/out" 2>"$work/err" && grep -q 'do not hold what was written into them' "$work/err" && holds &&
        good || bad "a changed copy, $mpi: $(tail -5 "$work/err")"
    truncate -s 300000 "$(copy)"
    refetched --divide layers && good || bad "a copy cut short, $mpi: $(tail -5 "$work/err")"
    printf X | dd of="$(copy).record" bs=1 seek=40 conv=notrunc 2>/dev/null
    bench "$mpi" m.gguf --divide layers >"$work/out" 2>"$work/err" && grep -q 'the record of .* is damaged' "$work/err" && holds && good ||
        bad "a damaged record, $mpi: $(tail -5 "$work/err")"
    truncate -s 30 "$(copy).record"
    refetched --divide layers && good || bad "a record cut short, $mpi: $(tail -5 "$work/err")"
    rm "$(copy)"
    refetched --divide layers && good || bad "a copy that is gone, $mpi: $(tail -5 "$work/err")"

    # What is not ours stays as it is: a file without a record, a record of others, a link.
    name=$(basename "$(copy)" .part)
    for what in file record link; do
        rm -rf "$models"
        mkdir -p "$models"
        echo mine >"$work/mine"
        case $what in
        file) cp "$work/mine" "$models/$name.part" ;;
        record) cp "$work/mine" "$models/$name.part.record" ;;
        link) ln -s "$work/mine" "$models/$name.part" ;;
        esac
        bench "$mpi" m.gguf >"$work/out" 2>"$work/err" && grep -q 'is not a copy of ours' "$work/err" && cmp -s "$work/mine" "$models/$name".part* &&
            [ "$(cat "$work/mine")" = mine ] && [ "$(find "$models" -name '*.1-m.gguf.part' | wc -l)" = 1 ] && good ||
            bad "not ours, $what, $mpi: $(ls -l "$models"; tail -5 "$work/err")"
    done

    # Another file of the same name.
    rm -rf "$models"
    bench "$mpi" m.gguf >"$work/out" 2>"$work/err"
    "$build/tandem-llama" synth "$work/one/m.gguf" -q -y --shape 128,256,2,4,2,320 --type q8_0
    bench "$mpi" m.gguf >"$work/out" 2>"$work/err" && [ "$(find "$models" -name '*-m.gguf.part' | wc -l)" = 2 ] && good ||
        bad "another file, $mpi: $(tail -5 "$work/err")"
    "$build/tandem-llama" synth "$work/one/m.gguf" -q -y --shape 192,640,3,6,3,320 --type q4_0

    # Whole: another type of weights, and files that are read in place of mapped.
    for option in --type=q8_0 ""; do
        rm -rf "$models"
        TANDEM_MAP=${option:-copy} bench "$mpi" m.gguf ${option:+"$option"} >"$work/out" 2>"$work/err" &&
            [ "$(cmp -l "$work/one/m.gguf" "$(copy)" | wc -l)" = 1 ] && good || bad "whole, $option, $mpi: $(tail -5 "$work/err")"
    done

    # Two jobs at once, of two plans.
    rm -rf "$models"
    bench "$mpi" m.gguf >"$work/out" 2>"$work/err" &
    other=$!
    bench "$mpi" m.gguf --divide layers >"$work/out2" 2>"$work/err2"
    code=$?
    wait "$other" && [ $code -eq 0 ] && holds && [ "$(find "$models" -type f | wc -l)" = 2 ] && good ||
        bad "two at once, $mpi: $(ls "$models"; tail -n 5 "$work/err" "$work/err2")"

    # The text of ranks that all have the file; a tokenizer and a model of another format come whole.
    if [ -e "$data/stories260K.bin" ]; then
        cp "$data/stories260K.bin" "$data/tok512.bin" "$work/one"
        for model in stories.gguf "stories260K.bin -t tok512.bin"; do
            for way in rows layers mixed; do
                # shellcheck disable=SC2086
                want=$(cd "$work/one" && start "$mpi" -np 3 "$build/tandem-llama" run $model -p Zoo -n 40 --temp 0 --threads 1 --divide $way 2>"$work/err")
                # shellcheck disable=SC2086
                got=$(tell "$mpi" run $model -p Zoo -n 40 --temp 0 --threads 1 --divide $way 2>"$work/err")
                [ -n "$want" ] && [ "$got" = "$want" ] && good || bad "text, $model, $way, $mpi: $got, expected $want; $(tail -5 "$work/err")"
            done
        done
        cmp -s "$work/one/tok512.bin" "$models"/*-tok512.bin && cmp -s "$work/one/stories260K.bin" "$models"/*-stories260K.bin && good ||
            bad "whole files, $mpi: $(ls "$models")"
        printf X | dd of="$(echo "$models"/*-stories260K.bin)" bs=1 seek=300000 conv=notrunc 2>/dev/null
        tell "$mpi" run stories260K.bin -t tok512.bin -p Zoo -n 4 --threads 1 >"$work/out" 2>"$work/err"
        [ $? -eq 0 ] && grep -q 'do not hold what was written into them' "$work/err" && cmp -s "$work/one/stories260K.bin" "$models"/*-stories260K.bin &&
            good || bad "a changed whole file, $mpi: $(ls "$models"; tail -5 "$work/err")"
        # Other numbers of ranks, at a copy of other parts.
        rm -rf "$models"
        before=0
        for others in 3 1 2; do
            for way in layers rows; do
                # shellcheck disable=SC2086
                got=$(tell "$mpi" run stories.gguf -p Zoo -n 40 --temp 0 --threads 1 --divide $way 2>"$work/err")
                now=$(sed -nE 's/.*the copy of rank 1 on .* has ([0-9.]+) of.*/\1/p' "$work/err")
                [ "$got" = "$want" ] && awk "BEGIN { exit !($now >= $before) }" && good || bad "$others others, $way, $mpi: $got; $(tail -5 "$work/err")"
                before=$now
            done
        done
        # A plan by which a rank without the file computes alone: it needs all of it.
        rm -rf "$models"
        name=$(sed -n 's/^3 ranks (\(.*\)):.*/\1/p' "$work/err")
        links="\"links\": [{\"kind\": \"message\", \"transport\": \"$name\", \"ranks\": 2, \"from\": \"a\", \"to\": \"b\",
            \"samples\": [{\"bytes\": 8, \"median_us\": 100000, \"spread_us\": 0, \"count\": 1, \"when\": 0}]}]"
        awk -v links="$links" '/"checksum/ { if (!said++) print links; next } { print }' "$work/own.json" >"$work/two/table.json"
        sed 's/"median_us": /&9999/g' "$work/two/table.json" >"$work/one/table.json" # slow
        got=$(tell "$mpi" run stories.gguf -p Zoo -n 40 --temp 0 --threads 1 --table table.json 2>"$work/err")
        [ "$got" = "$want" ] && [ "$(grep -c 'plan: 1 of 3 ranks (rank 1 on' "$work/err")" = 1 ] && grep -q 'copy of rank 1 on .* has 1.0 of 1.0 MiB' "$work/err" &&
            good || bad "alone without the file, $mpi: $got; $(tail -5 "$work/err")"
    fi

    # Experts, by rows of each and whole.
    for experts in rows whole; do
        bench "$mpi" experts.gguf --experts "$experts" >"$work/out" 2>"$work/err" && [ "$(grep -c '^generation,4' "$work/out")" = 1 ] && good ||
            bad "experts, $experts, $mpi: $(tail -5 "$work/err")"
    done

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
        [ $? -ne 0 ] && [ "$(grep -c 'tandem-llama: rank 1 on .* are free for .* more of' "$work/err")" = 1 ] && good ||
            bad "a full disk, $mpi: $(ls -l "$work/small"; tail -5 "$work/err")"
        # Parts of two ranks in the same pages take no more than the file does.
        mount -o "remount,size=$(($(stat -c %s "$work/one/m.gguf") / 1024 + 64))k" "$work/small"
        bench "$mpi" m.gguf --divide rows --model-cache "$work/small" >"$work/out" 2>"$work/err" && good ||
            bad "a disk with room for the file, $mpi: $(ls -l "$work/small"; tail -5 "$work/err")"
        umount "$work/small"
    else
        skip "a small file system cannot be mounted here"
    fi
done
# Commands of several ranks.
ours() { pgrep -f "^$build/tandem-[a-z]* .*$work/"; }
await() { # TENTHS CONDITION...
    local n=$1
    shift
    for _ in $(seq "$n"); do
        "$@" && return 0
        sleep 0.1
    done
    return 1
}
nothing_left() { [ -z "$(ours)" ]; }
trained=("$data/stories260K.bin" -t "$data/tok512.bin" --threads 1)
for mpi in $mpis; do
    [ -e "$data/stories260K.bin" ] || { skip "no trained model"; break; }
    "$build/tandem-llama" compare "${trained[@]}" --other-cache f16 -p "Once upon a time" >"$work/alone" 2>"$work/err"
    start "$mpi" -np 2 "$build/tandem-llama" compare "${trained[@]}" --other-cache f16 -p "Once upon a time" >"$work/out" 2>"$work/err"
    [ $? -eq 0 ] && [ "$(cut -d'|' -f2,5,6 "$work/out")" = "$(cut -d'|' -f2,5,6 "$work/alone")" ] && good ||
        bad "compare, $mpi: $(cat "$work/out"; tail -5 "$work/err")"
    start "$mpi" -np 2 "$build/tandem-llama" compare "${trained[@]}" --types q8_0 >"$work/out" 2>"$work/err"
    [ $? -ne 0 ] && grep -q 'several ranks compare caches alone' "$work/err" && good || bad "compare of types, $mpi: $(tail -5 "$work/err")"
    start "$mpi" -np 2 "$build/tandem-llama" run "${trained[@]}" --draft lookup -n 8 >"$work/out" 2>"$work/err"
    [ $? -ne 0 ] && [ "$(grep -c 'drafts: not for a session of several ranks' "$work/err")" = 1 ] && good || bad "draft, $mpi: $(tail -5 "$work/err")"

    # Ctrl-C, which the launcher gets: all ranks end.
    limit=(timeout -s INT --kill-after=20 6)
    case $mpi in
    openmpi) "${limit[@]}" mpirun.openmpi --allow-run-as-root --oversubscribe -np 2 "$build/tandem-llama" bench "$work/one/m.gguf" \
        --gen 4000 --repeat 64 --threads 1 >"$work/out" 2>"$work/err" ;;
    mpich) "${limit[@]}" mpirun.mpich -np 2 "$build/tandem-llama" bench "$work/one/m.gguf" --gen 4000 --repeat 64 --threads 1 \
        >"$work/out" 2>"$work/err" ;;
    esac
    grep -q '2 ranks (' "$work/err" && await 100 nothing_left && good || bad "Ctrl-C, $mpi: left $(ours): $(tail -5 "$work/err")"
done

# Python: by the library's own MPI, and a program that brings mpi4py's (Debian's is of Open MPI).
export TANDEM_INFER_LIBRARY=$build PYTHONPATH=$PWD/bindings/python PYTHONDONTWRITEBYTECODE=1
example=(bindings/python/examples/ranks.py "$data/stories260K.bin" "1 403 407")
if command -v python3 >/dev/null && [ -e "$data/stories260K.bin" ]; then
    want=$(python3 "${example[@]}")
    for mpi in $mpis; do
        got=$(start "$mpi" -np 2 python3 "${example[@]}" 2>"$work/err")
        [ -n "$want" ] && [ "$got" = "$want" ] && good || bad "Python, $mpi: $got, expected $want; $(tail -5 "$work/err")"
    done
    for python in python3 /usr/bin/python3; do
        "$python" -c 'import mpi4py' 2>/dev/null && break
        python=
    done
    if [ -n "$python" ] && [[ $mpis == *openmpi* ]]; then
        got=$(start openmpi -np 3 "$python" "${example[@]}" mpi4py 2>"$work/err")
        [ "$got" = "$want" ] && good || bad "mpi4py: $got, expected $want; $(tail -5 "$work/err")"
    else
        skip "no mpi4py"
    fi
else
    skip "no python3 or trained model"
fi

# A server that lost a rank comes back with its saved texts; one rank alone reads them too.
if [ -x "$build/tandem-server" ] && command -v curl >/dev/null && [ -e "$data/stories260K.bin" ]; then
    serve() { # RANKS, then waits until it answers
        rm -f "$work/socket"
        local ranks=$1
        start "$mpi" -np "$ranks" "$build/tandem-server" "${trained[@]}" --host "unix:$work/socket" --context 256 --rank-limit 3 \
            --grace 1 --save "$work/saved" >"$work/out" 2>"$work/err" &
        launcher=$!
        await 300 curl -sf --unix-socket "$work/socket" http://x/health >/dev/null
    }
    ask() { curl -s -m 40 --unix-socket "$work/socket" http://x/completion \
        -d '{"prompt": "Once upon a time, there was a little girl named Lily. She", "n_predict": 8, "temperature": 0}'; }
    cached() { sed -nE 's/.*"tokens_cached":([0-9]+).*/\1/p;s/.*"cache_n":([0-9]+).*/\1/p' <<<"$1" | head -1; }
    end() {
        local pid
        for pid in $(pgrep -f "^$build/tandem-server .*$work/socket"); do
            grep -qsz '^\(OMPI_COMM_WORLD_RANK\|PMI_RANK\)=0$' "/proc/$pid/environ" && kill -TERM "$pid"
        done
        wait "$launcher"
    }
    for mpi in $mpis; do
        rm -f "$work/saved"
        serve 2
        first=$(ask)
        end
        [ -s "$work/saved" ] && good || bad "save, $mpi: $(tail -5 "$work/err")"
        for ranks in 2 3 1; do
            serve "$ranks"
            again=$(ask)
            end
            [ "$(grep -o '"content":"[^"]*"' <<<"$again")" = "$(grep -o '"content":"[^"]*"' <<<"$first")" ] &&
                ! grep -q 'begins with an empty cache' "$work/err" && grep -o '"[a-z_]*cache[a-z_]*":[0-9]*' <<<"$again" | grep -qv ':0$' && good ||
                bad "saved texts, $ranks ranks, $mpi: $first; $again; $(tail -5 "$work/err")"
        done
    done
else
    skip "no tandem-server, curl or trained model"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
