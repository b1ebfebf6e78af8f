#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: cluster.sh BUILD      (where tandem-llama, cluster-ranks and libtandem-mpi-*.so are)
# Models on ranks of every MPI that is here: the bits of ranks that are threads, golden texts, unequal
# shares, layers in sequence, chats; what is refused; ranks that die or hang. The last line is "N passed, N failed, N skipped".
set -u
cd "$(dirname "$0")/.."
build=$(cd "${1:-build/release}" && pwd)
work=$(mktemp -d)
stopped=
trap 'kill -KILL $stopped 2>/dev/null; rm -rf "$work"' EXIT
export TANDEM_TABLE=none TANDEM_DEVICE=none XDG_CACHE_HOME=$work
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
# Ranks of one machine; more of them than it has CPUs.
launch() { # MPI RANKS COMMAND...
    local mpi=$1 ranks=$2
    shift 2
    case $mpi in
    openmpi) timeout --kill-after=5 60 mpirun.openmpi --allow-run-as-root --oversubscribe -np "$ranks" "$@" ;;
    mpich) timeout --kill-after=5 60 mpirun.mpich -np "$ranks" "$@" ;;
    esac
}
# The process of rank 1 of a command that begins so.
rank_pid() {
    local pid
    for pid in $(pgrep -f "^$1"); do
        grep -qsz '^\(OMPI_COMM_WORLD_RANK\|PMI_RANK\)=1$' "/proc/$pid/environ" && echo "$pid"
    done
}

"$build/tandem-llama" synth "$work/dense.gguf" -q --shape 192,640,3,6,3,320 --type q4_0 &&
    "$build/tandem-llama" synth "$work/experts.gguf" -q --shape 128,256,2,8,4,320,8,2 --type q8_0 || exit 1

# A message that nobody receives does not keep its sender from closing.
for mpi in $mpis; do
    began=$SECONDS
    said=$(launch "$mpi" 2 "$build/cluster-ranks" unreceived mpi 2>&1)
    code=$?
    [ "$code" -ne 0 ] && [ "$code" -ne 124 ] && [ $((SECONDS - began)) -lt 30 ] && good || bad "a message that nobody receives, $mpi: code $code after $((SECONDS - began)) s: $said"
done

