#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: check.sh        (make model)
# Lets spin look at every interleaving of tests/model/park.pml: the model as it is must be free of
# errors, each planted lost wake-up must be found.
set -u
model=$(cd "$(dirname "$0")" && pwd)/park.pml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
command -v spin >/dev/null || { echo "model: spin is not installed (package spin)"; exit 1; }
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
    echo "park.pml, planted fault $lost: $errors errors in $states states: ${good:-WRONG}"
    [ -n "$good" ] || { failed=$((failed + 1)); cat log; }
done
echo "$((4 - failed)) passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
