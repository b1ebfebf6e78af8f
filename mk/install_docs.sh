#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: install_docs.sh FOLDER       (make install; from the top of the tree)
# Puts README, documents, pictures, reports and examples into one flat folder. Links between them are
# adapted; a link to a file that stays in the source tree becomes its text and its path. The index of
# the documents, docs/README.md, becomes index.md there.
set -eu
folder=$1
install -d "$folder" "$folder/examples" "$folder/pictures" "$folder/reports"
install -m 644 docs/*.json docs/*.cast LICENSE "$folder"
install -m 644 docs/pictures/* "$folder/pictures"
install -m 644 docs/reports/* "$folder/reports"
install -m 644 docs/examples/*.c bindings/python/examples/*.py "$folder/examples"
texts="README.md CHANGELOG.md SECURITY.md $(echo docs/*.md)"
name_of() { [ "$1" = docs/README.md ] && echo index.md || basename "$1"; }
there=" $(for text in $texts; do name_of "$text"; done; cd "$folder" && find . -type f | sed 's,^\./,,') "
for text in $texts; do
    awk -v there="$(echo "$there" | tr '\n' ' ')" -v in_docs="$(expr "$text" : docs/)" '
        # The link whose target stands in brackets at the match: where it leads to, or without a link.
        function linked(before, target,    name, mark, from, text) {
            if (target ~ /^(https?:|#|mailto:)/) return before "](" target ")"
            name = target
            sub(/#.*/, "", name)
            mark = substr(target, length(name) + 1)
            if (name == (in_docs ? "README.md" : "docs/README.md")) name = "index.md"
            sub(/^(\.\.\/|docs\/)/, "", name)
            for (from = length(before); from > 0 && substr(before, from, 1) != "["; from--) {}
            text = substr(before, from + 1)
            before = substr(before, 1, from - 1)
            if (text == target) text = name
            if (index(there, " " name " ") > 0) return before "[" text "](" name mark ")"
            return before text (text == name ? "" : " (" name ")")
        }
        {
            line = ""
            rest = $0
            while (match(rest, /\]\([^) ]+\)/)) {
                line = linked(line substr(rest, 1, RSTART - 1), substr(rest, RSTART + 2, RLENGTH - 3))
                rest = substr(rest, RSTART + RLENGTH)
            }
            print line rest
        }' "$text" >"$folder/$(name_of "$text")"
    chmod 644 "$folder/$(name_of "$text")"
done
