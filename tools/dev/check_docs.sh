#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Checks that documents and code agree: every public function has a docstring (its own, or one for the group
# of lines that it stands in), statuses and make targets that are named exist, every environment
# variable that the code reads is listed in docs/environment.md, every file that is named exists.
set -u
cd "$(dirname "$0")/../.."
. tools/dev/files.sh

# A declaration is documented when a comment stands above it with nothing but declarations without a
# blank line between; a section's heading comment documents the group that follows it at once.
awk '
    FNR == 1 { documented = 0; in_comment = 0; declaring = 0; after = 0 }
    { line = $0 }
    in_comment { if (line ~ /\*\//) { in_comment = 0; documented = 1; after = 0 } ; next }
    line ~ /^[ \t]*\/\*/ { if (line ~ /\*\//) { documented = 1; after = 0 } else in_comment = 1; next }
    line ~ /^[ \t]*$/ { if (after) { documented = 0; after = 0 } ; next }
    line ~ /^#/ { next }
    line ~ /^TANDEM_API/ {
        if (!documented) { printf "%s:%d: no docstring: %s\n", FILENAME, FNR, line }
        declaring = 1
    }
    { if (line ~ /[;}]/) { after = 1; declaring = 0 } }
' include/tandem/*.h | while IFS= read -r hit; do
    complain "$hit"
done

# A docstring says which threads may call, and how the call fails or that it never does. (A header may
# say it in its first comment for all functions: "Threads: ...", "Functions that return no status never fail".)
awk '
    FNR == 1 { head = ""; in_head = 1; text = ""; in_comment = 0; after = 0 }
    in_head { line = $0; sub(/^ \* ?/, " ", line); head = head line; if ($0 ~ /\*\//) in_head = 0; next }
    in_comment { text = text " " $0; if ($0 ~ /\*\//) in_comment = 0; next }
    /^[ \t]*\/\*/ { text = $0; after = 0; if ($0 !~ /\*\//) in_comment = 1; next }
    /^[ \t]*$/ { if (after) text = ""; after = 0; next }
    /^TANDEM_API/ {
        gsub(/ \*  */, " ", text) # lines of the docstring become one
        if (text !~ /[Tt]hread/ && head !~ /Threads:/)
            printf "%s:%d: no word on threads: %s\n", FILENAME, FNR, $0
        if (text !~ /Errors:|Errors also:|[Nn]ever +fail/ && head !~ /no status never fail/)
            printf "%s:%d: no word on errors: %s\n", FILENAME, FNR, $0
    }
    /[;}]/ { after = 1 }
' include/tandem/*.h | while IFS= read -r hit; do
    complain "$hit"
done

# Statuses in docstrings: after "Errors:" or "Records", words in capitals; and TANDEM_E_ anywhere.
status_names=$(sed -n 's/^ *X(\([A-Z_]*\), [0-9]*,.*/\1/p' include/tandem/status-list.h)
for header in include/tandem/*.h; do
    [[ $header == *status-list.h ]] && continue
    { grep -oE 'TANDEM_E_[A-Z_]+' "$header" | sed 's/TANDEM_E_//'
      tr '\n' ' ' <"$header" | sed 's/ \* / /g; s/  */ /g' |
          grep -oE '(Errors:|Records) [A-Z][A-Z_]+(( and|,| or) [A-Z][A-Z_]+)*' |
          grep -oE '\b[A-Z][A-Z_]{2,}\b'; } | grep -vE '^(TANDEM_.*|)$' | sort -u | sed "s,^,$header:,"
done | while IFS=: read -r file name; do
    grep -qx "$name" <<<"$status_names" || complain "$file: there is no status '$name'"
done

# Commands in the documents.
targets=$(grep -ohE '^[a-z-]+:' Makefile mk/*.mk | tr -d :)
documents=$(project_files . | grep '\.md$' | grep -v '^bench-data/')
for document in README.md CONTRIBUTING.md CHANGELOG.md docs/environment.md; do
    [ -f "$document" ] || complain "$document: does not exist"
done
for document in $documents; do
    # Commands stand in code: `make x` or a line of a fenced block.
    grep -oE '(`|^ *\$? *|&& |; )make ([A-Z_]+=[^ `]+ )*[a-z][a-z_-]*' "$document" |
        awk '{print $NF}' | sort -u | sed "s,^,$document:,"
done | while IFS=: read -r file target; do
    [[ $target == suite_* ]] || grep -qx -- "$target" <<<"$targets" || complain "$file: there is no 'make $target'"
done
# Links to files of the project.
for document in $documents; do
    grep -oE '\]\([^)#]+' "$document" | grep -v '](https*:' | sed "s,^](,,; s,^,$document|,"
done | while IFS='|' read -r file link; do
    [ -e "$(dirname "$file")/$link" ] || complain "$file: links to $link, which does not exist"
done

# Links to headings: each heading has GitHub's anchor name.
places_of() {
    awk '/^```/ { code = !code } !code && /^#+ / {
        name = tolower($0); sub(/^#+ +/, "", name); gsub(/[^a-z0-9 _-]/, "", name); gsub(/ /, "-", name)
        print name (seen[name]++ ? "-" seen[name] - 1 : "")
    }' "$1"
}
for document in $documents; do
    grep -oE '\]\([^)#:]*#[^)]+' "$document" | sed "s,^](,,; s,^,$document|,"
done | while IFS='|' read -r file link; do
    target=${link%%#*}
    if [ -n "$target" ]; then target=$(dirname "$file")/$target; else target=$file; fi
    [[ $target != *.md ]] || places_of "$target" | grep -qxF -- "${link#*#}" ||
        complain "$file: links to $link, which has no such heading"
done

# Files that are named in prose: `room/file.c` in the documents, room/file.c in comments. Braces and
# stars stand for several; CHANGELOG and measured figures speak of the past.
folders=$(either $rooms include tools tests bench docs mk)
{
    grep -HoE "\`($folders)/[A-Za-z0-9_./*{},<>-]+[a-z*}>]\`" $documents | tr -d '\`'
    sources | xargs grep -HoE "(^|[ (])($folders)/[A-Za-z0-9_./*-]*\.(c|h|cl|md|sh|mk|pml|json)\b" |
        sed -E 's/:[ (]/:/' | grep -v ':.*include'
    sources | grep -vE '^tests/' | xargs awk -v OFS=: '
        /\/\*/ { c = 1 } c { line = $0
            while (match(line, /(^|[ (])[a-z][a-z0-9_]*\.(c|h|md|pml)([^a-z_.(]|$)/)) {
                name = substr(line, RSTART, RLENGTH); gsub(/[^a-z0-9_.]/, "", name); sub(/\.$/, "", name)
                print FILENAME, name
                line = substr(line, RSTART + RLENGTH - 1)
            } }
        /\*\// { c = 0 }'
} | sort -u >"${TMPDIR:-/tmp}/named.$$"
project_files . | sed 's,.*/,,' | sort -u >"${TMPDIR:-/tmp}/names.$$"
# Files of other projects that comments cite.
foreign=' llama2.c cblas.h clblast_c.h ggml.h docs/gguf.md openblas_env.c memory.c '
while IFS=: read -r file name; do
    [[ $foreign == *" $name "* ]] && continue
    case "$name" in
    *[\*\<{]*) continue ;;
    */*) [ -e "$name" ] || [ -e "include/$name" ] || complain "$file: names $name, which does not exist" ;;
    *) grep -qx "$name" "${TMPDIR:-/tmp}/names.$$" || complain "$file: names $name, which does not exist" ;;
    esac
done <"${TMPDIR:-/tmp}/named.$$"
rm -f "${TMPDIR:-/tmp}/named.$$" "${TMPDIR:-/tmp}/names.$$"

# Messages explained in the documents exist in the sources: each longer piece between words in capitals,
# which are placeholders.
texts=$(sources | grep -vE '^(tests|docs)/' | xargs cat | tr '\n' ' ' |
    sed -E 's/" *(PRI[a-z0-9]+ *)?"//g; s/\\"/"/g; s/%[-.*0-9]*l*[a-z]+/%/g'; cat Makefile)
grep -E '^\| `' docs/troubleshooting.md | awk -F ' \\| ' '{ print $1 }' | grep -oE '`[^`]+`' | tr -d '`' |
    sed -E "s/\b[A-Zx]*[A-Z]\b|\.\.\./\n/g; s/'[^']*'$//" | awk 'length($0) >= 12' |
    sed -E "s/^[ '\"]+//; s/[ '\"]+$//" | while IFS= read -r piece; do
    grep -qF -- "$piece" <<<"$texts" ||
        complain "docs/troubleshooting.md: no source says '$piece'"
done

if [ -f docs/environment.md ]; then
    sources | grep -v '^tests/' | xargs grep -hoE '"TANDEM_[A-Z_]+"' | tr -d '"' | sort -u |
        while IFS= read -r name; do
            grep -q "$name" docs/environment.md ||
                complain "docs/environment.md: lacks $name, which the code reads"
        done
fi
finish check_docs
