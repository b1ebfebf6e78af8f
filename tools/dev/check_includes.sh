#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Checks the allowed includes: a room includes its own headers, those of the rooms below, and the
# public headers that these rooms own (their `room:` line). llama/, bridge/ and the documents' examples
# include public headers only; tandem-llama and tandem-server use llama/ through its public header. Files of
# different folders do not include each other in a circle.
set -u
cd "$(dirname "$0")/../.."
. tools/dev/files.sh
. tools/dev/arrows.sh

# What each room may include, itself first.
declare -A below=(
    [base]="base"
    [ggml-like]="ggml-like base"
    [graph]="graph ggml-like base"
    [backends]="backends ggml-like base"
    [sched]="sched backends ggml-like base"
    [table]="table sched backends ggml-like base"
    [tune]="tune table sched backends ggml-like base"
    [measure]="measure tune table sched backends ggml-like base"
    [runtime]="runtime graph measure tune table sched backends ggml-like base"
    [formats]="formats graph ggml-like base"
    [cluster]="cluster base"
    [llama]="llama"
    [bridge]="bridge"
    [docs]="docs"
    [tools]="tools llama cluster runtime measure tune table sched backends formats graph ggml-like base"
    [bench]="bench tools llama cluster runtime measure tune table sched backends formats graph ggml-like base"
)
declare -A owner
for header in include/tandem/*.h; do
    room=$(sed -n 's/^ \* room: \([a-z-]*\).*/\1/p' "$header" | head -1)
    case "$header:$room" in
    */tandem.h:*) room=umbrella ;;
    *-list.h:) room=list ;; # inherited: checked through the headers that include the list
    *:) complain "$header: has no 'room:' line" ;;
    esac
    owner[${header#include/}]=$room
done

allowed() { # room header -> status
    local room=$1 target=$2
    if [[ $target == tandem/* ]]; then
        case "${owner[$target]:-missing}" in
        missing) return 1 ;;
        list) return 0 ;;
        umbrella) [[ $room =~ ^(llama|bridge|docs|tools|bench)$ ]] && return 0 || return 1 ;;
        esac
        [[ $room =~ ^(llama|bridge|docs|tools|bench)$ ]] && return 0
        [[ " ${below[$room]} " == *" ${owner[$target]} "* ]]
        return
    fi
    [[ " ${below[$room]} " == *" ${target%%/*} "* ]]
}

sources | while IFS= read -r file; do
    room=${file%%/*}
    case "$file" in
    tests/*) continue ;;
    include/tandem/tandem.h) continue ;;
    include/tandem/*) room=${owner[${file#include/}]} ;;
    esac
    if [ "$room" = list ]; then
        continue
    fi
    if [ -z "${below[$room]:-}" ]; then
        complain "$file: stands in no known room"
        continue
    fi
    grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' "$file" |
        while IFS=: read -r line text; do
            target=${text#*\"}
            target=${target%%\"*}
            # A program's own headers stand beside its files.
            [[ $room =~ ^(tools|bench)$ && $target != */* ]] && continue
            if [[ $file == tools/tandem-@(llama|server)/* && $target == llama/* ]]; then
                complain "$file:$line: includes \"$target\" and not tandem/llama.h"
            elif ! allowed "$room" "$target"; then
                complain "$file:$line: room '$room' must not include \"$target\""
            fi
        done
done
folder_cycles | while IFS= read -r set; do
    complain "files of different folders include each other: $set"
done
finish check_includes
