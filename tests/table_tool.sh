#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: table_tool.sh BUILD       (needs BUILD/mulmat-tune)
# Runs mulmat-tune table as a user does: all actions, errors, exit codes, two writers at once. The
# last line is "N passed, N failed, N skipped".
set -u
cd "$(dirname "$0")/.."
tune=$PWD/${1:-build/release}/mulmat-tune
unset TANDEM_LOG TANDEM_CPU TANDEM_TABLE TANDEM_THREADS TANDEM_TRACE
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/cache XDG_DATA_DIRS=$work/share
export TANDEM_DEVICE=none # devices take long to open and change nothing here
cd "$work" || exit 1
passed=0 failed=0

# try CODE PART ARGUMENT...: the tool ends with this code, and PART stands in what it prints.
try() {
    local code=$1 part=$2 got
    shift 2
    timeout 120 "$tune" table "$@" >out 2>&1
    got=$?
    if [ "$got" -ne "$code" ] || ! grep -qF -- "$part" out; then
        failed=$((failed + 1))
        echo "FAILED: table $*: exit code $got, expected $code and '$part'"
        head -5 out
    else
        passed=$((passed + 1))
    fi
}

# A table of the machine in the words of $1: members of the fingerprint; curves of backends $2...
table() {
    local fingerprint=$1 before="" backend
    shift
    echo "{\"version\": 2, \"fingerprint\": {$fingerprint}, \"profiles\": [], \"curves\": ["
    for backend in "$@"; do
        echo "$before{\"op\": \"mul_mat\", \"type\": \"q4_0\", \"n\": 64, \"k\": 32, \"backend\":" \
            "\"$backend\", \"stage\": \"compute\", \"task\": \"node\", \"parallel\": false," \
            "\"own_threads\": false, \"threads\": 1, \"samples\": [{\"m\": 1, \"median_us\": 5," \
            "\"spread_us\": 1, \"count\": 3, \"when\": 1000000000}, {\"m\": 8, \"median_us\": 9," \
            "\"spread_us\": 0.1, \"count\": 3, \"when\": 4000000000}]}"
        before=,
    done
    echo "]}"
}
table '' cpu openblas >any.json
table '"cpu_model": "abacus"' cpu openblas opencl >foreign.json
table '"openblas": "another"' cpu openblas >blas.json
echo '{"version": 2,' >broken.json

try 2 "usage: mulmat-tune table ACTION"
try 0 "usage: mulmat-tune table ACTION" --help
try 2 "unknown action 'mend'" mend
for action in list show merge check prune; do
    try 0 "usage: mulmat-tune table $action" "$action" --help
done
try 0 "is not there" list
try 1 "" show # no table serves here yet
try 0 "4 cells in all" show any.json
try 0 "mul_mat  q4_0   openblas" show any.json
try 0 '"version": 2' show --json any.json
try 1 "broken.json" show broken.json
try 0 "4 of 4 cells serve" check any.json
try 1 "measured with cpu_model 'abacus'" check foreign.json
try 1 "2 of 6 cells serve" check foreign.json # the device's
try 1 "broken.json" check any.json broken.json
try 2 "FILE.. is missing" merge out.json
try 0 "out.json: 4 cells" merge out.json any.json
try 0 "out.json: 4 cells" merge out.json any.json any.json
table '"cpu_model": "slide rule"' cpu >other.json # no <(...): a bare chroot has no /dev/fd
try 1 "measured with cpu_model" merge foreign.json other.json
try 0 "2 of 4 cells removed" prune -backend openblas out.json
try 0 "1 of 2 cells removed" prune -older_than 365 out.json
try 0 "0 of 1 cells removed" prune --type f16 out.json
try 0 "4 of 6 cells removed" prune foreign.json
try 2 "no weight type" prune --type f17 out.json
try 1 "none.json" prune none.json

# What several processes add to one file is all there.
for i in 1 2 3 4 5 6; do
    table '' "backend$i" >"part$i.json"
