#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: check_report.sh BUILD             (needs BUILD/mulmat-tune)
# Checks pages of mulmat-tune analyze, new ones and those of docs/reports/: they load nothing from outside,
# are not too large, and are valid HTML (where `tidy` is installed). The last line is
# "N passed, N failed, N skipped".
set -u
cd "$(dirname "$0")/../.."
tune=$PWD/${1:-build/release}/mulmat-tune
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0

good() { passed=$((passed + 1)); }
bad() {
    failed=$((failed + 1))
    echo "FAILED: $*"
}

# make NAME TABLE...: a page of tables.
make_page() {
    local name=$1
    shift
    "$tune" analyze "$@" --html "$work/$name.html" >"$work/log" 2>&1 || bad "analyze $*: $(head -3 "$work/log")"
}
make_page macbook bench-data/macbook-pro-2018/table.txt --threads 1,4
if "$tune" analyze bench-data/macbook-pro-2018/table.txt --html "$work/macbook.html" 2>"$work/log" ||
    ! grep -q 'is there, expected a new file, or -y' "$work/log"; then
    bad "a page was replaced unasked: $(head -3 "$work/log")"
else
    good
fi
make_page one-type bench-data/epyc-zen5-2-cores/table.json --type q4_0
make_page devices bench-data/pocl-epyc-zen5/table.json --type q4_0
make_page lanes bench-data/epyc-zen5-2-cores/table.json --type q4_0 --trace tests/fuzz/corpus/trace/two_runs.json
make_page compared bench-data/epyc-zen5-2-cores/table.json bench-data/epyc-zen5-2-cores/table.json --type q4_0

# Links lead to anchors of the page, images in CSS to its own patterns, namespaces are not loaded.
outside='https?://|src=|srcset=|@import|<(script|iframe|object|embed|link|base|form)|url\([^#]|href="[^#]|[[:space:]]on[a-z]+='
for page in "$work"/*.html docs/reports/*.html; do
    [ -f "$page" ] || continue
    if grep -oE "<[^>]*($outside)[^>]*>|@import|url\([^#]" "$page" | head -3 | grep .; then
        bad "$page: asks for something outside itself"
    else
        good
    fi
    if ! command -v tidy >/dev/null; then
        skipped=$((skipped + 1))
    elif tidy -e -q --drop-empty-elements no "$page" >"$work/tidy" 2>&1; then
        good
    else
        bad "$page: $(head -5 "$work/tidy")"
    fi
done
bytes=$(wc -c <"$work/one-type.html")
if [ "$bytes" -lt 600000 ]; then
    good
else
    bad "a page for one type has $bytes bytes, at most 600000 are expected"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
