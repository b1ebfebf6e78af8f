#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: bridge.sh BUILD      (where libggml-tandem.so and bridge-host-* are: make bridge-hosts)
# The bridge in small hosts of each layout of ggml's structures, in one without exported symbols, and in
# those that it must refuse. The last line is "N passed, N failed, N skipped".
set -u
cd "$(dirname "$0")/.."
build=${1:-build/release}
library=$PWD/$build/libggml-tandem.so
[ -e "$library" ] || library=$PWD/build/libggml-tandem.so
export TANDEM_BRIDGE=always TANDEM_TABLE=none XDG_CACHE_HOME
XDG_CACHE_HOME=$(mktemp -d)
trap 'rm -rf "$XDG_CACHE_HOME"' EXIT
passed=0 failed=0 skipped=0
good() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)) && echo "FAILED: $*"; }

for version in 9 21 26; do
    if said=$("$build/bridge-host-$version" "$library" 2>&1); then
        [ "$(echo "$said" | wc -l)" = 1 ] && good || bad "ggml 0.$version: it printed: $said"
    else
        bad "ggml 0.$version: $said"
    fi
done

# Threads that the host has already compute, of GNU's OpenMP and of LLVM's.
for openmp in libgomp.so.1 libomp.so.5; do
    said=$(SMALL_HOST_OPENMP=$openmp "$build/bridge-host-26" "$library" 2>&1)
    case $? in
        0) good ;;
        77) skipped=$((skipped + 1)) ;;
        *) bad "$openmp: $said" ;;
    esac
done

# A table in which PoCL alone is too fast, for q4_0 with 64 tokens: it is opened, gives right
# results, and is left. A host with a GPU of its own, and another table, open nothing.
stage() {
    printf '{"op": "mul_mat", "type": "q4_0", "n": 96, "k": 512, "backend": "%s", "stage": "%s", "task": "%s", ' "$1" "$2" "$3"
    printf '"parallel": %s, "own_threads": false, "threads": 1, "samples": [' "$4"
    printf '{"m": 1, "median_us": %s, "count": 9}, {"m": 64, "median_us": %s, "count": 9}]}' "$5" "$5"
}
profile() { # NAME STAGE TASK STAGE TASK
    local kind=1 parallel=true
    [ "$1" = opencl ] && kind=6 parallel=false
    local rest="\"backend\": \"$1\", \"kind\": $kind, \"parallel\": $parallel, \"wait\": false, \"own_threads\": false"
    printf '{"name": "%s", "stages": {"%s": {"task": "%s", %s}, "%s": {"task": "%s", %s}}}' \
        "$1" "$2" "$3" "$rest" "$4" "$5" "$rest"
}
link() {
    printf '{"backend": "opencl", "direction": "%s", "samples": [{"bytes": 4096, "median_us": 1, "count": 9}, ' "$1"
    printf '{"bytes": 1048576, "median_us": 1, "count": 9}]}'
}
table_with() { # MICROSECONDS of the device
    echo '{"version": 2, "profiles": ['
    profile cpu init quantize_x compute mul_mat_q && echo ,
    profile opencl compute node finalize finalize && echo '], "curves": ['
    stage cpu init quantize_x true 1 && echo ,
    stage cpu compute mul_mat_q true 100 && echo ,
    stage opencl compute node false "$1" && echo ,
    stage opencl finalize finalize false 0 && echo ']'
    echo ', "transfers": [' && link upload && echo , && link download && echo ']}'
}
devices=$(TANDEM_DEVICE=0 "$build/mulmat-tune" devices 2>/dev/null)
if [[ $devices == *opencl* ]]; then
    table_with 1 >"$XDG_CACHE_HOME/fast.json"
    table_with 20000 >"$XDG_CACHE_HOME/slow.json"
    by_table() { # TABLE [NAME=VALUE..]
        env TANDEM_DEVICE=0 TANDEM_TABLE="$XDG_CACHE_HOME/$1.json" SMALL_HOST_DEVICE="serves from now on" "${@:2}" \
            "$build/bridge-host-26" "$library" 2>&1
    }
    said=$(by_table fast) && good || bad "a device by the table: exit code $?: $said"
    said=$(by_table slow TANDEM_BRIDGE_BACKENDS=opencl SMALL_HOST_DEVICE=) && good || bad "a device by its name: exit code $?: $said"
    for none in 'slow SMALL_HOST_GPU=0' 'fast SMALL_HOST_GPU=1' 'fast TANDEM_BRIDGE_BACKENDS=cpu'; do
        # shellcheck disable=SC2086 # a table and a variable
        said=$(by_table $none)
        [[ $said == FAILED*'computes by opencl'* ]] && good || bad "$none: $said"
    done
else
    skipped=$((skipped + 5))
fi

# Backends that do not exist: it says so, and the CPU serves.
said=$(TANDEM_BRIDGE_BACKENDS=nonsense "$build/bridge-host-26" "$library" 2>&1) && good || bad "nonsense: $said"

# refuses EXPECTED-PART COMMAND...: not loaded, and the word why
refuses() {
    local part=$1 said
    shift
    said=$("$@" "$library" 2>&1)
    if [ $? = 3 ] && [[ $said == *"$part"* ]]; then good; else bad "$* gave '$said', expected '$part'"; fi
}
refuses 'libggml-tandem: not used: the program does not export ggml_version' "$build/bridge-host-static"
said=$("$build/bridge-host-static" "$library" 2>&1)
[ "$(grep -c 'not used' <<<"$said")" = 1 ] && good || bad "the static host heard it more than once: $said"
refuses 'not loaded' env TANDEM_BRIDGE=never "$build/bridge-host-26"
refuses '0.8.0 is none that it knows' env SMALL_HOST_VERSION=0.8.0 "$build/bridge-host-21"
# A release that nobody has seen yet, with structures that are known: it serves.
SMALL_HOST_VERSION=0.99.1 "$build/bridge-host-26" "$library" >/dev/null 2>&1 && good || bad "0.99.1"
refuses 'a product failed' env SMALL_HOST_VERSION=0.99.1 SMALL_HOST_BREAKS=1 "$build/bridge-host-26"
refuses 'does not tell its version' env SMALL_HOST_VERSION=none "$build/bridge-host-26"

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
