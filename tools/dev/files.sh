# SPDX-License-Identifier: MIT
# For the check scripts: which files they check and how they report. Sourced, not run.

# The loop at the end of a pipe runs in this shell, so that it can count. (`< <(...)` needs /proc, which a
# bare chroot lacks.)
shopt -s lastpipe

# Prints the project's files below the given folders (default: all), without build results, those of pip
# included.
project_files() {
    find "${@:-.}" \( -path ./build -o -path ./.git -o -path ./bindings/python/build \
        -o -name '*.egg-info' -o -name '*.orig' \) -prune -o -type f -print |
        sed 's,^\./,,' | sort
}
# The rooms of the library, lowest first, as the Makefile names them, and the room above them.
rooms="$(sed -n 's/^ROOMS := //p' Makefile) llama"
either() { tr ' ' '|' <<<"$*"; } # the words as a regular expression: one of them
sources() { project_files . | grep -E '\.[ch]$'; }

problems=0
# complain PLACE TEXT...
complain() {
    problems=$((problems + 1))
    echo "$*"
}
# finish NAME: the last line and the exit code of a check.
finish() {
    if [ "$problems" -eq 0 ]; then
        echo "$1: good"
    else
        echo "$1: $problems problems"
        exit 1
    fi
}
