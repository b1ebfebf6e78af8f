#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# make demo: the main job in one go. Measures this machine for the matrices of a 1.1B llama, then runs such a
# model (random weights) by what other programs do, by the CPU kernels and by the plan. QUICK=1: a smaller model.
set -eu
cd "$(dirname "$0")/../.."
model=1.1B
budget=75
quick=
if [ "${QUICK:-}" = 1 ] || [ "${1:-}" = --quick ]; then
    model=quick
    budget=20
    quick=--quick
fi
mkdir -p build/demo
echo "1. Measuring this machine for the matrices of a $model llama, about $budget s:"
build/mulmat-tune bench --model "$model" --type q4_0 -m 1,8,32,128 --budget "$budget" \
    --file build/demo/table.json -y
echo
echo "2. What wins where:"
build/mulmat-tune analyze build/demo/table.json
echo
echo "3. The same model by what other programs do, by the CPU kernels and by the plan:"
build/tandem-llama demo $quick --table build/demo/table.json
