#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: gpu_day.sh BUILD
# tools/dev/gpu_day.sh on a machine without any device, on PoCL where that is installed (few steps),
# ended in the middle, and on the stand-in for CUDA. The last line is "N passed, N failed, N skipped".
set -u
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export BUILD=$PWD/${1:-build/release} QUICK=1 OUT=$work/out WORK=$work/work
unset PEER MODEL DEVICE OCL_ICD_VENDORS OCL_ICD_FILENAMES
passed=0 failed=0 skipped=0

# expect PART FILE: the file holds a line with PART.
expect() {
    if grep -qF -- "$1" "$2"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $2 has no '$1'"
        sed -n 1,40p "$2"
    fi
}

tools/dev/gpu_day.sh nonsense >"$work/said" 2>&1
expect "usage:" "$work/said"

mkdir "$work/none"
OCL_ICD_VENDORS=$work/none/ timeout 300 tools/dev/gpu_day.sh >"$work/said" 2>&1
expect "| 1 machine | good |" "$OUT/summary.md"
for step in "3 devices" "4 suites" "8 bench" "10 streaming" "11 experts" "12 report"; do
    expect "| $step | absent |" "$OUT/summary.md"
done
expect "| 14 cuda | absent |" "$OUT/summary.md"
expect "Never tried on a GPU" "$OUT/summary.md"
tar -tzf "$OUT/logs.tar.gz" >"$work/list"
expect "logs/devices.log" "$work/list"
# No more files, and no deeper, than a lent machine gives back.
[ "$(find "$OUT" | wc -l)" -le 9 ] && passed=$((passed + 1)) || failed=$((failed + 1))

if "$BUILD/mulmat-tune" devices --json | grep -q '"index": 0'; then
    timeout 300 tools/dev/gpu_day.sh 3,8-9,11 >"$work/said" 2>&1
    expect "| 8 bench | good |" "$OUT/summary.md"
    expect "| 9 ways | good |" "$OUT/summary.md"
    expect "of the best of cpu device" "$OUT/summary.md"
    expect "| 11 experts | good |" "$OUT/summary.md"

    # What docs/opencl.md says first: a device has no kernels for some types, and all others are right.
    "$BUILD/mulmat-tune" test --device 0 --profile opencl --type iq1_s,q4_0 >"$work/said" 2>&1
    expect "8 problems in every way this machine has: 0 wrong; 4 times a way has no kernel" "$work/said"
    if "$BUILD/mulmat-tune" test --device 0 --profile opencl --type iq1_s >"$work/said" 2>&1; then
        failed=$((failed + 1))
        echo "FAILED: mulmat-tune test passes though it has computed nothing"
    else
        passed=$((passed + 1))
    fi

    # Ended while it works: what there was stays, the running step says so.
    timeout -s TERM 2 tools/dev/gpu_day.sh 13 >"$work/said" 2>&1
    expect "| 13 oracle | ended by a signal |" "$OUT/summary.md"
    expect "| 8 bench | good |" "$OUT/summary.md"
    expect "summary.md says what there is" "$work/said"
else
    skipped=1
    echo "skipped: no OpenCL device"
fi

# CUDA on its stand-in, beside whatever OpenCL there is.
if [ -e "$BUILD/fake_cuda/libcuda.so.1" ] && [ -x "$BUILD/suite_opencl-cuda" ]; then
    LD_LIBRARY_PATH=$BUILD/fake_cuda timeout 300 tools/dev/gpu_day.sh 14 >"$work/said" 2>&1
    expect "| 14 cuda | good |" "$OUT/summary.md"
    expect "the same text on the CPU and by cuda" "$OUT/summary.md"
    expect "the same text on the CPU and by cuda+cublas" "$OUT/summary.md"
    expect "cpu+cublas: 4 problems in every way" "$OUT/summary.md"
    # What `tune` does in step 14 takes hours here: its device is found, and lost at once.
    TANDEM_FAKE_CUDA_FAIL=cuLaunchKernel:1:700:lost LD_LIBRARY_PATH=$BUILD/fake_cuda timeout 60 \
        "$BUILD/mulmat-tune" tune-device --device Stand-in -dry >"$work/said" 2>&1
    expect "Stand-in GPU 0 (CUDA)" "$work/said"
    expect "cuLaunchKernel of smoke failed" "$work/said"
else
    skipped=$((skipped + 1))
    echo "skipped: the stand-in for CUDA is not built"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
