#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: completion.sh TOOL [bash|zsh|fish] > FILE      (make install)
# Completion of a tool's commands and options, made of what it
# says for --help. Other words are names of files. A tool that does not run here, since it is built for
# another machine, gets names of files alone.
set -eu
tool=$1
name=$(basename "$tool")
function=_${name//-/_}
shell=${2:-bash}

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

# The same for fish, whose cases are lines of their own.
fish_ways() {
    ways | sed -E "s/^    '(.*)'\\) words='(.*)' ;;\$/        case '\\1'\\n            string split ' ' -- '\\2'/"
}

if [ "$shell" = fish ]; then
    cat <<END
# Completion of $name, made of the output of $name --help.
function _$function
    set -l way (string match -r -- '^[a-z].*' (commandline -opc)[2..-1])
    while true # "run model.gguf" is completed as "run" is
        switch "\$way"
$(fish_ways)
            case '* *'
                set -e way[-1]
                continue
        end
        break
    end
end
complete -c $name -a '(_$function)'
END
    exit 0
fi
if [ "$shell" = zsh ]; then
    cat <<END
#compdef $name
# Completion of $name, made of the output of $name --help.
local way='' given=''
for given in \${words[2,CURRENT-1]}; do
    [[ \$given == [a-z]* ]] || break
    way+="\${way:+ }\$given"
done
local list=''
while :; do # "run model.gguf" is completed as "run" is
    case \$way in
$(ways | sed 's/ words=/ list=/')
    *) [[ \$way == *' '* ]] && way=\${way% *} && continue ;;
    esac
    break
done
compadd -- \${=list}
_files
END
    exit 0
fi

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
