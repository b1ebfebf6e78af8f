#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: check_hardening.sh FOLDER      (where the libraries and the tools are, built with optimisation)
# Shipped files are hardened, so that an overrun ends the program instead of being exploitable: relocations are
# read-only, stacks are not executable and are guarded, calls of libc check sizes, tools are position-independent,
# and the CPU may check targets of calls and returns. No file contains the name of its build folder.
set -u
cd "$(dirname "$0")/../.."
. tools/dev/files.sh
folder=${1:-build}
tools=$(for main in tools/*/main.c; do basename "$(dirname "$main")"; done | grep -v -- -pack)

needs() { # FILE WHAT PATTERN: the text on stdin has it
    grep -qE "$3" || complain "$1: $2 is missing"
}
for file in libtandem.so libtandem-llama.so $tools; do
    path=$folder/$file
    [ -f "$path" ] || { complain "$path does not exist"; continue; }
    readelf -lW "$path" | needs "$file" "RELRO" GNU_RELRO
    readelf -lW "$path" | needs "$file" "a stack that is not executable" 'GNU_STACK .* RW '
    readelf -dW "$path" | needs "$file" "binding at start" '\(FLAGS_1\) .*NOW'
    nm -D "$path" | needs "$file" "the stack's guard" __stack_chk_fail
    nm -D "$path" | needs "$file" "FORTIFY_SOURCE" '__[a-z]+_chk@'
    # (a path of its own: "%s/.cache/tandem" names no folder /tandem)
    ! LC_ALL=C grep -qaP "(?<![\w./])\Q$PWD\E(\x00|/)" "$path" || complain "$file: names the folder $PWD"
done
for file in $tools; do
    readelf -dW "$folder/$file" | needs "$file" "PIE" '\(FLAGS_1\) .*PIE'
done
# (The linker keeps the mark only where libc's own start files have it, so objects are looked at.)
if [ "$(uname -m)" = x86_64 ]; then
    objects=$(ar t "$folder/libtandem.a" | wc -l)
    marked=$(readelf -n "$folder/libtandem.a" 2>/dev/null | grep -c 'IBT, SHSTK')
    [ "$objects" -eq "$marked" ] || complain "libtandem.a: $marked of $objects objects allow CET"
fi
finish check_hardening
