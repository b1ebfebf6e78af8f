#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: cover.sh BUILD [--missed]    Line coverage by room from the counters of a run (make cover).
# Parsers, which read untrusted input, must have PARSERS_LEAST percent; --missed prints their lines
# that were never executed.
set -u
cd "$(dirname "$0")/../.."
build=$1
PARSERS_LEAST=95
parsers='^(formats/|sched/plan_text|llama/state|backends/gpu/gpu_(cache|tiles_file)'
parsers+='|table/(json_read|record_json|table_json|table_text|table_checksum|table_file|problem))'
parsers+='[a-z_0-9]*\.c$'

sources() { find "$build/obj" -name '*.gcno' -not -path '*/tests/*' | sort; }
if [ "${2:-}" = --missed ]; then
    sources | while read -r counters; do
        source=${counters#"$build"/obj/}
        source=${source%.gcno}.c
        [[ $source =~ $parsers ]] || continue
        gcov -t -o "$(dirname "$counters")" "$counters" 2>/dev/null |
            awk -v want="$source" -F: '$3 == "Source" { hit = $4 == want }
                hit && $1 ~ /#####/ { sub(/^ +/, "", $2); line = $0; sub(/^[^:]*:[^:]*:/, "", line)
                    print want ":" $2 ":" line }'
    done
    exit 0
fi
sources | while read -r counters; do
    source=${counters#"$build"/obj/}
    gcov -n -o "$(dirname "$counters")" "$counters" 2>/dev/null |
        awk -v want="${source%.gcno}.c" '
            /^File/ { hit = index($0, "\047" want "\047") }
            /^Lines executed/ && hit {
                split($0, part, /[:% ]+/)
                printf "%s %s %s\n", want, part[3], $NF; hit = 0
            }'
done | awk -v parsers="$parsers" -v least="$PARSERS_LEAST" '
    { room = $1; sub(/\/.*/, "", room); lines[room] += $3; run[room] += $2 * $3 / 100
      if ($1 ~ parsers) { parser_lines += $3; parser_run += $2 * $3 / 100 }
      printf "  %-44s %6.1f %% of %5d lines\n", $1, $2, $3 }
    END { for (room in lines)
        printf "%-46s %6.1f %% of %5d lines\n", room, 100 * run[room] / lines[room], lines[room]
        share = parser_lines > 0 ? 100 * parser_run / parser_lines : 0
        printf "%-46s %6.1f %% of %5d lines\n", "parsers", share, parser_lines
        if (share < least) { printf "parsers: expected at least %d %%\n", least; exit 1 } }'
