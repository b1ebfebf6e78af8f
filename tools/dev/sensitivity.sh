#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: bash tools/dev/sensitivity.sh [NUMBER..]
# What doubling and halving numbers of tune/policy.h does to what is predicted and chosen from the
# committed tables; nothing is timed, so the same tree gives the same answer everywhere. Without
# names: those of policy.h that no test tells from other values and that code of tune/ uses.
# A line a number and factor: how many lines of test --extrapolation, explain and simulate differ
# from those of the tree. "nothing changes" means that these judges cannot tell the number's value,
# not that none can: passes of a few computed machines say little of schedules.
# The numbers are read from the environment in a copy of the tree; those that must be constants
# for the compiler are named and left out.
set -u
cd "$(dirname "$0")/../.." || exit 2
work=$(mktemp -d /tmp/sensitivity.XXXXXX)
trap 'rm -rf "$work"' EXIT
tree=$work/tree
mkdir "$tree"
git ls-files -z | tar -c --null -T - --ignore-failed-read 2>/dev/null | tar -x -C "$tree"

untested() { # names of numbers whose comment ends with "Test: none."
    awk '/^\/\*/ { text = "" } /^(\/\*| \*)/ { text = text " " $0 }
         /^#define TND_/ && text ~ /Test:[ *]*none/ { print $2 }' tune/policy.h
}
names=("$@")
if [ ${#names[@]} -eq 0 ]; then
    for name in $(untested); do
        grep -qwr --include='*.c' "$name" tune && names+=("$name")
    done
fi

# A number becomes a call that asks the environment for a factor.
probe() {
    for name in "${names[@]}"; do
        sed -i -E "s|^#define $name([ \t]+)(.*[^ ])[ \t]*\$|#define $name\1tnd_probe(\"$name\", \2)|" \
            "$tree/tune/policy.h"
    done
    sed -i 's|^#include "table/judge.h"$|#include "table/judge.h"\n#include <stdlib.h>\n#include <string.h>\nstatic inline double tnd_probe(const char *name, double value)\n{\n    const char *asked = getenv("SENSITIVITY");\n    return asked != NULL \&\& strcmp(asked, name) == 0 ? value * atof(getenv("FACTOR")) : value;\n}|' \
        "$tree/tune/policy.h"
}
build() {
    make -C "$tree" -k -j2 BUILD=build/sens WERROR=1 ASSERT=1 CFLAGS='-O2 -g1' CC=gcc build/sens/mulmat-tune >"$work/log" 2>&1
}
cp "$tree/tune/policy.h" "$work/policy.h"
probe
if ! build; then
    # Whatever stands in a line that the compiler refuses stays a constant.
    mapfile -t constants < <(grep -oE '\bTND_[A-Z0-9_]+' "$work/log" | sort -u)
    kept=()
    for name in "${names[@]}"; do
        if printf '%s\n' "${constants[@]}" | grep -qx "$name"; then
            echo "$name: a constant for the compiler"
        else
            kept+=("$name")
        fi
    done
    names=("${kept[@]}")
    cp "$work/policy.h" "$tree/tune/policy.h"
    probe
    build || { tail -5 "$work/log"; echo "sensitivity: the copy cannot be built"; exit 1; }
fi

tool=$tree/build/sens/mulmat-tune
measured="bench-data/epyc-zen4-2-cores/table.json bench-data/epyc-zen5-2-cores/table.json"
computed="bench-data/desktop-8gb-computed/table.json bench-data/laptop-4gb-computed/table.json
    bench-data/integrated-gpu-computed/table.json bench-data/server-80gb-computed/table.json
    bench-data/macbook-pro-2018/table.json bench-data/pocl-epyc-zen5/table.json"
judge() { # FOLDER
    mkdir -p "$1"
    local i=0
    for table in $measured $computed; do
        [ -e "$table" ] || continue
        i=$((i + 1))
        "$tool" test --extrapolation --table "$table" >"$1/errors.$i" 2>&1
        "$tool" explain --table "$table" --model 1.1B -m 1,3,7,23,64,300,900 >"$1/choices.$i" 2>&1
        for most in "" "--device-memory 2"; do
            # shellcheck disable=SC2086
            "$tool" simulate "$table" --model 7B -m 1,8,48,512 $most --json >"$1/passes.$i.${#most}" 2>&1
        done
    done
}
judge "$work/base"
printf '%-32s %-6s %11s %8s %8s\n' number factor predictions choices passes
for name in "${names[@]}"; do
    changed=0
    for factor in 0.5 2; do
        rm -rf "$work/other"
        SENSITIVITY=$name FACTOR=$factor judge "$work/other"
        counts=()
        for kind in errors choices passes; do
            counts+=("$(for file in "$work/base/$kind".*; do
                diff "$file" "$work/other/${file##*/}"
            done | grep -c '^>')")
        done
        changed=$((changed + counts[0] + counts[1] + counts[2]))
        printf '%-32s %-6s %11s %8s %8s\n' "$name" "$factor" "${counts[@]}"
    done
    [ "$changed" -gt 0 ] || echo "$name: nothing changes"
done
