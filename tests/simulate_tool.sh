#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: simulate_tool.sh BUILD       (needs BUILD/mulmat-tune)
# Runs mulmat-tune simulate as a user does: for machines that are not here, with its mistakes. The
# last line is "N passed, N failed, N skipped".
set -u
cd "$(dirname "$0")/.."
tune=$PWD/${1:-build/release}/mulmat-tune
unset TANDEM_LOG TANDEM_CPU TANDEM_TABLE TANDEM_THREADS TANDEM_TRACE
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/cache XDG_DATA_DIRS=$work/share
passed=0 failed=0

# try CODE PART ARGUMENT...: the tool ends with this code, and PART stands in what it prints.
try() {
    local code=$1 part=$2 got
    shift 2
    timeout 120 "$tune" simulate "$@" >"$work/out" 2>&1
    got=$?
    if [ "$got" -ne "$code" ] || ! grep -qF -- "$part" "$work/out"; then
        failed=$((failed + 1))
        echo "FAILED: simulate $*: exit code $got, expected $code and '$part'"
        head -5 "$work/out"
    else
        passed=$((passed + 1))
    fi
}
macbook=bench-data/macbook-pro-2018/table.txt
server=bench-data/server-a100-computed/table.json

try 0 'accelerate, 1 thread' "$macbook" --threads 4 -m 96
try 1 'M = 512: the table has no times for' "$macbook" --threads 4 -m 96,512
try 1 '1 of 2 passes were not simulated' "$macbook" --threads 4 -m 96,512
try 0 '"m": 32, "threads": 4' "$macbook" --threads 4 -m 8,32 --json
try 0 'opencl download' "$server" -m 1
try 0 '65B' "$server" --model 65B -m 8
desktop=bench-data/desktop-8gb-computed/table.json
try 0 '70B' "$desktop" --model 70B -m 1
try 0 '768 x 2048 q4_0, M 1 ' "$desktop" --model 30B-A3B -m 1
try 0 'tokens/s' "$desktop" --model 70B -m 1 --device-memory 8
sockets=bench-data/server-80gb-computed/table.json
try 0 'cuda download' "$sockets" --model 70B -m 1
try 0 'ms at best if each node has its own rows' "$sockets" --model 70B -m 1 --device-memory 8
try 1 'expected 1 number of GiB' "$desktop" --model 70B -m 1 --device-memory 8,8
try 0 'of other operations' "$server" -m 1 --past 64
try 0 'tokens/s' "$server" -m 1 --memory-gbps 100 --trace "$work/trace.json"
grep -q '"ph": "X"' "$work/trace.json" && passed=$((passed + 1)) || failed=$((failed + 1))
try 1 'is there, expected a new file, or -y' "$server" -m 1 --trace "$work/trace.json"
try 0 'tokens/s' "$server" -m 1 --trace "$work/trace.json" -y
try 2 'y needs --trace' "$server" -m 1 -y
try 0 'usage: mulmat-tune simulate' --help
try 1 'no-such-model' "$server" --model no-such-model
try 1 'weight type' "$server" --type q9
try 2 'from 1 to 8192' "$server" -m 0
try 1 'no-such-table' no-such-table.json

# Tables that are computed are those that the script computes.
for machine in bench-data/*/machine.txt; do
    if tools/dev/compute_table.sh "$machine" | cmp -s - "$(dirname "$machine")/table.json"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: the table beside $machine is not what compute_table.sh prints"
    fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
