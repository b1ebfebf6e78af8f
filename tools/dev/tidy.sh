#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: tidy.sh [--lint-only] [FILE...]       (make tidy, make lint)
# Without files: those that differ from the last commit.
set -u
shopt -s lastpipe
cd "$(dirname "$0")/../.."
format=1
if [ "${1:-}" = --lint-only ]; then
    format=0
    shift
fi
files=("$@")
if [ $# -eq 0 ]; then
    { git diff --name-only --diff-filter=d HEAD
        git ls-files --others --exclude-standard; } | grep -E '\.[ch]$' | mapfile -t files
fi
if [ "${#files[@]}" -eq 0 ]; then
    echo "nothing differs from the last commit"
    exit 0
fi
if [ $format = 1 ]; then
    # The lists are tables, set by hand.
    for file in "${files[@]}"; do
        [[ $file == *-list.h ]] || clang-format -i "$file"
    done
fi
code=0
for file in "${files[@]}"; do
    [[ $file == *.c ]] || continue
    clang-tidy --quiet "$file" -- -std=c11 -D_GNU_SOURCE -DTND_HAVE_HWLOC -DTND_HAVE_CJSON \
        -I. -Iinclude -Ibuild/release/gen $(pkg-config --cflags libcjson 2>/dev/null) \
        $([[ $file =~ _avx2.c ]] && echo -mavx2 -mfma -mf16c) 2>/dev/null || code=1
done
exit $code
