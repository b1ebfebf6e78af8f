#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: reliability.sh      after `make soak`: writes its figures into the table of docs/reliability.md.
# A figure belongs to the row whose first cell is its KIND. Cells: kind, tried, survived, test, last figures.
set -eu
cd "$(dirname "$0")/../.."
page=docs/reliability.md
awk -F'|' -v OFS='|' -v page=$page '
    NR == FNR {when[$4] = $2 ", " $3; tried[$4] = $5; survived[$4] = $6; next}
    /^\|/ {
        kind = $2
        gsub(/^ +| +$/, "", kind)
        if (kind in tried) {
            $3 = " " tried[kind] " "
            $4 = " " survived[kind] " "
            $6 = " " when[kind] " "
            is_written[kind] = 1
        }
    }
    {print}
    END {
        for (kind in tried) {
            if (!(kind in is_written)) {
                print page " has no row for: " kind > "/dev/stderr"
                missing = 1
            }
        }
        exit missing
    }' build/soak/summary.txt $page >$page.new || { rm -f $page.new; exit 1; }
mv $page.new $page
