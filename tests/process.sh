#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs test suites, each in a process of its own under a time limit, and sums up.
# usage: process.sh SUITE-BINARY...     (TANDEM_TEST_TIMEOUT: seconds for one suite, default 900)
# The last line is "N passed, N failed, N skipped"; exit code 0 only if nothing failed.
set -u
shopt -s lastpipe # loops at the end of a pipe may count
# Neither the user's table nor the user's settings may decide a test.
unset TANDEM_LOG TANDEM_CPU TANDEM_DEVICE TANDEM_TABLE TANDEM_THREADS TANDEM_TRACE
XDG_CACHE_HOME=$(mktemp -d)
export XDG_CACHE_HOME
# What PoCL has compiled serves all build trees of this clone: compiling takes three quarters of
# suite_opencl's time.
export POCL_CACHE_DIR=${POCL_CACHE_DIR:-$PWD/build/pocl}
mkdir -p "$POCL_CACHE_DIR"
trap 'rm -rf "$XDG_CACHE_HOME"' EXIT
# (timeout is a process group of its own, and ends with its suite when it is told to.)
suite=
trap '[ -z "$suite" ] || kill "$suite" 2>/dev/null; exit 143' INT TERM

limit=${TANDEM_TEST_TIMEOUT:-900}
passed=0 failed=0 skipped=0
expected=$(grep -vE '^(#|$)' tests/expected-skips)
for binary in "$@"; do
    log="$binary.log"
    name=$(basename "$(dirname "$binary")")/$(basename "$binary")
    echo "== $name"
    timeout --kill-after=10 "$limit" "./$binary" >"$log" 2>&1 &
    suite=$!
    wait "$suite"
    code=$?
    # CUnit's summary and everything that is not a passed test.
    grep -vE '^(Suite: |  Test: .*\.\.\.passed *$|     CUnit - |     http)|^ *$|^TANDEM-SUITE' "$log"
    line=$(grep '^TANDEM-SUITE' "$log" | tail -1)
    if [[ $line =~ passed=([0-9]+)\ failed=([0-9]+)\ skipped=([0-9]+) ]]; then
        passed=$((passed + BASH_REMATCH[1]))
        failed=$((failed + BASH_REMATCH[2]))
        skipped=$((skipped + BASH_REMATCH[3]))
        if [ $code -ne 0 ] && [ "${BASH_REMATCH[2]}" -eq 0 ]; then
            echo "$name: exit code $code after the last test (a leak or a race?)"
            failed=$((failed + 1))
        fi
    else
        reason="exit code $code"
        [ $code -eq 124 ] && reason="longer than $limit s"
        last=$(sed -n 's/^  Test: \([^ ]*\).*/\1/p' "$log" | tail -1)
        echo "$name: ended in the middle of ${last:-nothing} ($reason), see $log"
        failed=$((failed + 1))
    fi
    # A skip must be one that we expect: a line of expected-skips is a part of the printed reason.
    grep 'SKIP ' "$log" | grep -vF "$expected" | while IFS= read -r skip; do
        echo "$name: unexpected skip: ${skip#*SKIP }"
        failed=$((failed + 1))
    done
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
