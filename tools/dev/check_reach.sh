#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: check_reach.sh BUILD      (build/gcc: with the library, the tools, the benches and the suites)
# Every function of libtandem.so is reachable from a public one: the linker drops the others, and this
# checks that it did. A dropped function must be used by a tool, a bench or a test (from the static
# library); otherwise it is dead.
set -u
cd "$(dirname "$0")/../.."
. tools/dev/files.sh
build=${1:-build/gcc}
[ -f "$build/libtandem.so" ] || complain "$build/libtandem.so does not exist"
[ "$problems" -eq 0 ] || finish check_reach

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
functions() { awk '$2 ~ /^[tTW]$/ {print $3}' | sed 's/\.\(constprop\|isra\|part\|cold\).*//' | sort -u; }
nm "$build/libtandem.so" | functions >"$work/kept"
nm "$build/libtandem.so" | awk '{print $NF}' | sort -u >"$work/names"
nm "$build/libtandem.a" 2>/dev/null | functions | grep '^tnd_' >"$work/all"
comm -13 "$work/kept" "$work/all" >"$work/dropped"
# Functions that tools, benches and tests call, directly or through other dropped functions.
{
    find "$build"/obj/{tools,bench,tests} -name '*.o' -print0 | xargs -0 nm --undefined-only 2>/dev/null |
        awk '{print $NF}'
    grep -oh 'tnd_[a-z0-9_]*' tests/fuzz/*.c # which $build does not have
} | sort -u >"$work/used"
for object in $(find "$build/obj" -name '*.o' -not -path '*/tests/*' -not -path '*/tools/*' -not -path '*/bench/*'); do
    if nm --defined-only --extern-only "$object" | awk '{print $3}' | sort -u | comm -23 - "$work/names" | grep -q .; then
        nm --undefined-only "$object" | awk '{print $NF}'
        # A call within the file leaves no undefined name: relocations tell.
        objdump -r "$object" | awk '{print $3}' | sed 's/[-+]0x.*//'
    fi
done | sort -u | comm -12 - "$work/dropped" >"$work/inside"
sort -u "$work/used" "$work/inside" | comm -13 - "$work/dropped" | while read -r name; do
    complain "$name: no public function, tool, bench or test calls it"
done
echo "check_reach: libtandem.so has $(wc -l <"$work/kept") functions, $(wc -l <"$work/dropped") internal ones serve tools and tests alone"
finish check_reach