done
pids=""
for i in 1 2 3 4 5 6; do
    "$tune" table merge all.json "part$i.json" >/dev/null 2>&1 &
    pids="$pids $!"
done
# shellcheck disable=SC2086
wait $pids
try 0 "12 cells in all" show all.json

# A table of another version, or with a flipped byte, is not replaced without a copy of it.
echo '{"version": 3, "curves": []}' >newer.json
cp newer.json newer.txt
try 1 "version 3" merge newer.json any.json
try 1 "newer.txt" prune newer.txt
if cmp -s newer.json newer.txt; then
    passed=$((passed + 1))
else
    failed=$((failed + 1))
    echo "FAILED: a table of another version was replaced"
fi
for file in newer.json broken.json; do # as bench writes: its own table, and the file it was told
    cp "$file" old.json
    TANDEM_TABLE=$work/old.json timeout 120 "$tune" bench --model 64x32 -m 1 --threads 1 \
        --profile cpu --file "$work/asked.json" -y >out 2>&1
    cp "$file" asked.json
    TANDEM_TABLE=$work/old2.json timeout 120 "$tune" bench --model 64x32 -m 1 --threads 1 \
        --profile cpu --file "$work/asked.json" -y >>out 2>&1
    kept=$(grep -cE 'kept whole as (old|asked)\.json\.bad-' out)
    if [ "$kept" -eq 2 ] && cmp -s "$file" old.json.bad-2* && cmp -s "$file" asked.json.bad-2*; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: bench did not keep $file"
        cat out
    fi
    rm -f old*.json* asked.json*
done

# Names of others reach a terminal with what it would follow made visible; JSON stays JSON.
table '"cpu_model": "\u009b31mred\u007f\u202eabacus"' cpu >escapes.json
try 0 '\u009b31mred\x7f\u202eabacus' show escapes.json
try 0 '\u009b31mred\u007f' show --json escapes.json
cp out escapes2.json
try 0 '\u009b31mred\x7f\u202eabacus' show escapes2.json
try 1 'red\x7f' check escapes.json
try 1 'gone\x1b[2J' show "$(printf 'gone\033[2J')"

# Layers: the machine's own file, and one that stands in for it.
own=$("$tune" table list | sed -n 's/^user *//p')
mkdir -p "$(dirname "$own")" "$work/share/tandem"
cp any.json "$own"
try 0 "serves: 4 cells" list
try 0 "4 of 4 cells serve" check
TANDEM_TABLE=$work/out.json try 0 "serves: 1 cells" list
TANDEM_TABLE=none try 0 "no table is wanted" list
cp all.json "$work/share/tandem/$(basename "$own")"
try 0 "16 cells in all" show

# ---- as the published tool is called ----

