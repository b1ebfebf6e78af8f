#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Turns the commands of `make -Bn V=1` (standard input) into compile_commands.json.
set -u
awk -v folder="$PWD" '
    BEGIN { print "[" }
    / -c -o / {
        file = $NF
        gsub(/\\/, "\\\\"); gsub(/"/, "\\\"")
        printf "%s{\"directory\": \"%s\", \"file\": \"%s\", \"command\": \"%s\"}", comma, folder, file, $0
        comma = ",\n"
    }
    END { print "\n]" }'
