#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs tests of the OpenCL matrix products on oclgrind, a device that checks every access of each
# work-item: out-of-bounds reads and writes, data races. Slow: about a minute for each type.
#     tools/dev/check_oclgrind.sh [SUITE_BINARY [TYPES [SUITE [TEST]]]]
# TYPES: names as in "q4_0 f16"; default: one for each method of reading quantised values. SUITE: matmul, ops, ...
# Generated kernels: check_oclgrind.sh build/release/suite_graph "" window; 10 seconds.
set -u
cd "$(dirname "$0")/../.."
binary=${1:-build/release/suite_opencl}
export TANDEM_TEST_TYPES=${2:-f32 f16 q4_0 q5_1 q3_k q4_k}
suite=${3:-matmul}

runtime=
for place in /usr/lib/oclgrind /usr/local/lib /usr/lib; do
    [ -e "$place/liboclgrind-rt-icd.so" ] && runtime=$place/liboclgrind-rt-icd.so && break
done
if [ -z "$runtime" ]; then
    echo "check_oclgrind: oclgrind is not installed (Debian: oclgrind)"
    exit 0
fi
[ -x "$binary" ] || { echo "check_oclgrind: $binary is not built (make suite_opencl)"; exit 2; }

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo "$runtime" >"$folder/oclgrind.icd"
# The loader uses only oclgrind; its findings go to a file.
OCL_ICD_VENDORS=$folder/ OCLGRIND_DATA_RACES=1 OCLGRIND_LOG=$folder/log \
    "$binary" -s "$suite" ${4:+-t "$4"}
status=$?
if [ -s "$folder/log" ]; then
    echo "check_oclgrind: oclgrind complains:"
    cat "$folder/log"
    exit 1
fi
exit "$status"
