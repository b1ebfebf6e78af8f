#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: mutants.sh [NAME...]         (make soak JOBS=mutants; default: all of tests/mutants)
#        mutants.sh random N SEED     (make mutants N=20 SEED=7)
# Do our tests find faults? Each patch of tests/mutants plants one (a missing check of a parser, a lock that is not
# released, an ignored error) into a copy of the tree, and the tests that its line "By:" names have to fail. The
# same tests pass without it. Prints a table; at least 18 of 20 must be found.
#     By: suite NAME...    suites       By: tsan NAME...    suites with the thread sanitizer
#     By: faults CASES     faults.sh    By: tools GROUP     tools.sh
# With "random", N single changes (comparison, logic, sign, stride, constant, a call or a memory order left out)
# are drawn by the seed from the sources that suites link, tests/draw_mutants.c. Changes that leave the object
# code as it was, or do not compile, are drawn again. The suites that link the file run with little effort, the
# nearest room's first, until one fails; one that takes 3 times as long as without the change has failed.
set -u
cd "$(dirname "$0")/../.."
. tools/dev/files.sh
root=$PWD
copy=$root/build/mutants/tree
random=''
[ "${1:-}" != random ] || random="${2:-20} ${3:-1}"
names=${*:-$(cd tests/mutants && printf '%s\n' *.patch | sed 's/\.patch$//')}
unset MAKEFLAGS MFLAGS MAKELEVEL
compiler=$(command -v ccache >/dev/null && echo 'ccache ')

# (Kept between runs: files that did not change are not copied, so not compiled.)
mkdir -p "$copy"
project_files . | tar -cf - -T - | tar -xf - -C "$copy" --skip-old-files
project_files . | while IFS= read -r file; do
    cmp -s "$file" "$copy/$file" || cp -p "$file" "$copy/$file"
done
ln -sfn "$(realpath "${TANDEM_TEST_DATA:-../shared/data}" 2>/dev/null || echo /nowhere)" "$root/build/mutants/data"
export TANDEM_TEST_DATA=$root/build/mutants/data TANDEM_TEST_EFFORT=1 TANDEM_TEST_TIMEOUT=240
export POCL_CACHE_DIR=${POCL_CACHE_DIR:-$root/build/pocl}

build() { # VARIANT TARGET...: in the copy
    local variant=$1
    shift
    if [ "$variant" = tsan ]; then
        set -- BUILD=build/tsan CC="${compiler}clang" SAN=thread "$@"
    else
        set -- BUILD=build/plain CC="${compiler}gcc" "$@"
    fi
    make -s --no-print-directory -C "$copy" -j"$(nproc)" ASSERT=1 CFLAGS='-O1 -g0' "$@" >"$root/build/mutants/log" 2>&1
}
# Builds and runs what a line "By:" names. 0: passed, 1: failed, 2: did not build.
judge() { # KIND WORDS...
    local kind=$1
    shift
    case $kind in
    suite) build plain $(printf 'build/plain/suite_%s ' "$@") || return 2
        (cd "$copy" && bash tests/process.sh $(printf 'build/plain/suite_%s ' "$@")) ;;
    tsan) build tsan $(printf 'build/tsan/suite_%s ' "$@") || return 2
        (cd "$copy" && bash tests/process.sh $(printf 'build/tsan/suite_%s ' "$@")) ;;
    faults) build plain faults || return 2
        (cd "$copy" && bash tests/faults.sh build/plain 0 "$*") ;;
    tools) build plain faults || return 2
        (cd "$copy" && bash tests/tools.sh build/plain "$1") ;;
    esac >"$root/build/mutants/log" 2>&1 || return 1
}

# ---- single changes, drawn at random ----

