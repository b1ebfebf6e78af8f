#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Mechanical checks of style: blanks, line and file length, unique names, licence lines.
set -u
cd "$(dirname "$0")/../.."
. tools/dev/files.sh

lines() { # TEXT PATTERN FILE...: complains about each line that fits
    local text=$1 pattern=$2
    shift 2
    LC_ALL=C grep -nHP "$pattern" "$@" | cut -d: -f1,2 | while IFS= read -r hit; do
        complain "$hit: $text"
    done
}

sources | mapfile -t c_files
project_files . |
    grep -E '(\.([ch]|sh|mk|md|in|json|cmake|txt)|^Makefile|^\.ci/run)$' |
    grep -vE '^(bench-data|tests/fuzz/corpus|tests/golden|tests/machines|tests/stand-ins)/' | mapfile -t texts
[ "${#c_files[@]}" -gt 0 ] || complain "found no sources"
lines "a tab" '\t' "${c_files[@]}"
lines "not ASCII" '[^\x00-\x7F]' "${c_files[@]}"
lines "longer than 100 columns" '^.{101,}' "${c_files[@]}"
lines "blanks at the end" '[ \t]+$' "${texts[@]}"
lines "a carriage return" '\r' "${texts[@]}"
lines "TODO without an issue number" '\b(TODO|FIXME|XXX)\b(?!\(#[0-9]+\))' "${c_files[@]}"
lines "an if without braces" '^\s*(if|while|for) \(.*\)\s+(return|continue|break|goto)\b' "${c_files[@]}"

for file in "${texts[@]}"; do
    [ -s "$file" ] || continue
    [ -z "$(tail -c 1 "$file")" ] || complain "$file: no newline at the end"
    [ -n "$(tail -n 1 "$file")" ] || complain "$file: an empty line at the end"
done
for file in "${c_files[@]}"; do
    head -1 "$file" | grep -q '^/\* SPDX-License-Identifier: MIT' ||
        complain "$file:1: does not begin with the SPDX line"
    length=$(wc -l <"$file")
    # Lists and tables may be longer.
    if [ "$length" -gt 800 ] && [[ $file != *-list.h ]]; then
        complain "$file: $length lines, at most 800"
    fi
done
printf '%s\n' "${c_files[@]}" | grep -vE '(^|/)main\.c$' | sed 's,.*/,,' | sort | uniq -d | while IFS= read -r name; do
    complain "$name: this file name stands in two places"
done
finish check_style
