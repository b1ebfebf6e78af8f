#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: mutants.sh [NAME...]      (make soak JOBS=mutants; default: all of tests/mutants)
# Do our tests find faults? Each patch of tests/mutants plants one (a check of a parser left out, a lock not given
# back, an error passed over) into a copy of the tree, and the tests that its line "By:" names have to fail. The
# same tests pass without it. Prints a table; at least 18 of 20 must be found.
#     By: suite NAME...    suites       By: tsan NAME...    suites with the thread sanitizer
#     By: faults CASES     faults.sh    By: tools GROUP     tools.sh
set -u
cd "$(dirname "$0")/../.."
. tools/dev/files.sh
root=$PWD
copy=$root/build/mutants/tree
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

build() { # VARIANT TARGET...: in the copy
    local variant=$1
    shift
    if [ "$variant" = tsan ]; then
        set -- BUILD=build/tsan CC="${compiler}clang" SAN=thread "$@"
    else
        set -- BUILD=build/plain CC="${compiler}gcc" "$@"
    fi
    make -s --no-print-directory -C "$copy" -j"$(nproc)" ASSERT=1 CFLAGS='-O1 -g' "$@" >"$root/build/mutants/log" 2>&1
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
