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
