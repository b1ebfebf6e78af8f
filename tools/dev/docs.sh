#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: docs.sh BUILD [MAKE-MODELS]  (make docs)
# Checks the documents (links and names, commands, spelling) and, if pandoc is installed, makes one site of
# them in build/docs: one page per document, contents beside the text, one style sheet.
set -u
cd "$(dirname "$0")/../.."
. tools/dev/files.sh
build=${1:-build/release}
make_models=${2:-$build/make-models}
site=build/docs

bash tools/dev/check_docs.sh || complain "links and names: see above"
bash tools/dev/check_spelling.sh || complain "spelling: see above"
bash tools/dev/check_commands.sh "$build" "$make_models" || complain "commands: see above"

documents=$(project_files . | grep -E '\.md$' | grep -vE '^(bindings|tests|tools)/')
# The page of a document: the same rule as in site/links.lua.
page_of() {
    [ "$1" != docs/README.md ] || { echo index.html; return; }
    sed 's,^docs/,,; s,/README\.md$,.md,; s,/,-,g; s,\.md$,.html,' <<<"$1"
}
if ! command -v pandoc >/dev/null; then
    echo "SKIP site: no pandoc, so no pages (Debian: apt-get install pandoc)"
else
    rm -rf "$site"
    mkdir -p "$site/files"
    cp tools/dev/site/style.css "$site/"
    for document in $documents; do
        title=$(sed -n 's/^# //p' "$document" | head -1)
        pandoc -f gfm -t html5 --standalone --toc --toc-depth=2 --template tools/dev/site/page.html \
            --metadata "from=$document" --metadata "pagetitle=${title:-$document}" \
            --lua-filter tools/dev/site/links.lua --no-highlight \
            -o "$site/$(page_of "$document")" "$document" || complain "$document: pandoc failed"
    done
    # Linked or shown files that are not pages are copied to the same path.
    grep -ohE '(href|src)="files/[^"#]+' "$site"/*.html | sed 's,.*="files/,,' | sort -u |
        while IFS= read -r file; do
            if [ -d "$file" ]; then
                mkdir -p "$site/files/$file"
            elif [ -f "$file" ]; then
                mkdir -p "$site/files/$(dirname "$file")"
                cp "$file" "$site/files/$file"
            else
                complain "$site: links to $file, which does not exist"
            fi
        done
    # Every link of a page leads to an existing page and anchor.
    for page in "$site"/*.html; do
        grep -oE 'href="[^":]+"' "$page" | sed 's,href=",,; s,"$,,' | sort -u |
            while IFS= read -r link; do
                target=${link%%#*}
                target=${target:-${page##*/}}
                if [ ! -e "$site/$target" ]; then
                    complain "$page: links to $target, which does not exist"
                elif [[ $link == *#* && $target == *.html && $target != files/* ]] &&
                    ! grep -q "id=\"${link#*#}\"" "$site/$target"; then
                    complain "$page: links to $link, which has no such place"
                fi
            done
    done
    echo "$(find "$site" -maxdepth 1 -name '*.html' | wc -l) pages: $site/index.html"
fi
finish docs
