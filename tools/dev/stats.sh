#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What we measure about ourselves (make stats): lengths, comment share, violations of the rules.
set -u
cd "$(dirname "$0")/../.."
. tools/dev/files.sh

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
for room in base ggml-like backends sched table tune measure runtime formats llama tools tests; do
    printf '%-34s %s lines of C\n' "$room" "$(sources | grep "^$room/" | xargs -r cat | wc -l)"
done
for check in includes style docs; do
    bash tools/dev/check_$check.sh | tail -1
done
