#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What we measure about ourselves (make stats): lengths, comment share, violations of the rules.
set -u
cd "$(dirname "$0")/../.."
. tools/dev/files.sh
. tools/dev/arrows.sh

spread() { # NAME: median, p90 and maximum of the numbers (first column) on standard input
    sort -n | awk -v name="$1" '{ v[NR] = $1; label[NR] = $2 }
        END { if (NR) printf "%-34s n %4d  median %4d  p90 %4d  max %4d (%s)\n", name, NR,
              v[int((NR + 1) / 2)], v[int(NR * 0.9 + 0.5)], v[NR], label[NR] }'
}
library() { sources | grep -vE '^(tests|tools|bench|llama)/'; }
functions() { # a body stands between `{` and `}` in the first column
    xargs awk '/^\{/ { start = FNR } /^\}/ && start { print FNR - start - 1, FILENAME; start = 0 }'
}
lengths() { xargs wc -l | grep -v ' total$'; }

library | grep '\.c$' | lengths | spread "library .c files, lines"
library | grep '\.h$' | lengths | spread "library .h files, lines"
library | grep '\.c$' | functions | spread "library functions, lines"
sources | grep -E '^(tools|llama)/.*\.c$' | functions | spread "tools and llama functions, lines"
sources | grep -E '^tests/.*\.c$' | functions | spread "test functions, lines"
awk '/\/\*/ { c = 1 } { lines++; if (c) comment++ } /\*\// { c = 0 }
    END { printf "%-34s %d %% of %d lines\n", "comments in public headers", 100 * comment / lines, lines }' \
    include/tandem/*.h
printf '%-34s %s\n' "public functions" "$(grep -h '^TANDEM_API' include/tandem/*.h | wc -l)"
printf '%-34s %s\n' "switches over op or type" "$(library | grep '\.c$' |
    xargs grep -nE 'switch \(.*(op|type)\)' | wc -l)"
say() { printf '%-34s %s\n' "$@"; }
matches() { xargs grep -ohE "$1" | wc -l; } # in the files on standard input

arrows >"${TMPDIR:-/tmp}/arrows.$$"
printf '%-12s %6s %8s %8s %8s %10s %8s\n' room files lines longest arrows 'comments %' asserts
for room in $rooms tools tests; do
    files=$(sources | grep "^$room/")
    code=$(grep '\.c$' <<<"$files")
    printf '%-12s %6d %8d %8d %8d %10d %8d\n' "$room" "$(wc -l <<<"$files")" "$(xargs cat <<<"$files" | wc -l)" \
        "$(xargs wc -l <<<"$files" | grep -v ' total$' | sort -rn | awk 'NR == 1 { print $1 }')" \
        "$(grep -cE "^$room/\S* $room/" "${TMPDIR:-/tmp}/arrows.$$")" \
        "$(xargs awk '/\/\*/ { c = 1 } { n++; if (c) k++ } /\*\// { c = 0 } END { print int(100 * k / n) }' <<<"$code")" \
        "$(xargs grep -ohE '\bTND_ASSERT\(' <<<"$files" | wc -l)"
done
rm -f "${TMPDIR:-/tmp}/arrows.$$"
say "circles of files" "$(cycles | wc -l), of files of different folders $(folder_cycles | wc -l)"
say "library files over 400 lines" "$(library | grep '\.c$' | lengths | awk '$1 > 400 { n++; f = f " " $2 } END { print n + 0 f }')"
# A search that goes on at the next slot, and a capacity that doubles.
say "hash tables written by hand" "$(library | grep '\.c$' | xargs grep -lE '= \(?[a-z]+ \+ 1\)? ?& \(?[^;]*(- 1|mask)' | tr '\n' ' ')"
say "growable arrays written by hand" "$(library | grep '\.c$' | xargs grep -lE '(2 \* [a-z>.-]*(capacity|room)|(capacity|room) \* 2)' | tr '\n' ' ')"
for check in includes style words docs; do
    bash tools/dev/check_$check.sh | tail -1
done
