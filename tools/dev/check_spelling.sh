#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Spelling of the documents: no misspelling known to codespell, and no word that is neither in aspell's British
# dictionary nor in tools/dev/words.txt (names and terms, one per line, sorted). Code is not checked.
# `check_spelling.sh words` prints the words that are lacking.
set -u
cd "$(dirname "$0")/../.."
. tools/dev/files.sh
words=tools/dev/words.txt
documents=$(project_files . | grep -E '\.md$' | grep -vE '^(bindings|tests|tools|bench-data)/')

# A document's prose: without code, targets of links, addresses and what stands between < and >.
prose() {
    awk '/^(```|~~~)/ { code = !code; print ""; next } code || /^    / { print ""; next } { print }' "$1" |
        sed -E 's/`[^`]*`/ /g; s/\]\([^)]*\)/] /g; s,https?://[^ )]*,,g; s/<[^>]*>/ /g; s/[A-Z_]+=.[a-z]+.//g; s/[A-Za-z]*[0-9_][A-Za-z0-9_]*/ /g'
}
missing_words() {
    { echo "personal_ws-1.1 en 0 utf-8"; cat "$words"; } >"$list"
    prose "$1" | aspell list --lang=en_GB --encoding=utf-8 --personal="$list" | LC_ALL=C sort -u
}

LC_ALL=C sort -uc "$words" || complain "$words: not sorted (LC_ALL=C sort -u)"
if command -v aspell >/dev/null && aspell dump dicts | grep -q '^en_GB'; then
    list=$(mktemp --suffix=.pws)
    trap 'rm -f "$list"' EXIT
    if [ "${1:-}" = words ]; then
        for document in $documents; do missing_words "$document"; done | LC_ALL=C sort -u
        exit
    fi
    for document in $documents; do
        missing_words "$document" | while IFS= read -r word; do
            complain "$document:$(grep -nwF -m1 -- "$word" "$document" | cut -d: -f1): unknown word '$word'"
        done
    done
else
    echo "SKIP spelling: no aspell with English (Debian: apt-get install aspell aspell-en)"
fi
if command -v codespell >/dev/null; then
    # shellcheck disable=SC2086 # one word a document; that of a terminal has words cut in two
    codespell --ignore-words=tools/dev/words.txt $documents | while IFS= read -r hit; do
        complain "$hit"
    done
else
    echo "SKIP spelling: no codespell (Debian: apt-get install codespell)"
fi
finish check_spelling
