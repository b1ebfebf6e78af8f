#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: check_neon.sh       (BUILD: default build/arm64; JOBS_MAKE: parallel compilations and suites;
#                             CROSS_CC: the compiler, as in "clang --target=aarch64-linux-gnu")
# The kernels for ARM: builds library and suites for 64-bit ARM by a cross compiler, warnings being
# errors, and runs the suites of the kernels in an emulator, on CPUs of three levels: NEON alone, with
# the dot product of bytes, with their matrix product. CUnit for ARM is fetched once from the
# distribution, through apt, into the build folder. A missing part is skipped with its reason.
set -u
cd "$(dirname "$0")/../.." || exit 2
build=${BUILD:-build/arm64}
compiler=${CROSS_CC:-aarch64-linux-gnu-gcc}
system=/usr/aarch64-linux-gnu # the cross compiler's C library
cunit=$PWD/$build/cunit

skip() {
    echo "SKIP neon: $1"
    exit 0
}
command -v "${compiler%% *}" >/dev/null || skip "no cross compiler $compiler (make deps installs it)"
command -v qemu-aarch64 >/dev/null || skip "no qemu-aarch64 (make deps installs it)"

# Fetches libcunit1-dev for arm64 (its archive needs no other package) and unpacks it. apt checks the
# signatures; the system's own lists stay as they are.
fetch_cunit() {
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || return 1
    local mirror release apt=$cunit/apt
    mirror=$(apt-get download --print-uris libcunit1-dev 2>/dev/null |
        sed -n "s/^'\(.*\)\/pool\/.*/\1/p")
    release=$(. /etc/os-release && echo "${VERSION_CODENAME:-stable}")
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
    echo "deb ${mirror:-http://deb.debian.org/debian} $release main" >"$apt/sources.list"
    local options=(-q -o APT::Architecture=arm64 -o APT::Architectures=arm64
        -o APT::Sandbox::User= -o "Dir::Etc::SourceList=$apt/sources.list"
        -o Dir::Etc::SourceParts=/dev/null -o "Dir::State::Lists=$apt/lists"
        -o Dir::State::Status=/dev/null -o "Dir::Cache=$apt/cache"
        -o Acquire::Languages=none -o Acquire::Retries=2 -o Debug::NoLocking=1)
    timeout 120 apt-get "${options[@]}" update || return 1
    (cd "$cunit" && timeout 60 apt-get "${options[@]}" download libcunit1-dev) || return 1
    dpkg-deb -x "$cunit"/libcunit1-dev_*.deb "$cunit" && rm -rf "$apt"
}
archive=$cunit/usr/lib/aarch64-linux-gnu/libcunit.a
if [ ! -e "$archive" ]; then
    fetch_cunit || skip "CUnit for arm64 cannot be fetched (no apt, or no network)"
fi
[ -e "$archive" ] || skip "CUnit for arm64 has no $archive"

# Optional libraries of this machine are of no use for the target: pkg-config must find none.
make --no-print-directory -j"${JOBS_MAKE:-2}" BUILD="$build" CC="$compiler" PKG_CONFIG=false NO_OPENCL=1 \
    WERROR=1 CPPFLAGS="-isystem $cunit/usr/include" LDFLAGS="-L$(dirname "$archive")" \
    lib "$build"/suite_{base,ggml,backends} || exit 1

# Tests run by name of the CPU and of the suite (all, if none is named); one line each.
passed=0 failed=0
run() { # CPU BINARY [SUITE]
    local log="$build/$2-$1${3:+-${3// /-}}.log" line
    TANDEM_TEST_EFFORT=1 timeout 600 qemu-aarch64 -L "$system" -cpu "$1" "$build/$2" ${3:+-s "$3"} \
        >"$log" 2>&1
    local code=$?
    line=$(grep '^TANDEM-SUITE' "$log" | tail -1)
    if [ $code -eq 0 ] && [[ $line =~ passed=([0-9]+)\ failed=0\ skipped=([0-9]+) ]]; then
        echo "check_neon: $1 $2 ${3:-}: ${BASH_REMATCH[1]} tests passed, ${BASH_REMATCH[2]} skipped"
    else
        echo "check_neon: $1 $2 ${3:-}: FAILED, exit code $code, see $log"
        grep -vE '^(Suite: |  Test: .*\.\.\.passed *$)|^ *$' "$log" | tail -20
    fi
}
# The CPU "max" has i8mm, and its suites run the kernels of all levels. The others, NEON only and
# dotprod, show that no instruction above their level is executed.
{
    echo "max suite_base"
    echo "max suite_ggml"
    echo "max suite_backends cpu amx" # emulated, with the same bits
    for suite in matmul packed\ weights ops attention int8 net\ tiles programs; do
        echo "max suite_backends cpu $suite"
    done
    echo "cortex-a53 suite_backends cpu packed weights"
    echo "neoverse-n1 suite_backends cpu matmul"
} | {
    while read -r cpu binary suite; do
        while [ "$(jobs -rp | wc -l)" -ge "${JOBS_MAKE:-2}" ]; do
            wait -n
        done
        run "$cpu" "$binary" "$suite" &
    done
    wait
} | tee "$build/results.log"
passed=$(sed -n 's/.*: \([0-9]*\) tests passed.*/\1/p' "$build/results.log" | awk '{ n += $1 } END { print n + 0 }')
skipped=$(sed -n 's/.* passed, \([0-9]*\) skipped/\1/p' "$build/results.log" | awk '{ n += $1 } END { print n + 0 }')
failed=$(grep -c FAILED "$build/results.log")
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
