#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: report_pictures.sh [BUILD [TABLE]]      (needs BUILD/mulmat-tune and chromium)
# Makes docs/reports/*.html of the published MacBook table and of a machine's TABLE (default
# bench-data/epyc-zen5-2-cores/table.json), and the pictures of docs/reading-reports.md from them.
# To renew both after measuring:   tools/dev/report_pictures.sh build NEW-TABLE.json
set -eu
cd "$(dirname "$0")/../.."
build=${1:-build/release}
table=${2:-bench-data/epyc-zen5-2-cores/table.json}
pages=docs/reports
pictures=docs/pictures
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$pictures"
command -v chromium >/dev/null || { echo "report_pictures: needs chromium" >&2; exit 1; }

"$build/mulmat-tune" analyze bench-data/macbook-pro-2018/table.txt --threads 1,4 -y --html "$pages/macbook-pro-2018.html"
"$build/mulmat-tune" analyze "$table" --type q4_0 -y --html "$pages/epyc-zen5-2-cores.html"
"$build/mulmat-tune" analyze "$table" --type f32 --html "$work/floats.html"
"$build/mulmat-tune" analyze bench-data/epyc-zen4-2-cores/table.json --html "$work/peaks.html"
"$build/mulmat-tune" analyze bench-data/pocl-epyc-zen5/table.json --type q4_0 --html "$work/devices.html"

# shoot PAGE PICTURE WIDTH HEIGHT OPTION...: a picture of the top of a page, made smaller where
# pngquant is installed.
shoot() {
    local page=$1 picture=$pictures/$2.png width=$3 height=$4
    shift 4
    chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$work/profile" \
        "$@" --screenshot="$PWD/$picture" --window-size="$width,$height" "file://$page" 2>/dev/null
    if command -v pngquant >/dev/null; then
        pngquant --force --skip-if-larger --quality 60-95 --output "$picture" "$picture" || true
    fi
    [ "$(wc -c <"$picture")" -lt 150000 ] || { echo "$picture has more than 150000 bytes" >&2; exit 1; }
}

# figures PAGE TITLE...: a page of the figures whose titles begin so, beside each other.
figures() {
    local page=$1
    shift
    # Everything up to the first section is head, styles and patterns.
    awk '/<header>/ { exit } { print }' "$page"
    echo '<div class="charts">'
    local title
    for title in "$@"; do
        awk -v title="aria-label=\"$title" 'BEGIN { RS = "</figure>\n"; ORS = RS }
            index($0, title) { print substr($0, index($0, "<figure>")); exit }' "$page" |
            awk '{ while (match($0, /.<figure>/)) { $0 = substr($0, RSTART + 1) } print }'
    done
    echo '</div></body></html>'
}

here=$PWD
shoot "$here/$pages/epyc-zen5-2-cores.html" report-top 1000 760
# picture NAME WIDTH HEIGHT PAGE TITLE...
picture() {
    local name=$1 width=$2 height=$3
    shift 3
    figures "$@" >"$work/$name.html"
    grep -q "<figure>" "$work/$name.html" || { echo "$name: no such chart" >&2; exit 1; }
    shoot "$work/$name.html" "$name" "$width" "$height"
}
picture chart-heat 900 300 "$work/floats.html" "Fastest profile, f32, 1 thread" "Fastest profile, f32, 2 threads"
picture chart-roof 900 430 "$work/peaks.html" "Roofline, weights f16" "Roofline, weights q4_0"
picture chart-over-m 900 430 "$pages/macbook-pro-2018.html" "Time over M, 4096 × 4096, q4_0, 1 thread" "Speed over M, 4096 × 4096, q4_0, 1 thread"
picture chart-noise 900 560 "$work/devices.html" "Time over M, 256 × 256, q4_0, 2 threads" "Speed over M, 256 × 256, q4_0, 2 threads"
picture chart-threads 900 460 "$pages/epyc-zen5-2-cores.html" "Speed-up over threads at M = 512, 2048 × 2048, q4_0" "Efficiency over threads at M = 512, 2048 × 2048, q4_0"
picture chart-shares 460 330 "$pages/macbook-pro-2018.html" "Stage shares, 4096 × 4096"
picture chart-transfers 900 450 "$work/devices.html" "Transfers between host and devices" "Transfer shares over M, 256 × 256"
picture chart-calibration 460 420 "$pages/epyc-zen5-2-cores.html" "Predicted over measured, cells left out"
ls -l "$pages" "$pictures"
