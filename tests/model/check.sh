#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: check.sh        (make model)
# Lets spin look at every interleaving of the models of this folder: each as it is must be free of
# errors, each fault planted in it must be found. The models speak of functions of sched/, which exist.
set -u
models=$(cd "$(dirname "$0")" && pwd)
sources=$models/../../sched
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0 passed=0
command -v spin >/dev/null || { echo "model: spin is not installed (package spin)"; exit 1; }
for name in $(grep -ohE 'tnd_[a-z_]+' "$models"/*.pml | sort -u); do
    grep -qE "^[a-z].*\\b$name\\(" "$sources"/*.c ||
        { echo "model: $name does not exist in sched/"; exit 1; }
done
for model in "$models"/*.pml; do
    for lost in 0 1 2 3; do
        spin -DLOST=$lost -a "$model" >log 2>&1 && ${CC:-cc} -O2 -DSAFETY -o pan pan.c >>log 2>&1 ||
            { cat log; exit 1; }
        ./pan -m1000000 >log 2>&1
        errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' log)
        states=$(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' log)
        if grep -q 'max search depth too small' log; then errors=incomplete; fi
        if [ $lost -eq 0 ]; then good=$([ "$errors" = 0 ] && echo yes); else
            good=$([ "${errors:-0}" != 0 ] && [ "$errors" != incomplete ] && echo yes)
        fi
        echo "${model##*/}, planted fault $lost: $errors errors in $states states: ${good:-WRONG}"
        if [ -n "$good" ]; then passed=$((passed + 1)); else failed=$((failed + 1)); cat log; fi
    done
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
