#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: terminal_picture.sh [PICTURE]        (default: docs/pictures/demo.svg)
# Records `make demo QUICK=1` in a terminal of 80 columns, as the README shows it: an animated SVG,
# sped up, one picture a second. Everything is built before. Needs termtosvg and script; nothing else may run.
set -eu
cd "$(dirname "$0")/../.."
picture=$PWD/${1:-docs/pictures/demo.svg}
for tool in termtosvg script; do
    command -v $tool >/dev/null || { echo "terminal_picture: needs $tool (apt-get install $tool)" >&2; exit 1; }
done
unset OPENBLAS_CORETYPE
make -s QUIET=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/type" <<'END'
export TERM=xterm-256color XDG_CACHE_HOME=$1/cache
for part in '$ ' make ' demo' ' QUICK=1'; do printf '%s' "$part"; sleep 0.3; done
echo
make demo QUICK=1 2>&1
sleep 2
END
script -qc "stty rows 30 cols 80; termtosvg record '$work/all.cast' -g 80x30 -c 'bash $work/type $work'" /dev/null >/dev/null
# What is printed within a second becomes one picture, which stays for 0.6 s.
awk 'NR == 1 { print; next }
    /^\[/ {
        split($0, part, ", "); second = int(substr(part[1], 2))
        text = substr($0, index($0, "\"o\", \"") + 6); sub(/"\]$/, "", text)
        if (NR > 2 && second != now) { printf "[%.1f, \"o\", \"%s\"]\n", at, held; at += 0.6; held = "" }
        now = second; held = held text
    }
    END { printf "[%.1f, \"o\", \"%s\"]\n[%.1f, \"o\", \" \"]\n", at, held, at + 4 }' "$work/all.cast" >"$work/few.cast"
termtosvg render "$work/few.cast" "$picture" -t window_frame >/dev/null
bytes=$(wc -c <"$picture")
[ "$bytes" -lt 160000 ] || { echo "terminal_picture: $picture has $bytes bytes, at most 160000 are expected" >&2; exit 1; }
echo "terminal_picture: $picture, $bytes bytes"
