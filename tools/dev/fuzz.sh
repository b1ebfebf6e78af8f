#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: fuzz.sh SECONDS NAME...      (make fuzz, make fuzz-all)
# Runs build/fuzz/fuzz_NAME over the saved corpus, the seeds of make-seeds and what earlier runs found
# (build/fuzz/corpus/NAME), with the dictionary tests/fuzz/dict/NAME where there is one.
# An input that breaks the parser is left in build/fuzz/; make it a file of tests/fuzz/corpus/NAME once
# it is understood.
set -u
seconds=$1
shift
failed=0
rm -rf build/fuzz/seeds
build/fuzz/make-seeds build/fuzz/seeds || exit 1
for name in "$@"; do
    found=build/fuzz/corpus/$name
    saved=tests/fuzz/corpus/$name
    mkdir -p "$found"
    [ -d "$saved" ] || saved=
    seeds=build/fuzz/seeds/$name
    [ -d "$seeds" ] || seeds=
    words=tests/fuzz/dict/$name
    [ -f "$words" ] && words=-dict=$words || words=
    log=build/fuzz/$name.log
    if build/fuzz/fuzz_"$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
        -artifact_prefix="build/fuzz/$name-" $words "$found" $saved $seeds >"$log" 2>&1; then
        echo "fuzz_$name: good, $(grep -oE 'Done [0-9]+ runs in [0-9]+' "$log") s"
    else
        failed=$((failed + 1))
        tail -40 "$log"
        echo "fuzz_$name: FAILED, the input is in build/fuzz/$name-*"
    fi
done
echo "$(($# - failed)) passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
