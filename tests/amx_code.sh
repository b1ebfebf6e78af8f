#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: amx_code.sh
# Stores to what tile instructions read stay in the object code: gcc 12's own functions drop them,
# and the program ends with SIGILL. Each compiler that is there and knows AMX is tried.
# The last line is "N passed, N failed, N skipped".
set -u
cd "$(dirname "$0")/.." || exit 1
passed=0 failed=0 skipped=0
probe='
#include "backends/cpu/x86/amx_tiles.h"
void probe(uint8_t byte);
void probe(uint8_t byte)
{
#if defined(PROBE_CONFIGURATION)
    struct tile_config config = tiles_all();
    config.rows[7] = byte;
    tiles_configure(&config);
#else
    uint8_t memory[TILE_BYTES];
    memory[700] = byte; /* the parameter is in a register, so that the store can be told */
    TILE_LOAD(0, memory, TILE_ROW_BYTES);
#endif
}'
for compiler in gcc clang; do
    if ! echo 'int x;' | "$compiler" -mamx-int8 -xc -c - -o /dev/null 2>/dev/null; then
        skipped=$((skipped + 1))
        continue
    fi
    for what in CONFIGURATION OPERAND; do
        code=$("$compiler" -std=c11 -O2 -I. -DPROBE_$what -xc -S - -o - <<<"$probe")
        store=$(grep -nE 'movb.*%dil, *-?[0-9]*\(%r[sb]p\)' <<<"$code" | head -1 | cut -d: -f1)
        use=$(grep -nE '(ldtilecfg|tileloadd)' <<<"$code" | head -1 | cut -d: -f1)
        if [ "${store:-9999}" -lt "${use:-0}" ]; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "FAILED: $compiler drops the store of the $what"
        fi
    done
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
