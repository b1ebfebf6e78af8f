#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: check_symbols.sh FOLDER      (where libtandem and libtandem-llama are)
# The shared libraries export tandem_ names only, the objects define tandem_ and tnd_ names only, and
# nothing in the library can end the program, print, or reach for functions that are unsafe in one.
set -u
cd "$(dirname "$0")/../.."
. tools/dev/files.sh
folder=${1:-build}
libraries="libtandem libtandem-llama"
for file in libtandem{,-llama}.{so,a}; do
    [ -f "$folder/$file" ] || complain "$folder/$file does not exist"
done
[ "$problems" -eq 0 ] || finish check_symbols

# The interface's version is that of the SONAME and of the symbols.
interface=$(sed -n 's/^#define TANDEM_VERSION_STRING "\([0-9]*\.[0-9]*\).*"/\1/p' include/tandem/version.h)
for library in $libraries; do
    nm -D --defined-only "$folder/$library.so" | awk '$2 != "A" {print $3}' | while read -r name; do
        [[ $name == tandem_*@@TANDEM_$interface ]] ||
            complain "$library.so exports '$name', not tandem_... of version TANDEM_$interface"
    done
    readelf -d "$folder/$library.so" | grep -q "SONAME.*\[$library\.so\.$interface\]" ||
        complain "$library.so has not the SONAME $library.so.$interface"
    nm -A --defined-only --extern-only "$folder/$library.a" 2>/dev/null |
        awk '{sub(/:[^:]*$/, "", $1); print $1, $3}' | while read -r member name; do
            [[ $name =~ ^(tandem|tnd)_ ]] || complain "$member defines '$name', not tandem_ or tnd_"
        done
done

# Each public declaration has a body, or programs link to nothing.
check_declared() { # LIBRARY HEADER...
    local library=$1 name
    shift
    sed -n '/^TANDEM_API/,/;/p' "$@" |
        grep -v '^TANDEM_API const char \*const' | tr '\n' ' ' | grep -oE 'TANDEM_API [^(]*\(' |
        sed 's/.*[ *]\(tandem_[a-z0-9_]*\)($/\1/' | sort -u | while read -r name; do
            nm -D --defined-only "$folder/$library.so" | grep -qF " $name@" ||
                complain "'$name' is declared in include/tandem/ but not defined in $library.so"
        done
}
# shellcheck disable=SC2046 # file names without blanks
check_declared libtandem $(ls include/tandem/*.h | grep -v /llama.h)
check_declared libtandem-llama include/tandem/llama.h

banned='abort|exit|_exit|_Exit|quick_exit|printf|vprintf|puts|putchar|putc|perror|stdout|stderr'
banned+='|__printf_chk|__vprintf_chk|setjmp|_setjmp|longjmp|siglongjmp|sprintf|vsprintf|gets'
banned+='|strtok|rand|srand|setlocale|system|signal|sigaction|alarm|sleep'
nm -A --undefined-only "$folder"/libtandem{,-llama}.a 2>/dev/null |
    awk '{print $1, $NF}' | grep -E " ($banned)(@.*)?\$" |
    grep -v ':mapped.o: sigaction$' | while read -r where name; do
        complain "$where uses '$name'"
    done
finish check_symbols
