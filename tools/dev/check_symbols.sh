#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: check_symbols.sh FOLDER      (where libtandem.a and libtandem.so are)
# The shared library exports tandem_ names only, the objects define tandem_ and tnd_ names only, and
# nothing in the library can end the program, print, or reach for functions that are unsafe in one.
set -u
cd "$(dirname "$0")/../.."
. tools/dev/files.sh
folder=${1:-build}
for file in libtandem.so libtandem.a; do
    [ -f "$folder/$file" ] || complain "$folder/$file does not exist"
done
[ "$problems" -eq 0 ] || finish check_symbols

nm -D --defined-only "$folder/libtandem.so" | awk '$2 != "A" {print $3}' | sed 's/@.*//' |
    while read -r name; do
        [[ $name == tandem_* ]] || complain "libtandem.so exports '$name'"
    done

nm -A --defined-only --extern-only "$folder/libtandem.a" 2>/dev/null |
    awk '{sub(/:[^:]*$/, "", $1); print $1, $3}' | while read -r member name; do
        [[ $name =~ ^(tandem|tnd)_ ]] || complain "$member defines '$name', not tandem_ or tnd_"
    done

# Each public declaration has a body, or programs link to nothing.
sed -n '/^TANDEM_API/,/;/p' include/tandem/*.h |
    grep -v '^TANDEM_API const char \*const' | tr '\n' ' ' | grep -oE 'TANDEM_API [^(]*\(' |
    sed 's/.*[ *]\(tandem_[a-z0-9_]*\)($/\1/' | sort -u | while read -r name; do
        nm -D --defined-only "$folder/libtandem.so" | grep -qw "$name" ||
            complain "'$name' is declared in include/tandem/ but defined nowhere"
    done

banned='abort|exit|_exit|_Exit|quick_exit|printf|vprintf|puts|putchar|putc|perror|stdout|stderr'
banned+='|__printf_chk|__vprintf_chk|setjmp|_setjmp|longjmp|siglongjmp|sprintf|vsprintf|gets'
banned+='|strtok|rand|srand|setlocale|system|signal|sigaction|alarm|sleep'
nm -A --undefined-only "$folder/libtandem.a" 2>/dev/null |
    awk '{print $1, $NF}' | grep -E " ($banned)(@.*)?\$" | while read -r where name; do
        complain "$where uses '$name'"
    done
finish check_symbols
