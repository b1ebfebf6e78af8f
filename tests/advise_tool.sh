#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: advise_tool.sh BUILD       (needs BUILD/mulmat-tune and BUILD/tandem-llama)
# Runs mulmat-tune advise as a user does, with a llama-bench of ours that prints what the real one
# prints, and ones that misbehave. The last line is "N passed, N failed, N skipped".
set -u
cd "$(dirname "$0")/.."
build=$PWD/${1:-build/release}
server=$PWD/bench-data/server-a100-computed/table.json
macbook=$PWD/bench-data/macbook-pro-2018/table.txt
compare_peers=$PWD/tools/dev/compare_peers.sh
zen4=$PWD/bench-data/epyc-zen4-2-cores/table.json
unset TANDEM_LOG TANDEM_CPU TANDEM_TABLE TANDEM_THREADS TANDEM_TRACE
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/cache XDG_DATA_DIRS=$work/share
cd "$work" || exit 1
passed=0 failed=0 skipped=0

# What the tool calls JSON is read by another reader.
is_json() { # FILE
    if ! command -v python3 >/dev/null; then
        echo "skipped: no python3 to read JSON"
        skipped=$((skipped + 1))
    elif python3 -m json.tool "$1" >/dev/null; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: advise --json: no JSON"
    fi
}

# try CODE PART ARGUMENT...: the tool ends with this code, and PART stands in what it prints.
try() {
    local code=$1 part=$2 got
    shift 2
    timeout 120 "$build/mulmat-tune" advise "$@" >out 2>&1
    got=$?
    if [ "$got" -ne "$code" ] || ! grep -qF -- "$part" out; then
        failed=$((failed + 1))
        echo "FAILED: advise $*: exit code $got, expected $code and '$part'"
        head -5 out
    else
        passed=$((passed + 1))
    fi
}

# A llama-bench: one line for each of its -t, -ub, prompt and generation. More threads are slower in
# generation, as on a machine whose memory one thread saturates. $MODE: what it does wrong.
cat >llama-bench <<'EOF'
#!/usr/bin/env bash
echo "$*" >>calls
case ${MODE:-} in
hang) sleep 600 ;;
fail) echo 'error: unknown model architecture' >&2; exit 1 ;;
noise) echo '{"n_prompt": 512}'; exit 0 ;;
silent) exit 0 ;;
old) case "$*" in *--repack*) echo 'error: invalid parameter: --repack' >&2; exit 1 ;; esac ;;
esac
ngl=0 moe=0 repack=true nopo=0 ub=512
while [ $# -gt 0 ]; do
    case $1 in
    -p) p=$2 ;; -n) n=$2 ;; -t) t=$2 ;; -ub) ub=$2 ;; -ngl) ngl=$2 ;; -ncmoe) moe=$2 ;;
    --repack) repack=false ;; -nopo) nopo=$2 ;;
    esac
    shift