# say CODE PART COMMAND...: mulmat-tune ends with this code, and PART stands in what it prints.
say() {
    local code=$1 part=$2 got
    shift 2
    timeout 120 "$@" >out 2>err
    got=$?
    if [ "$got" -ne "$code" ] || ! cat out err | grep -qF -- "$part"; then
        failed=$((failed + 1))
        echo "FAILED: $*: exit code $got, expected $code and '$part'"
        head -5 out err
    else
        passed=$((passed + 1))
    fi
}
export TANDEM_TABLE=$work/published.json
cell=(--threads 1 --effort estimate)
say 0 "128 64" "$tune" bench -m 128x64 -t Q4_0 --m-step 2 -num_m 3 "${cell[@]}"
say 0 "written: f.txt" "$tune" bench -m 64x32 -t f16 -f f.txt "${cell[@]}" --profile cpu
say 0 "64 32" cat f.txt
say 0 "mul_mat:q4_0:n64:k32:m3" "$tune" bench --model 64x32 -m 3 "${cell[@]}" --profile cpu
say 0 "share one row in a text table" "$tune" bench --model 256x256 -m 1 "${cell[@]}" -y -f f.txt
say 2 "from 1 to 65536, or a model" "$tune" bench -m 0
say 2 "model 'B7' is neither a file nor known" "$tune" bench -m B7
say 2 "expected 4096x4096 or 4096x4128" "$tune" bench -m 4096x4097
say 2 "expected 4096x4096 or 4096x4128" "$tune" explain -m 4096x4097 -t q4_0
say 2 "expected 64x256" "$tune" explain -m 64x32 -t q4_K
say 0 "N 8192 x K 22016" "$tune" explain -m 64B
say 0 "N 4096 x K 11008" "$tune" explain -m 7b -t q8_0
say 0 "--type, -t T" "$tune" bench --help
say 1 "nothing was measured" "$tune" bench --model 1000000x1000000 --budget 1 --threads 1
say 2 "expected a weight type at the end" "$tune" explain foo
say 2 "profile 'nonsense' does not exist" "$tune" bench --model 64x32 --profile nonsense
# signalled SIGNAL COMMAND...: sends the signal as soon as progress tells of a measurement (a busy machine waits
# for quiet before the first); leaves the exit code in $code.
signalled() {
    local signal=$1 pid
    shift
    timeout -s "$signal" 100 "$@" >out 2>err &
    pid=$!
    for _ in $(seq 400); do
        grep -qF ' left, ' err && break
        sleep 0.1
    done
    kill -s "$signal" "$pid" # timeout passes it on
    wait "$pid"
    code=$?
}
signalled TERM "$tune" bench --model 512x512 --threads 1 --budget 60 -y -f stopped.json
if [ $code -eq 143 ] && grep -q "they are kept" err && [ -s stopped.json ]; then
    passed=$((passed + 1))
else
    failed=$((failed + 1))
    echo "FAILED: SIGTERM keeps what was measured: exit code $code"
    cat err
fi
# Alone it measures a 7B to the screen; the first Ctrl-C ends it and keeps what there is.
signalled INT "$tune"
if [ $code -eq 130 ] && grep -q "model 7B with q4_0" err && grep -q "Ctrl-C" err &&
    grep -q "they are kept" err && grep -qE "^1 7B Q4_0|nothing is printed" out err; then
    passed=$((passed + 1))
else
    failed=$((failed + 1))
    echo "FAILED: mulmat-tune alone: exit code $code"
    cat err
fi
unset TANDEM_TABLE

# A table in the working directory serves a program that has no other.
export XDG_CACHE_HOME=$work/cache2 XDG_DATA_DIRS=$work/share2
mkdir -p place && cp f.txt place/mulmat-tune.txt && cd place || exit 1
try 0 "working $work/place/mulmat-tune.txt" list
TANDEM_TABLE=none try 0 "no table is wanted" list
cd ..

# What cannot be kept is said before it is measured; a file serves without a place of the machine's own.
small=("$tune" bench --model 64x64 -m 1 --budget 600 --threads 1)
for place in "" HOME="$work/f.txt"; do
    if ! timeout 60 env -u HOME -u XDG_CACHE_HOME $place "${small[@]}" >out 2>&1 && grep -q -- "--file writes elsewhere" out; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: no place for the machine's table, '$place': $(head -3 out)"
    fi
done
if env -u HOME -u XDG_CACHE_HOME "${small[@]/600/3}" -f alone.json -y >out 2>&1 && [ -s alone.json ] && grep -q "only alone.json will be written" out; then
    passed=$((passed + 1))
else
    failed=$((failed + 1))
    echo "FAILED: a file alone: $(tail -3 out)"
fi
try 1 "nowhere.json: cannot open" check nowhere.json
if grep -q "nowhere.json: nowhere.json" out; then failed=$((failed + 1)) && echo "FAILED: a name twice"; fi

# A table that is named must be there.
if "$tune" test --oracle --table no-such-table --budget 1 >out 2>&1 || ! grep -q "no-such-table: cannot open" out; then
    failed=$((failed + 1))
    echo "FAILED: test --oracle --table no-such-table"
else
    passed=$((passed + 1))
fi
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
