#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: check_reproducible.sh      (make soak JOBS=reproducible)
# Two builds, in two folders of different names, at two times, give the same bytes: libraries, archives and tools.
set -u
cd "$(dirname "$0")/../.."
. tools/dev/files.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for place in "$work/a" "$work/another place"; do
    mkdir -p "$place"
    project_files . | tar -cf - -T - | tar -xf - -C "$place"
    # (A cache of compilers would hand the first build's bytes to the second one.)
    CCACHE_DISABLE=1 TZ=Asia/Tokyo make --no-print-directory -j"$(nproc)" -C "$place" all >"$work/log" 2>&1 ||
        { tail -20 "$work/log"; complain "the build in '$place' failed"; }
done
tried=0
for file in "$work"/a/build/{libtandem{,-llama}.a,libtandem{,-llama}.so,mulmat-tune,tandem-llama}; do
    tried=$((tried + 1))
    cmp "$file" "$work/another place/build/$(basename "$file")" || complain "$(basename "$file") differs"
done
echo "$tried tried, $((tried - problems)) survived: Building twice, in two places, gives the same bytes"
finish check_reproducible