done
one() { # PROMPT GENERATED THREADS UBATCH NANOSECONDS
    echo '{"build_commit": "c0ffee1", "build_number": 7321, "gpu_info": "", "backends": "CPU",' \
        "\"model_size\": $BYTES, \"model_n_params\": $WEIGHTS, \"n_ubatch\": $4, \"n_threads\": $3," \
        "\"type_k\": \"f16\", \"n_gpu_layers\": $ngl, \"n_cpu_moe\": $moe, \"repack\": $repack," \
        "\"no_op_offload\": $nopo, \"n_prompt\": $1, \"n_gen\": $2, \"n_depth\": 0," \
        "\"samples_ns\": [$5, $(($5 + 1000)), $(($5 - 1000))]}"
}
for threads in ${t//,/ }; do
    for ubatch in ${ub//,/ }; do
        for prompt in ${p//,/ }; do
            one "$prompt" 0 "$threads" "$ubatch" $((prompt * 4000000 / threads))
        done
        [ "$n" -eq 0 ] || one 0 "$n" "$threads" "$ubatch" $((n * 10000000 * threads))
    done
done
EOF
chmod +x llama-bench

"$build/tandem-llama" synth m.gguf --shape 256,704,2,4,4,512 >/dev/null 2>&1
try 0 "What this cannot tell" m.gguf --table "$zen4"
try 0 "has no timing table yet" m.gguf
try 0 '"ubatch": null' m.gguf --table "$zen4" --json
try 0 " -ngl 3" m.gguf --device-memory 1
try 1 "/nope: cannot open" m.gguf --table /nope
try 1 "nothing.gguf" nothing.gguf
try 2 "expected llama.cpp" m.gguf --for ollama
try 2 "expected" m.gguf --device-memory -1
try 1 "cannot be run" m.gguf --measure /nowhere/llama-bench
try 1 "status 127" m.gguf --measure "$work"

# Of another model nothing is kept; the message says how large ours is.
BYTES=1 WEIGHTS=1 try 1 "it measured a model of 1 bytes" m.gguf --measure ./llama-bench
read -r BYTES WEIGHTS <<<"$(sed -n 's/.*expected \([0-9]*\) and \([0-9]*\)$/\1 \2/p' out)"
export BYTES WEIGHTS

MODE=fail try 1 "unknown model architecture" m.gguf --measure ./llama-bench
MODE=noise try 1 "backends" m.gguf --measure ./llama-bench
MODE=silent try 1 "printed no result" m.gguf --measure ./llama-bench
MODE=hang try 1 "no end within the budget" m.gguf --measure ./llama-bench --budget 2
MODE=old try 0 "whether repacking of weights pays" m.gguf --measure ./llama-bench
rm -rf cache calls
try 0 "by times of llama.cpp 7321 (c0ffee1), CPU" m.gguf --measure ./llama-bench
try 0 "repacking stays on" m.gguf
try 0 '"generation_tps": 100' m.gguf --json
is_json out
try 0 '"times_of": "llama.cpp 7321' m.gguf m.gguf --json
is_json out
[ "$(wc -l <calls)" -eq 3 ] && passed=$((passed + 1)) || { failed=$((failed + 1)); cat calls; }

# With a device: it is measured with and without, and these times, which are the same, let it stay.
try 0 "the device pays" m.gguf --measure ./llama-bench --device-memory 1
"$build/mulmat-tune" table show >out 2>&1
grep -q 'llama.cpp 7321 (c0ffee1), CPU: generation of 32 tokens' out &&
    passed=$((passed + 1)) || { failed=$((failed + 1)); echo "FAILED: table show"; }

# A table that is named keeps the times; other layers do not.
cp cache/tandem/*.json named.json
try 0 "by times of" m.gguf --table named.json --measure ./llama-bench
try 1 "cpu_model" m.gguf --table "$server" --measure ./llama-bench
try 1 "does not say whose machine" m.gguf --table "$macbook" --measure ./llama-bench

# ---- tools/dev/compare_peers.sh: the same program as two peers ----
compare() { # CODE PART ARGUMENT..
    local code=$1 part=$2
    shift 2
    BUILD=$build ROUNDS=2 THREADS=1 bash "$compare_peers" "$@" >out 2>&1
    if [ $? -eq "$code" ] && grep -qF -- "$part" out; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: compare_peers $*: expected $code and '$part'"
        tail -3 out
    fi
}
compare 0 '| `./llama-bench -fa 1`, build 7321 (c0ffee1) | 250.0 | 250.0 | 250.0 | 100.0 |' \
    m.gguf ./llama-bench -fa 1 -- ./llama-bench
compare 0 '| Tandem over the fastest other |' m.gguf ./llama-bench
MODE=fail compare 1 'unknown model architecture' m.gguf ./llama-bench
MODE=silent compare 1 'printed no result' m.gguf ./llama-bench
compare 1 'cannot be run' m.gguf ./nothing
compare 1 'cannot be read' nothing.gguf ./llama-bench
compare 2 'usage:' m.gguf

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
