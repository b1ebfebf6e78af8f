#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: completion_shells.sh BUILD       (needs BUILD/mulmat-tune; zsh and fish where they are installed)
# The completions that `make install` writes: commands, commands of commands, options.
set -u
cd "$(dirname "$0")/.."
tune=$1/mulmat-tune
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# SHELL WORD.. gives the words that complete the last one.
complete_by() {
    local shell=$1
    shift
    bash mk/completion.sh "$tune" "$shell" >"$work/file"
    case $shell in
    bash) bash -c 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _mulmat_tune
        printf "%s\n" "${COMPREPLY[@]}"' - "$work/file" "$@" ;;
    zsh) zsh -f -c 'compadd() { shift; print -l -- "$@" }; _files() { : }; file=$1; shift
        words=("$@"); CURRENT=$#; source $file' - "$work/file" "$@" ;;
    fish) fish --no-config -c "source '$work/file'; complete -C '$*'" ;;
    esac
}

check() { # SHELL WANTED WORD..
    local shell=$1 wanted=$2
    shift 2
    if ! complete_by "$shell" "$@" | grep -qx -e "$wanted"; then
        failed=1
        echo "FAILED: $shell: '$*' is not completed to $wanted"
    fi
}

for shell in bash zsh fish; do
    command -v $shell >/dev/null || { echo "SKIP $shell: not installed"; continue; }
    check $shell bench mulmat-tune be
    check $shell show mulmat-tune table sh
    check $shell --budget mulmat-tune bench --bu
done
[ $failed -eq 0 ] && echo "completion: good"
exit $failed
