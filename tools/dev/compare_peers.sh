#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: [BUILD=build] [ROUNDS=5] [THREADS=N] compare_peers.sh MODEL.gguf LLAMA-BENCH [OPTION..] [-- LLAMA-BENCH [OPTION..]]..
# Tokens a second of Tandem and of other programs that this machine has, with the same file and number of
# threads: llama-bench of llama.cpp, or of a program that goes back to it, each with the options that it is to
# run with. They take turns; a row of the table has medians over rounds, the last one Tandem over the fastest
# of the others. Nothing else may run meanwhile. Takes about half a minute a round and program for a 1.1B model.
set -eu
usage() { sed -n '3,8s/^# \{0,1\}//p' "$0"; exit 2; }
[ $# -ge 2 ] || usage
build=${BUILD:-$(dirname "$0")/../../build}
rounds=${ROUNDS:-5}
threads=${THREADS:-$(lscpu -p=CORE,SOCKET | grep -v '^#' | sort -u | wc -l)}
prompts=32,128,512
generated=64
model=$1
shift
ours=$build/tandem-llama
[ -x "$ours" ] || { echo "compare_peers: $ours is missing: run make" >&2; exit 1; }
[ -r "$model" ] || { echo "compare_peers: $model cannot be read" >&2; exit 1; }
unset OPENBLAS_CORETYPE
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Each peer is a line of words: the program and its options.
peers=()
words=()
for word in "$@" --; do
    if [ "$word" != -- ]; then
        words+=("$word")
    elif [ ${#words[@]} -gt 0 ]; then
        command -v "${words[0]}" >/dev/null || { echo "compare_peers: ${words[0]} cannot be run" >&2; exit 1; }
        peers+=("$(printf '%q ' "${words[@]}")")
        words=()
    fi
done

# Lines "NAME TEST SPEED" to $work/speeds.
run_ours() {
    "$ours" bench "$model" --prompt "$prompts" --gen "$generated" --repeat 1 --threads "$threads" --quiet \
        --output csv >"$work/out" 2>"$work/errors" || { cat "$work/errors" >&2; exit 1; }
    awk -F, 'NR > 1 { print "Tandem", $1 " " $2, $5 }' OFS='\t' "$work/out" >>"$work/speeds"
}
number() { sed -n "s/.*\"$1\": *\([0-9.]*\).*/\1/p" <<<"$2"; }
run_peer() { # NUMBER WORDS
    local line prompt generation speed
    eval "$2 -m $(printf %q "$model") -p $prompts -n $generated -t $threads -r 1 -o json" >"$work/out" 2>"$work/errors" ||
        { tail -3 "$work/errors" >&2; echo "compare_peers: failed: $2" >&2; exit 1; }
    tr '\n' ' ' <"$work/out" | sed 's/}/}\n/g' >"$work/objects" # one object per line
    while read -r line || [ -n "$line" ]; do
        prompt=$(number n_prompt "$line") generation=$(number n_gen "$line")
        speed=$(sed -n 's/.*"samples_ns": *\[ *\([0-9]*\).*/\1/p' <<<"$line" |
            awk -v n="$((prompt + generation))" '$1 > 0 { printf "%.3f", n * 1e9 / $1 }')
        [ -n "$speed" ] || continue
        if [ "$generation" -eq 0 ]; then printf '%s\tprompt %s\t%s\n' "$1" "$prompt" "$speed"; else
            printf '%s\tgeneration %s\t%s\n' "$1" "$generation" "$speed"; fi >>"$work/speeds"
        sed -n 's/.*"build_commit": *"\([^"]*\)".*"build_number": *\([0-9]*\).*/build \2 (\1)/p' <<<"$line" >"$work/version.$1"
    done <"$work/objects"
    [ -s "$work/version.$1" ] || { echo "compare_peers: $2 printed no result as json" >&2; exit 1; }
}

for ((round = 1; round <= rounds; round++)); do
    echo "compare_peers: round $round of $rounds" >&2
    run_ours
    for i in "${!peers[@]}"; do run_peer "$i" "${peers[i]}"; done
done

median() { # NAME TEST
    awk -F'\t' -v name="$1" -v test="$2" '$1 == name && $2 == test { print $3 }' "$work/speeds" | sort -g |
        awk '{ v[NR] = $1 } END { if (NR) print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2; else print 0 }'
}
tests=("prompt 32" "prompt 128" "prompt 512" "generation $generated")
row() { # NAME LABEL
    local test
    printf '| %s |' "$2"
    for test in "${tests[@]}"; do printf ' %.1f |' "$(median "$1" "$test")"; done
    echo
}
echo "$(basename "$model"), $(LC_ALL=C lscpu | sed -n 's/^Model name: *//p' | head -1), $threads threads, $(date -u +%F); tokens/s, medians of $rounds rounds in turns"
echo
printf '| program |'; printf ' %s |' "${tests[@]}"; echo
printf '|---|'; printf -- '---:|%.0s' "${tests[@]}"; echo
row Tandem "$("$ours" --version)"
for i in "${!peers[@]}"; do row "$i" "\`${peers[i]% }\`, $(cat "$work/version.$i")"; done
printf '| Tandem over the fastest other |'
for test in "${tests[@]}"; do
    for i in "${!peers[@]}"; do median "$i" "$test"; done | sort -g | tail -1 |
        awk -v a="$(median Tandem "$test")" '{ if ($1 > 0) printf " %.2fx |", a / $1; else printf " ? |" }'
done
echo
