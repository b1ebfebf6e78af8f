#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Each header compiles on its own: the public ones as C11 and as C++17, with both compilers if they are
# installed, the internal ones as C11. Left out: lists and templates (without a guard, or *_lanes.h, which
# need words that the including file brings).
set -u
cd "$(dirname "$0")/../.."
. tools/dev/files.sh
warn="-Wall -Wextra -Wpedantic -Werror"

try() { # HEADER COMPILER FLAG...
    local header=$1 compiler=$2
    shift 2
    command -v "$compiler" >/dev/null || return 0
    # shellcheck disable=SC2086 # the flags are words
    if ! printf '#include "%s"\n#include "%s"\nint probe;\n' "$header" "$header" |
        "$compiler" "$@" $warn -Iinclude -fsyntax-only - 2>"$log"; then
        complain "$header: does not compile alone with $compiler $*"
        head -20 "$log"
    fi
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
for header in include/tandem/*.h; do
    name=${header#include/}
    try "$name" gcc -std=c11 -xc
    try "$name" clang -std=c11 -xc
    try "$name" g++ -std=c++17 -xc++
    try "$name" clang++ -std=c++17 -xc++
done
# The header that is made of the OpenCL kernels; without OpenCL's headers that backend is not built.
gen=build/headers/gen
make --no-print-directory -s BUILD=build/headers kernels >/dev/null || complain "make kernels failed"
without='^base/windows/\|^tests/windows/' # (which stand in for headers of another system)
[ -f "$gen/backends/gpu/gpu_kernels.h" ] || without=$without'\|^backends/opencl/\|^tests/.*opencl'
sources | grep '\.h$' | grep -v '^include/' | grep -v -- "$without" | grep -v -- '-list\.h$' | while IFS= read -r header; do
    [[ $header == *_lanes.h ]] && continue
    grep -q '^#ifndef .*_H$' "$header" || continue
    try "$header" gcc -std=c11 -D_GNU_SOURCE -I. "-I$gen" -xc -Wno-unused-function
done
finish check_headers
