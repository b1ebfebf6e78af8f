#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: chat_memory.sh BUILD [SECONDS]      (needs tandem-llama and make-models in BUILD)
# A long conversation, over the context's end many times, with resets and saved and loaded states: its resident memory
# in the last half is at most that of the first half and 1 MiB. Ends with a figure.
set -u
cd "$(dirname "$0")/.."
build=$PWD/${1:-build/gcc}
seconds=${2:-20}
[ -r /proc/self/status ] || { echo "SKIP chat_memory: no /proc"; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{hf,torch,meta,sharded}
"$build/make-models" "$work" || exit 1
cd "$work" || exit 1
export XDG_CACHE_HOME=$work TANDEM_DEVICE=none
mkfifo lines
# shellcheck disable=SC2016
"$build/tandem-llama" chat model.bin -t tokenizer.bin --table none --chat-template plain -n 8 --threads 2 <lines >/dev/null 2>err &
chat=$!
exec 3>lines
first=0 last=0 turns=0 began=$SECONDS
# A long unknown command after each turn fills the pipe: it holds 16 turns, not 3,000 that are still to come.
printf -v filler '/%04000d' 0
while [ $((SECONDS - began)) -lt "$seconds" ]; do
    printf 'hello, how are you?\n%s\n' "$filler" >&3 || break
    case $((turns++ % 500)) in
    199) printf '/reset\n' >&3 ;;
    299) printf '/save state\n/load state\n' >&3 ;;
    esac
    [ $((turns % 50)) -eq 0 ] || continue
    kib=$(sed -n 's/^VmRSS:[[:space:]]*\([0-9]*\).*/\1/p' "/proc/$chat/status" 2>/dev/null)
    [ -n "$kib" ] || break
    if [ $((2 * (SECONDS - began))) -lt "$seconds" ]; then
        first=$((kib > first ? kib : first))
    else
        last=$((kib > last ? kib : last))
    fi
done
exec 3>&-
wait "$chat"
code=$?
echo "$turns turns in $((SECONDS - began)) s, exit code $code: $first KiB resident in the first half, $last KiB in the last"
good=$([ "$code" -eq 0 ] && [ "$turns" -gt 100 ] && [ "$first" -gt 0 ] && [ "$last" -le $((first + 1024)) ] && echo 1 || echo 0)
[ "$good" -eq 1 ] || head -3 err
echo "$turns tried, $((good * turns)) survived: Turns of a long chat with resident memory flat"
[ "$good" -eq 1 ]