# The same bits, whatever carries the messages.
for model in dense experts; do
    for ranks in $([ "$model" = dense ] && echo 1 2 3 4 7 || echo 2 3 7); do
        want=$("$build/cluster-ranks" "$work/$model.gguf" "$ranks")
        [ -n "$want" ] || bad "$model, $ranks ranks: threads gave nothing"
        for mpi in $mpis; do
            got=$(launch "$mpi" "$ranks" "$build/cluster-ranks" "$work/$model.gguf" mpi 2>"$work/err")
            [ "$got" = "$want" ] && good ||
                bad "$model, $ranks ranks of $mpi: $got, threads: $want; $(head -3 "$work/err")"
        done
    done
    want=$("$build/cluster-ranks" "$work/$model.gguf" 3 5 0 2)
    for mpi in $mpis; do
        got=$(launch "$mpi" 3 "$build/cluster-ranks" "$work/$model.gguf" mpi 5 0 2 2>/dev/null)
        [ -n "$want" ] && [ "$got" = "$want" ] && good || bad "$model, shares 5,0,2 of $mpi: $got, $want"
    done
    # Experts whole on a rank each.
    for ranks in $([ "$model" = experts ] && echo 2 3 7); do
        want=$("$build/cluster-ranks" "$work/$model.gguf" "$ranks" whole)
        for mpi in $mpis; do
            got=$(launch "$mpi" "$ranks" "$build/cluster-ranks" "$work/$model.gguf" mpi whole 2>"$work/err")
            [ -n "$want" ] && [ "$got" = "$want" ] && good || bad "whole experts, $ranks ranks of $mpi: $got, $want; $(head -3 "$work/err")"
        done
    done
    # Layers in sequence split no sum: the bits of 2 ranks are those of any number.
    want=$("$build/cluster-ranks" "$work/$model.gguf" 2 layers)
    for ranks in 3 4 7; do
        got=$("$build/cluster-ranks" "$work/$model.gguf" "$ranks" layers)
        [ -n "$want" ] && [ "$got" = "$want" ] && good || bad "$model, layers of $ranks threads: $got, $want"
    done
    for mpi in $mpis; do
        for ranks in $([ "$model" = dense ] && echo 2 3 4 7 || echo 2 7); do
            got=$(launch "$mpi" "$ranks" "$build/cluster-ranks" "$work/$model.gguf" mpi layers 2>"$work/err")
            [ "$got" = "$want" ] && good || bad "$model, layers of $ranks ranks of $mpi: $got, $want; $(head -3 "$work/err")"
        done
        got=$(launch "$mpi" 3 "$build/cluster-ranks" "$work/$model.gguf" mpi layers 0 1 2 2>"$work/err")
        [ "$got" = "$want" ] && good || bad "$model, layers 0,1,2 of $mpi: $got, $want; $(head -3 "$work/err")"
    done
    # Batches of several texts in flight: the bits of one rank.
    want=$("$build/cluster-ranks" "$work/$model.gguf" 1 flights)
    for ranks in 2 3 4; do
        got=$("$build/cluster-ranks" "$work/$model.gguf" "$ranks" flights)
        [ -n "$want" ] && [ "$got" = "$want" ] && good || bad "$model, flights of $ranks threads: $got, $want"
        for mpi in $mpis; do
            got=$(launch "$mpi" "$ranks" "$build/cluster-ranks" "$work/$model.gguf" mpi flights 2>"$work/err")
            [ "$got" = "$want" ] && good || bad "$model, flights of $ranks ranks of $mpi: $got, $want; $(head -3 "$work/err")"
        done
    done
    # A prompt by layers, and then tokens by rows: the bits of the same ranks and shares.
    want=$("$build/cluster-ranks" "$work/$model.gguf" 3 mixed 5 0 2)
    for mpi in $mpis; do
        got=$(launch "$mpi" 3 "$build/cluster-ranks" "$work/$model.gguf" mpi mixed 5 0 2 2>"$work/err")
        [ -n "$want" ] && [ "$got" = "$want" ] && good || bad "$model, mixed, $mpi: $got, $want; $(head -3 "$work/err")"
    done
done

# The tool, as users start it.
data=${TANDEM_TEST_DATA:-../shared/data}/llama
if [ -e "$data/stories260K.bin" ]; then
    trained=("$data/stories260K.bin" -t "$data/tok512.bin" --temp 0 --threads 1)
    for mpi in $mpis; do
        launch "$mpi" 2 "$build/tandem-llama" run "${trained[@]}" -n 60 -p Zoo >"$work/out" 2>"$work/err"
        cmp -s "$work/out" "$data/golden-zoo-t0-n60.txt" && good || bad "run, $mpi: $(tail -3 "$work/err")"
        launch "$mpi" 3 "$build/tandem-llama" run "${trained[@]}" -n 60 -p Zoo --shares 2,1,1 \
            >"$work/out" 2>"$work/err"
        cmp -s "$work/out" "$data/golden-zoo-t0-n60.txt" && good || bad "shares, $mpi: $(tail -3 "$work/err")"
        launch "$mpi" 3 "$build/tandem-llama" run "${trained[@]}" -n 60 -p Zoo --divide layers >"$work/out" 2>"$work/err"
        cmp -s "$work/out" "$data/golden-zoo-t0-n60.txt" && grep -q 'equal shares by layers' "$work/err" && good ||
            bad "layers, $mpi: $(tail -3 "$work/err")"
        launch "$mpi" 3 "$build/tandem-llama" run "${trained[@]}" -n 60 -p Zoo --divide mixed >"$work/out" 2>"$work/err.mixed"
        cmp -s "$work/out" "$data/golden-zoo-t0-n60.txt" && grep -q 'equal shares mixed' "$work/err.mixed" && good ||
            bad "mixed, $mpi: $(tail -3 "$work/err.mixed")"
        grep -q 'resident at most: .* MiB on .*, .* MiB on .*, .* MiB on ' "$work/err" && good || bad "memory, $mpi: $(tail -3 "$work/err")"
        echo "Once upon a time" | "$build/tandem-llama" chat "${trained[@]}" --context 128 --chat-template plain -q >"$work/one" 2>&1
        echo "Once upon a time" | launch "$mpi" 2 "$build/tandem-llama" chat "${trained[@]}" --context 128 --chat-template plain -q \
            >"$work/out" 2>"$work/err"
        [ -s "$work/out" ] && cmp -s "$work/out" "$work/one" && good || bad "chat, $mpi: $(tail -3 "$work/err")"
    done
