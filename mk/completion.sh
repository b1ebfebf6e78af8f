#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: completion.sh TOOL > FILE      (make install)
# Completion for bash, and for zsh with bashcompinit, of a tool's commands and options, made of what it
# says for --help. Other words are names of files. A tool that does not run here, since it is built for
# another machine, gets names of files alone.
set -eu
tool=$1
name=$(basename "$tool")
function=_${name//-/_}

# The commands, or the options, that a help text lists.
commands() { sed -n 's/^  \([a-z][-a-z]*\) .*/\1/p' <<<"$1"; }
options() { sed -n 's/^  \(-[^ ,]*\).*/\1/p' <<<"$1"; }

# A line of the list for each way to a command: "table show") words="..." ;;
ways() { # [COMMAND..]
    local help command
    help=$("$tool" "$@" --help </dev/null 2>/dev/null) || return 0
    echo "    '$*') words='$( (commands "$help" && options "$help") | paste -sd ' ')' ;;"
    for command in $(commands "$help"); do
        case $command in help | version) ;; *) ways "$@" "$command" ;; esac
    done
}

cat <<END
# Completion of $name, made of the output of $name --help.
$function() {
    local word=\${COMP_WORDS[COMP_CWORD]} way='' words=''
    local i
    for ((i = 1; i < COMP_CWORD; i++)); do
        [[ \${COMP_WORDS[i]} == [a-z]* ]] || break
        way+="\${way:+ }\${COMP_WORDS[i]}"
    done
    while :; do # "run model.gguf" is completed as "run" is
        case \$way in
$(ways | sed 's/^/    /')
        *) [[ \$way == *' '* ]] && way=\${way% *} && continue ;;
        esac
        break
    done
    mapfile -t COMPREPLY < <(compgen -W "\$words" -- "\$word")
}
complete -o bashdefault -o default -F $function $name
END
