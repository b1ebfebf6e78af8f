#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: check_mingw.sh      (JOBS_MAKE; CCACHE=ccache)
# Builds the rooms up to tune/ and their suites for Windows with the MinGW compiler and runs the suites
# under wine. The tests that fail are those of tests/windows/expected-failures, no more and no fewer;
# those with a "~" before them depend on real times and may pass or fail.
set -u
cd "$(dirname "$0")/../.." || exit 2
. tools/dev/files.sh
build=build/mingw
expected=tests/windows/expected-failures
command -v x86_64-w64-mingw32-gcc-posix >/dev/null || {
    echo "SKIP mingw: no cross compiler x86_64-w64-mingw32-gcc-posix"
    exit 0
}
mkdir -p $build
make --no-print-directory -j"${JOBS_MAKE:-2}" mingw >$build/log 2>&1 || {
    grep -m 10 -E 'error|warning|undefined' $build/log
    complain "the rooms do not build for Windows: see $build/log"
    finish check_mingw
}
command -v wine >/dev/null || {
    echo "SKIP mingw: built for Windows, but there is no wine that runs it"
    exit 0
}
export WINEPREFIX=$PWD/$build/wine WINEDEBUG=-all TANDEM_TEST_EFFORT=1
unset DISPLAY
wine wineboot -i >/dev/null 2>&1
passed=0
for suite in $build/suite_*.exe; do
    name=$(basename "$suite" .exe)
    timeout 400 wine "$suite" >$build/"$name".log 2>&1
    summary=$(tr -d '\r' <$build/"$name".log | sed -n 's/^TANDEM-SUITE passed=\([0-9]*\).*/\1/p')
    [ -n "$summary" ] || complain "$name did not come to its end: see $build/$name.log"
    passed=$((passed + ${summary:-0}))
    tr -d '\r' <$build/"$name".log |
        awk -v suite="${name#suite_}" '/^  Test: /{ name = $0; sub(/^  Test: /, "", name); sub(/ \.\.\..*/, "", name) }
            /FAILED$/{ print suite ": " name }' | sort -u >$build/"$name".failed
    grep "^${name#suite_}: " $expected | sort >$build/"$name".expected
    sed -n "s/^~\(${name#suite_}: .*\)/\1/p" $expected | sort >$build/"$name".timed
    comm -23 $build/"$name".failed $build/"$name".expected | comm -23 - $build/"$name".timed |
        while IFS= read -r test; do complain "failed under wine: $test"; done
    comm -13 $build/"$name".failed $build/"$name".expected |
        while IFS= read -r test; do complain "passes under wine, so take it out of $expected: $test"; done
done
wineserver -k 2>/dev/null
echo "check_mingw: $passed tests passed under wine, $(grep -vc '^[#~]' $expected) fail as expected"
finish check_mingw