else
    skip "no trained model"
fi
for mpi in $mpis; do
    launch "$mpi" 2 "$build/tandem-llama" bench "$work/dense.gguf" --prompt 16 --gen 4 --repeat 1 --threads 1 --output csv \
        >"$work/out" 2>"$work/err"
    [ "$(grep -c '^prompt,16\|^generation,4' "$work/out")" = 2 ] && good || bad "bench, $mpi: $(tail -3 "$work/err")"
done

# Links.
for mpi in $mpis; do
    launch "$mpi" 2 "$build/mulmat-tune" bench --links -f "$work/links-$mpi.json" >"$work/out" 2>"$work/err"
    grep -q 'all-reduce of 2 ranks' "$work/out" && [ "$(grep -c '"ranks"' "$work/links-$mpi.json")" = 4 ] &&
        grep -q '"beside": "links"' "$work/links-$mpi.json" && good ||
        bad "links, $mpi: $(tail -3 "$work/err")"
done
"$build/mulmat-tune" bench --links >"$work/out" 2>&1
[ $? -ne 0 ] && grep -q 'measured between ranks' "$work/out" && good || bad "links of one rank: $(cat "$work/out")"

# Plans: of a list of machines; of ranks, whose tables and links are made up, so that one way is clear.
list() { # LATENCY_US GBIT_S
    local table=$PWD/bench-data/desktop-8gb-computed/table.json
    printf '{"machines": [{"name": "one", "table": "%s"}, {"name": "two", "table": "%s"}],
        "links": [{"latency_us": %s, "gbit_s": %s}]}' "$table" "$table" "$1" "$2" >"$work/list.json"
}
list 1 100
"$build/tandem-llama" fit 8B --machines "$work/list.json" >"$work/out" 2>&1
grep -q '^\* 2 .*one, two' "$work/out" && good || bad "fit, fast links: $(cat "$work/out")"
list 50000 0.01
"$build/tandem-llama" fit 8B --machines "$work/list.json" --json >"$work/out" 2>&1
grep -q '"best": 1' "$work/out" && good || bad "fit, slow links: $(cat "$work/out")"
for want in home-ethernet:8B:4 home-wifi:8B:4 home-wifi:70B:3 home-prima:8B:3 two-sockets:70B:2 eight-servers:70B:8; do
    IFS=: read -r name model ranks <<<"$want"
    "$build/tandem-llama" fit "$model" --machines "bench-data/clusters-computed/$name.json" --json >"$work/out" 2>&1
    grep -q "\"best\": $ranks," "$work/out" && good || bad "fit $want: $(head -3 "$work/out")"
