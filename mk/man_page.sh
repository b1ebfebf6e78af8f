#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: man_page.sh TOOL VERSION DOCDIR > PAGE.1      (make install)
# The manual page of a tool, made of what it says for --help, with that of each of its commands. A tool that
# does not run here, since it is built for another machine, gets a page that leads to --help.
set -eu
tool=$1
name=$(basename "$tool")
case $name in
mulmat-tune) what="measure matrix products, and tell what is the fastest where" ;;
tandem-llama) what="run, chat with, measure, convert and inspect llama-style models" ;;
tandem-graph) what="run, measure, test and inspect ONNX models" ;;
tandem-server) what="serve a model of the llama family over HTTP" ;;
*) what="a tool of Tandem" ;;
esac

# A help text as troff: lines that begin with two blanks are options or commands, the rest is text.
# The names of options have 25 columns, those of commands end at a blank.
body() {
    awk '
        function safe(text) {
            gsub(/\\/, "\\e", text)
            gsub(/-/, "\\-", text)
            return "\\&" text
        }
        /^usage: / { sub(/^usage: +/, ""); gsub(/  +/, " "); print ".PP\n.B " safe($0) "\n.PP"; next }
        /^  [-a-z]/ {
            at = /^  -/ && substr($0, 27, 1) == " " ? 25 : index(substr($0, 3) " ", " ")
            tag = substr($0, 3, at)
            sub(/ +$/, "", tag)
            text = substr($0, 3 + at)
            sub(/^ +/, "", text)
            print ".TP\n.B " safe(tag) "\n" safe(text)
            list = 1
            next
        }
        /^ +[^ ]/ && list { sub(/^ +/, ""); print safe($0); next }
        /^$/ { gap = 1; next }
        { if (gap || list) print ".PP"; gap = list = 0; print safe($0) }'
}

# The help of a command, then those of the commands that it lists.
section() { # [COMMAND..]
    local help command
    help=$("$tool" "$@" --help </dev/null)
    if [ $# -gt 0 ]; then
        echo ".SS \"$name $*\"" | sed 's/-/\\-/g'
    fi
    body <<<"$help"
    for command in $(sed -n 's/^  \([a-z][-a-z]*\) .*/\1/p' <<<"$help"); do
        case $command in help | version) ;; *) section "$@" "$command" ;; esac
    done
}

printf '.\\" Made of the output of %s --help.\n' "$name"
echo ".TH ${name^^} 1 \"\" \"Tandem $2\" \"User Commands\"" | sed 's/-/\\-/g'
echo ".SH NAME"
echo "$name \\- $what" | sed 's/\([a-z]\)-/\1\\-/g'
if "$tool" --help </dev/null >/dev/null 2>&1; then
    echo ".SH DESCRIPTION"
    section
else
    echo ".SH DESCRIPTION"
    echo "$name \\-\\-help lists what there is." | sed 's/\([a-z]\)-/\1\\-/'
fi
echo ".SH SEE ALSO"
for other in mulmat-tune tandem-llama tandem-graph tandem-server; do
    [ "$other" = "$name" ] || echo ".BR $other (1)," | sed 's/-/\\-/'
done
echo "and the documents in $3" | sed 's/-/\\-/g'
