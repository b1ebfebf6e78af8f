#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: kernel_pack.sh BUILD-FOLDER      (where kernel-pack is)
# tools/kernel-pack: what it refuses, with file and line; what it makes; that files are left alone
# when nothing changes; and that a kernel whose arguments change breaks the build where it is called.
# The last line is "N passed, N failed, N skipped".
set -u
cd "$(dirname "$0")/.."
build=${1:-build/release}
pack=$PWD/$build/kernel-pack
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
passed=0 failed=0
good() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)) && echo "FAILED: $*"; }
cd "$folder" || exit 1
mkdir out

# refuses TEXT-OF-SOURCE FILE:LINE PART-OF-MESSAGE
refuses() {
    local said
    printf '%b' "$1" >k.cl
    if said=$("$pack" out k.cl 2>&1); then
        bad "took '$1'"
    elif [[ $said == "$2"* && $said == *"$3"* ]]; then
        good
    else
        bad "'$1' gave '$said', expected '$2...$3'"
    fi
}
takes() { # TEXT-OF-SOURCE LINE-OF-HEADER...
    local said line
    printf '%b' "$1" >k.cl
    if ! said=$("$pack" out k.cl 2>&1); then
        bad "did not take '$1': $said"
        return
    fi
    shift
    for line in "$@"; do
        if grep -qF "$line" out/gpu_kernels.h; then good; else bad "no '$line' in the header"; fi
    done
}

refuses 'kernel void a(global const uchar *x, int n) {}\n' k.cl:1 "'ulong x_at' must follow"
refuses 'kernel void a(global uchar *x) {}\n' k.cl:1 "'ulong x_at' is missing"
refuses '\n\nkernel void a(int n, double d) {}\n' k.cl:3 "argument 'd' of kernel a"
refuses 'kernel void a(size_t n) {}\n' k.cl:1 "argument 'n'"
refuses 'kernel void a(bool b) {}\n' k.cl:1 "argument 'b'"
refuses 'kernel void a(constant float *c) {}\n' k.cl:1 "argument 'c'"
refuses 'kernel void a(read_only image2d_t i) {}\n' k.cl:1 "argument 'i'"
refuses 'kernel void a() {}\n' k.cl:1 'an argument is empty'
refuses 'kernel void a(int n,\n  ) {}\n' k.cl:2 'an argument is empty'
refuses 'kernel int a(int n) {}\n' k.cl:1 "expected 'void'"
refuses 'kernel void (int n) {}\n' k.cl:1 'a name is expected'
refuses 'kernel void a(int n' k.cl 'line end'
refuses 'kernel void a(int n\n' k.cl:1 'do not end'
refuses 'kernel void a(int launch) {}\n' k.cl:1 "may not be named 'launch'"
refuses 'kernel void a(int n, uint n) {}\n' k.cl:1 "two arguments are named 'n'"
refuses 'kernel void a(int n) {}\nkernel void a(uint n) {}\n' k.cl:2 'k.cl:1 too'
refuses '/* no end\n' k.cl:1 'a comment does not end'
refuses '#include "missing.clh"\n' k.cl:1 'cannot open missing.clh'
refuses '#include <stdio.h>\n' k.cl:1 'expected #include "file"'
refuses '#include "../k.cl"\n' k.cl:1 'of the same folder'
refuses 'kernel void a(int a1,int a2,int a3,global uchar *p,int p_at) {}\n' k.cl:1 "'ulong p_at'"
printf 'kernel void b(int n) {}\n' >part.clh
refuses '#include "part.clh"\n' part.clh:1 'may not hold kernels'
refuses "kernel void $(printf 'x%.0s' {1..80})(int n) {}\n" k.cl:1 'is longer than'

takes '// kernel void no(double d)\n__kernel __attribute__((reqd_work_group_size(8, 1, 1))) void
a(__global const float *restrict x, const ulong x_at, __local int *l, uint n, long m, uchar c) {}\n' \
    'TND_GPU_SOURCE_K,' 'TND_GPU_KERNEL_A,' 'tnd_gpu_bind_a(struct tnd_gpu_launch *launch,' \
    'struct tnd_gpu_range x,' 'size_t l_bytes,' 'uint32_t n,' 'int64_t m,' 'uint8_t c,'
printf 'float twice(float x) { return 2 * x; }\n' >part.clh
takes '#include "part.clh"\n#include "part.clh"\n#if A\nkernel void a(int n) {}\n#else
kernel void a(int n) { }\n#endif\n' 'tnd_gpu_bind_a('

# Nothing new: nothing written.
touch -d '2001-01-01' out/gpu_kernels.h out/gpu_kernels.c
"$pack" out k.cl
[ -n "$(find out -newermt 2001-01-02 -type f)" ] && bad 'unchanged files were written' || good

# A caller of smoke, as it is and after smoke has lost an argument.
cd "$OLDPWD" || exit 1
kernels=backends/opencl/kernels
cat >"$folder/call.c" <<'C'
#include "backends/gpu/gpu_launch.h"
enum tandem_status call(struct tnd_gpu_launch *launch, struct tnd_gpu_range x);
enum tandem_status call(struct tnd_gpu_launch *launch, struct tnd_gpu_range x)
{
    return tnd_gpu_bind_smoke(launch, x, x, 64, 2.0F, 3, 5, NULL);
}
C
compiles() {
    mkdir -p "$folder/gen/backends/gpu"
    "$pack" "$folder/gen/backends/gpu" "$1" &&
        gcc -std=c11 -D_GNU_SOURCE -Werror -fsyntax-only -I. -Iinclude "-I$folder/gen" \
            "$folder/call.c" 2>"$folder/log"
}
sed 's/, int offset//' $kernels/smoke.cl >"$folder/smoke.cl"
compiles $kernels/smoke.cl && good || bad 'a caller of smoke does not compile'
compiles "$folder/smoke.cl" && bad 'a changed kernel does not break its caller' || good
grep -q 'call.c:5:.*too many arguments' "$folder/log" && good || bad "said $(cat "$folder/log")"
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