done
"$build/tandem-llama" fit 70B --machines bench-data/clusters-computed/home-wifi.json --json >"$work/out" 2>&1
grep -q '"ranks": 3, .*"division": "layers", "by_rows_prompt_tps"' "$work/out" && good || bad "fit, layers: $(cat "$work/out")"
"$build/tandem-llama" fit 70B --machines bench-data/clusters-computed/home-wifi.json --divide rows >"$work/out" 2>&1
grep -q '^\* 2 .* rows ' "$work/out" && grep -q '^By layers: not asked for' "$work/out" && good || bad "fit, rows: $(cat "$work/out")"
"$build/tandem-llama" fit 8B --machines bench-data/clusters-computed/home-ethernet.json --json >"$work/out" 2>&1
grep -q '"ranks": 4, .*"layers": .*"division": "mixed", "prompt_batch": [0-9]*, "by_rows_prompt_tps"' "$work/out" && good ||
    bad "fit, mixed: $(cat "$work/out")"
"$build/tandem-llama" fit 8B --machines bench-data/clusters-computed/home-wifi.json >"$work/out" 2>&1
grep -q '^Batches of .* by layers; the first one generates tokens alone' "$work/out" && good || bad "fit, one generates: $(cat "$work/out")"
"$build/tandem-llama" fit 70B --machines bench-data/clusters-computed/home-gpus.json >"$work/out" 2>&1
grep -q '^large .* GiB of it on cuda' "$work/out" && grep -q '^large without its cuda ' "$work/out" && good || bad "fit, devices: $(cat "$work/out")"
said=$("$build/tandem-llama" fit 70B --machines bench-data/clusters-computed/home-wifi.json --divide heads 2>&1)
[ $? -eq 1 ] && [[ $said == *"'heads': expected rows, layers or mixed"* ]] && good || bad "fit, divide heads: $said"
said=$("$build/tandem-llama" fit 8B --machines "$work/none.json" 2>&1)
[ $? -eq 1 ] && [[ $said == *none.json* ]] && good || bad "fit, no list: $said"

# A table of this machine for the model, and a link of it between its ranks.
env -u TANDEM_TABLE "$build/mulmat-tune" bench --model "$work/dense.gguf" -m 1,8,512 --threads 1 --profile cpu -q -y -f "$work/own.json" \
    >"$work/out" 2>&1 || bad "bench: $(tail -3 "$work/out")"
planned=("$work/dense.gguf" --prompt 16 --gen 4 --repeat 1 --threads 1 --table "$work/own.json")
for mpi in $mpis; do
    launch "$mpi" 2 "$build/tandem-llama" bench "${planned[@]}" >"$work/out" 2>"$work/err"
    [ $? -eq 0 ] && grep -q 'equal shares by rows: the table of rank 0 has no links' "$work/err" && good ||
        bad "plan without links, $mpi: $(tail -5 "$work/err")"
    name=$(sed -n 's/^2 ranks (\(.*\)):.*/\1/p' "$work/err")
    for slow in 0 1; do # microseconds of a message: nothing, or a second
        link="\"links\": [{\"kind\": \"message\", \"transport\": \"$name\", \"ranks\": 2, \"from\": \"a\", \"to\": \"b\",
            \"samples\": [{\"bytes\": 8, \"median_us\": ${slow}00000.1, \"spread_us\": 0, \"count\": 1, \"when\": 0}]}]"
        awk -v link="$link" '/"checksum_later"/ { next } /"checksum"/ { print link; next } { print }' \
            "$work/own.json" >"$work/linked.json"
        planned[10]=$work/linked.json
        launch "$mpi" 2 "$build/tandem-llama" bench "${planned[@]}" >"$work/out" 2>"$work/err"
        code=$?
        want=$([ $slow = 1 ] && echo 'plan: 1 of 2 ranks' || echo 'plan: [12] of 2 ranks')
        [ $code -eq 0 ] && grep -q "$want" "$work/err" && [ "$(grep -c 'tg4' "$work/out")" = 1 ] && good ||
            bad "plan, slow $slow, $mpi: code $code, $(tail -5 "$work/err")"
        for divide in layers mixed; do
            launch "$mpi" 2 "$build/tandem-llama" bench "${planned[@]}" --shares 1,2 --divide "$divide" >"$work/out" 2>"$work/err"
            [ $? -eq 0 ] && [ "$(grep -c 'tg4' "$work/out")" = 1 ] && good || bad "bench, $divide, $mpi: $(tail -5 "$work/err")"
        done
    done
    launch "$mpi" 2 "$build/tandem-llama" fit "$work/dense.gguf" --threads 1 --table "$work/linked.json" >"$work/out" 2>"$work/err"
    [ "$(grep -c '^\* 1 ' "$work/out")" = 1 ] && good || bad "fit of ranks, $mpi: $(cat "$work/out" "$work/err")"
