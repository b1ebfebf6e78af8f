#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: check_commands.sh BUILD [MAKE-MODELS]     (part of make docs)
# Checks the commands in the documents: each command of our tools, in a block or in a line of text, names
# a subcommand and options that --help lists; and each block ```sh runs in a folder of its own, with a small
# model in it, unless the line before has a reason not to: <!-- not run: WHY -->. Measuring gets a second.
set -u
cd "$(dirname "$0")/../.."
. tools/dev/files.sh
root=$PWD
build=${1:-build/release}
make_models=${2:-$build/make-models}
tools='mulmat-tune|tandem-llama|tandem-graph|tandem-server'
documents=$(project_files . | grep -E '\.md$' | grep -vE '^(bindings|bench-data|tests|tools)/|^CHANGELOG')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The options that a command knows, as words without dashes: "m-step"; '_' is '-' in them.
options_of() { # TOOL [SUBCOMMAND [SUBCOMMAND]]
    local key="$work/help.$*"
    [ -e "$key" ] || "$build/$1" "${@:2}" --help 2>/dev/null |
        awk '/^  --?[a-zA-Z]/ { for (i = 1; i <= NF && $i ~ /^-/; i++) print $i }' |
        sed 's/[],[].*//; s/^--*//; s/,$//; s/_/-/g' >"$key"
    cat "$key"
    printf '%s\n' help h version V quiet q verbose plugin
}
subcommands_of() { "$build/$1" --help | awk '/^  [a-z-]+ +[a-z]/ { print $1 }'; }

# DOCUMENT LINE-NUMBER COMMAND...: one command of one of our tools, its words.
check_command() {
    local place="$1:$2" tool=${3##*/} sub='' word known
    shift 3
    if [ "$tool" != tandem-server ]; then
        if [ $# -gt 0 ] && subcommands_of "$tool" | grep -qx -- "$1"; then
            sub=$1
            shift
        elif [ $# -gt 0 ] && [[ $1 != -* && $1 != [A-Z]* ]]; then
            complain "$place: $tool has no command '$1'"
            return
        fi
    fi
    if [ "$tool $sub" = "mulmat-tune table" ] && [[ ${1:-} =~ ^[a-z]+$ ]]; then
        sub="table $1"
        shift
    fi
    # shellcheck disable=SC2086 # two words at most
    if [ -n "$sub" ] || [ "$tool" = tandem-server ]; then
        known=$(options_of "$tool" $sub)
    else # no command is named: an option of any of them
        known=$(for sub in $(subcommands_of "$tool"); do options_of "$tool" "$sub"; done)
        sub=
    fi
    for word; do
        [[ $word =~ ^--?[a-zA-Z] ]] || continue
        word=$(sed 's/^--*//; s/[=:].*//; s/[].,)]*$//; s/_/-/g' <<<"$word")
        grep -qx -- "$word" <<<"$known" || [ -z "$known" ] ||
            complain "$place: '$tool${sub:+ $sub}' has no option '$word'"
    done
}

# Commands of a document, one per line after its line number: in blocks and in code within the text.
commands_in() {
    awk -v tools="$tools" '
        function tell(text,    n, parts, i, words) {
            gsub(/\[|\]|\.\.\.|"[^"]*"|'\''[^'\'']*'\''/, " ", text)
            sub(/ +#.*/, "", text)
            n = split(text, parts, / *(&&|\|\|?|;|<|>) */)
            for (i = 1; i <= n; i++) {
                gsub(/^ *(\$ |sudo |[A-Z_]+=[^ ]* )*/, "", parts[i])
                split(parts[i], words, " ")
                if (words[1] ~ "^([a-z./]*/)?(" tools ")$") print at, parts[i]
            }
        }
        { line = held $0; at = held == "" ? FNR : at; held = "" }
        line ~ /\\$/ { held = substr(line, 1, length(line) - 1); next }
        /^(```|~~~)/ { code = !code; next }
        code || /^    / { sub(/^ +/, "", line); tell(line); next }
        { n = split(line, spans, "`"); for (i = 2; i <= n; i += 2) tell(spans[i]) }' "$1"
}
for document in $documents; do
    commands_in "$document"  | while read -r number command; do
        # shellcheck disable=SC2086 # its words
        check_command "$document" "$number" $command
    done
done

# ---- what runs ----
shims=$work/bin
mkdir -p "$shims"
for tool in ${tools//|/ }; do
    printf '#!/bin/sh\nexec "%s" "$@"\n' "$root/$build/$tool" >"$shims/$tool"
done
# Real measurements take minutes: a few seconds for one small shape also show that the command is correct.
cat >"$shims/mulmat-tune" <<END
#!/bin/sh
case "\${1:-} \$*" in
bench*) set -- "\$@" --model 256x256 --budget 4 -y ;;
test*-oracle*) set -- "\$@" --budget 8 --max-median 1000 --max-p95 1000 --max-worst 1000 ;;
test*-interpolation*) set -- "\$@" --max-median 1000 ;;
esac
exec "$root/$build/mulmat-tune" "\$@"
END
chmod +x "$shims"/*
export PATH=$shims:$PATH XDG_CACHE_HOME=$work/cache TANDEM_DEVICE=none
unset TANDEM_LOG TANDEM_CPU TANDEM_TABLE TANDEM_THREADS TANDEM_TRACE
mkdir -p "$work/models"/{hf,torch,meta,sharded}
(cd "$work/models" && "$root/$make_models" . && tandem-llama convert -t tokenizer.bin model.bin model.gguf) \
    >"$work/log" 2>&1 || { cat "$work/log"; complain "no models to run commands with"; finish check_commands; }

n_run=0 n_left=0
for document in $documents; do
    folder=$work/$(tr / - <<<"$document")
    rm -rf "$folder" && mkdir -p "$folder" && cp -r "$work/models/." "$folder"
    for each in docs bench-data bindings include tools; do ln -s "$root/$each" "$folder/$each"; done
    ln -s "$shims" "$folder/build"
    # One file per block: begin-LINE.sh, without the marked ones.
    n_left=$((n_left + $(grep -c '^<!-- not run: ..*-->$' "$document")))
    awk -v folder="$folder" '
        /^```sh$/ && before !~ /^<!-- not run: .+-->$/ { out = sprintf("%s/begin-%05d.sh", folder, FNR); next }
        /^```/ { if (out != "") close(out); out = "" }
        out != "" { print > out }
        { before = $0 }' "$document"
    for block in "$folder"/begin-*.sh; do
        [ -e "$block" ] || continue
        line=${block##*begin-}
        (cd "$folder" && timeout 120 bash -eu "$block") </dev/null >"$work/log" 2>&1 ||
            complain "$document:$((10#${line%.sh})): the block fails: $(tail -2 "$work/log" | tr '\n' ' ')"
        n_run=$((n_run + 1))
    done
    rm -rf "$folder"
done
echo "$n_run blocks ran, $n_left are marked as not run"
finish check_commands
