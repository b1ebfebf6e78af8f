#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# One word for one thing, as docs/glossary.md has it: no two structures share a tag, the headers that
# the glossary names exist and each term stands there once, and no identifier of the product is made
# of a word that the glossary replaces.
set -u
cd "$(dirname "$0")/../.."
. tools/dev/files.sh
glossary=docs/glossary.md

# Tags that begin with tnd_ or tandem_, wherever they are defined.
sources | xargs grep -HoE '^[[:space:]]*(typedef )?(struct|union|enum) (tnd|tandem)_[a-z0-9_]+ \{' |
    sed -E 's/^([^:]*):.*(struct|union|enum) ([a-z0-9_]+) \{$/\3 \1/' | sort -u |
    awk '{ if ($1 == tag) print $1 ": defined in " file " and " $2; tag = $1; file = $2 }' |
    while IFS= read -r hit; do
        complain "$hit"
    done

# The first table: | term | meaning | header |
section() { sed -n "/^## $1/,/^## /p" "$glossary" | grep -E '^\| ' | sed 1d; }
section Terms | awk -F ' *[|] *' '{ print $2 "|" $4 }' | while IFS='|' read -r term headers; do
    for header in $(grep -oE '`[^`]+\.h`' <<<"$headers" | tr -d '`'); do
        [ -f "$header" ] || [ -f "include/$header" ] || complain "$glossary: '$term' names $header, which does not exist"
    done
done
section Terms | awk -F ' *[|] *' '{ print $2 }' | sort | uniq -d | while IFS= read -r term; do
    complain "$glossary: '$term' stands twice"
done

# Each number of the policy documents unit, reason and test, and the test exists.
tr '\n' ' ' <tune/policy.h | sed 's/ \* / /g; s/#define/\n#define/g' | sed -n '/---- Comparing/,$p' |
    grep -oE '/\*[^/]*Unit: [^/]*\*/|/\* [A-Z][^-].*\*/' | while IFS= read -r comment; do
    [[ $comment == *Unit:*Why:*Test:* ]] || complain "tune/policy.h: lacks Unit, Why or Test: ${comment:0:60}"
    name=$(sed -n 's/.*Test: \([a-zA-Z_0-9]*\)\..*/\1/p' <<<"$comment")
    [[ $name == none || $name == sensitivity ]] || grep -rqE "\b$name\b|\"${name//_/ }\"" tests/*.c || complain "tune/policy.h: there is no test '$name'"
done
# "Test: sensitivity": a row of docs/planning.md says what half and double of the number change.
awk '/^\/\*/ { text = "" } /^(\/\*| \*)/ { text = text " " $0 }
     /^#define TND_/ && text ~ /Test:[ *]*sensitivity/ { print substr($2, 5) }' tune/policy.h | while IFS= read -r name; do
    grep -q "^| .*\`$name\`" docs/planning.md || complain "docs/planning.md has no row about $name of tune/policy.h"
done

# No text of the product names a kind of backend outside its folder. What reads and writes the files
# of format version 1 may, and the program that writes sources into a backend's folder.
kinds=$(sed -nE 's/^ *X\(([a-z]+), .*/\1/p' backends/backend-list.h | grep -v '^cpu$' | paste -sd '|')
files_name='^(table/(fingerprint_fields\.h|table_text_write\.c)|tools/tandem-graph/cmd_graph_optimize\.c):' # and of languages
sources | grep -vE '^(tests|docs|bench|tools/kernel-pack)/' | xargs grep -nE "\"[^\"]*\<($kinds)[0-9]*\>[^\"]*\"" |
    grep -vE '^[^:]*:[0-9]+:( *\*|[^"]*/\*)' | grep -vE "^backends/($kinds)/" | grep -vE "$files_name" |
    while IFS= read -r hit; do
        complain "$hit: a text outside backends/ names a kind of backend"
    done

# The second: | not | but |, the first column holds the words, between backquotes those that the
# names of the product may not be made of.
words=$(section 'Words that we do not use' | awk -F ' *[|] *' '{ print $2 }' | grep -oE '`[a-z]+`' | tr -d '`' | paste -sd '|')
# Exceptions: names of foreign formats and of the C language.
allowed='ffn_gate|gate_[a-z]*|[a-z_]*_gate|FFN_GATE[A-Z_]*|TND_LLAMA_FFN_GATE[A-Z_]*|TND_TOKEN_STEP_STRIP|strips_blank'
sources | grep -vE '^(tests|docs)/' | grep -E "^($(either $rooms include tools bench))/" |
    xargs awk -v words="(^|_)($words)(_|$)" -v allowed="^($allowed)$" '
        FNR == 1 { in_comment = 0 }
        { line = $0
          gsub(/\\\\/, "", line); gsub(/\\"/, "", line); gsub(/"[^"]*"/, "", line); gsub(/'\''[^'\'']*'\''/, "", line)
          # Comments are prose: not checked.
          while (1) {
              if (in_comment) {
                  if (!(end = index(line, "*/"))) { line = ""; break }
                  line = substr(line, end + 2); in_comment = 0
              }
              if (!(begin = index(line, "/*"))) break
              rest = substr(line, begin + 2)
              if (end = index(rest, "*/")) line = substr(line, 1, begin - 1) " " substr(rest, end + 2)
              else { line = substr(line, 1, begin - 1); in_comment = 1; break }
          }
          if (line ~ /^[ \t]*#[ \t]*include/) next
          n = split(line, names, /[^A-Za-z0-9_]+/)
          for (i = 1; i <= n; i++)
              if (tolower(names[i]) ~ words && names[i] !~ allowed &&
                  !(names[i] == "gate" && FILENAME ~ /^(llama|formats)\//) &&
                  !(names[i] == "home" && FILENAME ~ /(gpu_program|fingerprint)\.c$/) && # a folder
                  !((FILENAME, names[i]) in told)) {
                  told[FILENAME, names[i]]
                  print FILENAME ":" FNR ": \"" names[i] "\""
              }
        }' |
    while IFS= read -r hit; do
        complain "$hit is made of a word that $glossary replaces"
    done
finish check_words