done

# The server: rank 0 serves. A rank that is killed or hangs ends it with 503 and a code of its own.
if [ -x "$build/tandem-server" ] && command -v curl >/dev/null && [ -e "$data/stories260K.bin" ]; then
    serve() { # OPTIONS...: as `launcher`
        rm -f "$work/socket"
        launch "$mpi" 2 "$build/tandem-server" "$data/stories260K.bin" -t "$data/tok512.bin" --host "unix:$work/socket" \
            --threads 1 --context 256 --grace 1 "$@" >"$work/out" 2>"$work/err" &
        launcher=$!
        for _ in $(seq 200); do
            curl -sf --unix-socket "$work/socket" http://x/health >/dev/null && break
            sleep 0.1
        done
    }
    ask() { curl -s -m 40 -w ' code %{http_code}' --unix-socket "$work/socket" http://x/completion \
        -d '{"prompt": "Zoo", "n_predict": 20, "temperature": 0}'; }
    for mpi in $mpis; do
        serve --rank-limit 3
        first=$(ask) second=$(ask)
        [[ $first == *'"content"'*'code 200' ]] && [ "$(grep -o '"content":"[^"]*"' <<<"$first")" = "$(grep -o '"content":"[^"]*"' <<<"$second")" ] &&
            good || bad "server, $mpi: $first $second $(tail -3 "$work/err")"
        # Texts at the same time, in several batches, are what each is alone.
        answers() { # a line of each prompt, of several at once
            local word pids=()
            for word in Zoo Tom Lily Sun; do
                curl -s -m 40 --unix-socket "$work/socket" http://x/completion -d '{"prompt": "'"$word"'", "n_predict": 30, "temperature": 0}' |
                    grep -o '"content":"[^"]*"' >"$work/said.$word" &
                pids+=($!)
                [ "$1" = together ] || wait "${pids[@]}"
            done
            wait "${pids[@]}"
            cat "$work"/said.*
        }
        alone=$(answers alone)
        kill -TERM $(pgrep -f "^mpirun.$mpi .*unix:$work/socket")
        wait "$launcher"
        serve --rank-limit 3 --divide layers --parallel 4
        together=$(answers together)
        [ "$(wc -l <<<"$alone")" = 4 ] && [ "$alone" = "$together" ] && good || bad "texts together, $mpi: $alone; $together $(tail -3 "$work/err")"
        victim=$(rank_pid "$build/tandem-server $data/stories260K.bin") # the one that does not listen
        stopped=$victim
        kill -STOP "$victim"
        third=$(ask)
        kill -KILL "$victim"
        [[ $third == *'rank 1 on'*'code 503' ]] && good || bad "server without a rank, $mpi: $third $(tail -3 "$work/err")"
        wait "$launcher"
        code=$?
        [ "$code" -ne 0 ] && good || bad "server's end, $mpi: code $code"
        stopped=
        # A launcher that is told to end has its ranks save what they know.
        rm -f "$work/texts"
        for known in '"cache_n":0,' '"cache_n":[1-9]'; do
            serve --save "$work/texts"
            said=$(ask)
            kill -TERM $(pgrep -f "^mpirun.$mpi .*unix:$work/socket")
            wait "$launcher"
            grep -q "$known" <<<"$said" && [ -s "$work/texts" ] && good || bad "server that saves, $mpi: $said $(tail -3 "$work/err")"
        done
    done