# The suites that link a file, the lowest room's first: those are the nearest.
suites_of() { # FILE
    local room=${1%%/*}
    case $1 in
    tools/report/*) room=report ;;
    tools/tandem-server/*) room=server ;;
    esac
    awk -v room="$room" '{for (i = 2; i <= NF; i++) if ($i == room) print NF, i, $1}' <<<"$suite_rooms" |
        sort -n -k2 -k1 | awk '{print $3}'
}
# How long a suite takes without a change; once.
declare -A seconds_of=()
measure() { # SUITE
    local began=$SECONDS
    [ -z "${seconds_of[$1]:-}" ] || return 0
    TANDEM_TEST_TIMEOUT=600 judge suite "$1" </dev/null ||
        { tail -5 build/mutants/log; complain "suite_$1 fails without a change"; return 1; }
    seconds_of[$1]=$((SECONDS - began + 1))
}
# Puts the text of a place into the copy, where it stands in the tree.
change() { # FILE LINE COLUMN LENGTH TEXT
    TEXT=$5 awk -v line="$2" -v column="$3" -v n="$4" '
        NR == line {$0 = substr($0, 1, column - 1) ENVIRON["TEXT"] substr($0, column + n)}
        {print}' "$1" >"$copy/$1"
}
# Draws one change after the other until N were judged.
judge_random() { # N SEED
    local n=$1 tried=0 found=0 same=0 file line column length text kind object suite verdict began old survivors=''
    suite_rooms=$(make -s --no-print-directory suite-rooms)
    gcc -std=c11 -O1 -o build/mutants/draw-mutants tests/draw_mutants.c || return 1
    project_files $rooms tools/report tools/tandem-server | grep '\.c$' | grep -vE '/(arm|windows)/|/main\.c$' |
        xargs build/mutants/draw-mutants "$2" $((6 * n)) >build/mutants/drawn
    echo "$n changes, seed $2; with each, the suites that link the file run until one fails"
    while [ "$tried" -lt "$n" ] && IFS=$'\t' read -r file line column length text kind <&3; do
        object=build/plain/obj/${file%.c}.o
        build plain "$object" && cp "$copy/$object" build/mutants/before.o || continue
        change "$file" "$line" "$column" "$length" "$text"
        old=$(sed -n "${line}s/^ *//p" "$file")
        began=$SECONDS verdict=''
        if ! build plain "$object" || cmp -s "$copy/$object" build/mutants/before.o; then
            same=$((same + 1))
            cp "$file" "$copy/$file"
            continue
        fi
        for suite in $(suites_of "$file"); do
            if [ -z "${seconds_of[$suite]:-}" ]; then # (with the file as it was)
                cp "$file" "$copy/$file"
                measure "$suite" || continue
                change "$file" "$line" "$column" "$length" "$text"
            fi
            if ! TANDEM_TEST_TIMEOUT=$((3 * seconds_of[$suite] + 20)) judge suite "$suite" </dev/null; then
                verdict=$suite
                break
            fi
        done
        tried=$((tried + 1))
        cp "$file" "$copy/$file"
        [ -z "$verdict" ] || found=$((found + 1))
        printf '[%3d/%d] %-9s %-10s %4d s  %s:%d: %s\n' "$tried" "$n" "$([ -n "$verdict" ] && echo caught || echo SURVIVED)" \
            "$verdict" $((SECONDS - began)) "$file" "$line" "$kind"
        [ -n "$verdict" ] || survivors+="$file:$line: $kind: column $column becomes '$text' in
    $old
"
    done 3<build/mutants/drawn
    [ -z "$survivors" ] || printf 'Survivors:\n%s' "$survivors"
    echo "($same more left the object code as it was, or did not compile)"
    echo "$tried tried, $found survived: Random single changes, found by the tests"
}
if [ -n "$random" ]; then
    judge_random $random
    finish mutants
fi

# ---- the fixed set ----

# Without a fault everything passes, or finding one means nothing.
for name in $names; do
    sed -n 's/^By: //p' "tests/mutants/$name.patch"
done | sort -u | while IFS= read -r by; do
    judge $by </dev/null || { tail -20 build/mutants/log; complain "$by fails without a mutant"; }
done
[ "$problems" -eq 0 ] || finish mutants

found=0 tried=0
for name in $names; do
    patch=$root/tests/mutants/$name.patch
    by=$(sed -n 's/^By: //p' "$patch")
    tried=$((tried + 1))
    began=$SECONDS
    (cd "$copy" && patch -s -p1 --no-backup-if-mismatch <"$patch") || { complain "$name does not fit the tree"; continue; }
    judge $by </dev/null
    code=$?
    (cd "$copy" && patch -s -R -p1 --no-backup-if-mismatch <"$patch") || exit 1
    case $code in
    0) verdict='NOT FOUND' ;;
    1) verdict=found && found=$((found + 1)) ;;
    *) verdict='DOES NOT BUILD' ;;
    esac
    printf '%-16s %-22s %-15s %4d s  %s\n' "$name" "$by" "$verdict" $((SECONDS - began)) "$(head -1 "$patch")"
done
echo "$tried tried, $found survived: Planted faults, found by the tests"
[ $((10 * found)) -ge $((9 * tried)) ] || complain "$found of $tried found, expected nine of ten"
finish mutants