else
    skip "no tandem-server, curl or trained model"
fi

# What is refused. (Two programs in one launch: each rank has its own file.)
for mpi in $mpis; do
    other=(: -np 1 "$build/cluster-ranks" "$work/experts.gguf" mpi)
    said=$(launch "$mpi" 1 "$build/cluster-ranks" "$work/dense.gguf" mpi "${other[@]}" 2>&1)
    [[ $said == *"rank 1 on "*"has another model file than rank 0"* ]] && good || bad "another file, $mpi: $said"
    said=$(launch "$mpi" 2 "$build/tandem-llama" bench "$work/dense.gguf" --shares 1 2>&1)
    [ $? -ne 0 ] && [[ $said == *"--shares '1': expected 2 numbers"* ]] && good || bad "wrong shares, $mpi: $said"
    said=$(launch "$mpi" 2 "$build/tandem-llama" bench "$work/dense.gguf" --divide mixed --layer-shares 2,1 2>&1)
    [ $? -ne 0 ] && [[ $said == *"expected --shares beside it"* ]] && good || bad "shares of layers alone, $mpi: $said"
    said=$(launch "$mpi" 2 "$build/tandem-llama" run "$work/none.gguf" -q 2>&1)
    [ $? -ne 0 ] && [[ $said == *none.gguf* ]] && good || bad "no file, $mpi: $said"
    [ "$mpi" = openmpi ] || [[ $said != *MPI_Abort* ]] && good || bad "MPI adds nothing, $mpi: $said"
done

# A rank dies, or hangs, in the middle: all end in time, and who it was is said.
long=("$work/dense.gguf" --prompt 8 --gen 2000 --repeat 64 --threads 1 --rank-limit 2)
bench="$build/tandem-llama bench $work/dense.gguf"
for mpi in $mpis; do
    for case in KILL:rows STOP:rows KILL:layers STOP:layers; do
        IFS=: read -r signal divide <<<"$case"
        rm -f "$work/err"
        launch "$mpi" 3 "$build/tandem-llama" bench "${long[@]}" --divide "$divide" >"$work/out" 2>"$work/err" &
        launcher=$!
        for _ in $(seq 100); do
            grep -qs "3 ranks (" "$work/err" && break
            sleep 0.1
        done
        victim=$(rank_pid "$bench")
        [ -n "$victim" ] && kill -"$signal" "$victim"
        [ "$signal" = STOP ] && stopped=$victim
        begin=$SECONDS
        if [ "$signal" = STOP ]; then
            for _ in $(seq 500); do # a busy machine takes its time
                grep -q "rank 1 on .* did not take part in .* no \(answer\|sign of life\) within 2.0 s" "$work/err" && break
                sleep 0.1
            done
            # MPICH's launcher waits for what is stopped.
            [ "$mpi" = mpich ] && kill -KILL "$victim" 2>/dev/null
        fi
        wait "$launcher"
        code=$?
        took=$((SECONDS - begin))
        [ "$code" -ne 0 ] && [ "$took" -le 60 ] && good || bad "$signal, $divide, $mpi: code $code after $took s"
        if [ "$signal" = STOP ]; then
            grep -q "rank 1 on .* did not take part in .* no \(answer\|sign of life\) within 2.0 s" "$work/err" && good ||
                bad "$signal, $divide, $mpi: $(tail -5 "$work/err")"
            kill -KILL "$victim" 2>/dev/null
            stopped=
        fi
        sleep 0.3
        [ -z "$(pgrep -f "^$bench")" ] && good || bad "$signal, $divide, $mpi: a rank is left: $(pgrep -f "^$bench")"
    done
done

# Nothing else is linked with MPI.
for file in "$build"/libtandem.so.* "$build"/libtandem-llama.so.* "$build/tandem-llama"; do
    [ -e "$file" ] || continue
    ldd "$file" | grep -qi 'mpi' && bad "$file is linked with MPI" || good
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
