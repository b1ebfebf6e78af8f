#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: first_contact.sh [PAGE]         (as root; default: build/first-contact.md)
# What a new user sees: the commands of README and getting-started on a bare Debian, in a terminal of 80
# columns, with their output and time, then wrong input with its messages and exit codes. Needs debootstrap
# and tmux, and Debian's packages. Takes about ten minutes and 3 GiB in /var/tmp, which are freed.
# CHECK=1 runs `make check`, too.
set -eu
cd "$(dirname "$0")/../.."
page=${1:-build/first-contact.md}
mkdir -p "$(dirname "$page")"
suite=bookworm
bare=$(mktemp -d /var/tmp/tandem-bare.XXXXXX)
terminal=tandem-first-contact-$$
for tool in debootstrap tmux; do
    command -v $tool >/dev/null || { echo "first_contact: skipped: needs $tool (apt-get install $tool)"; exit 0; }
done
[ "$(id -u)" = 0 ] || { echo "first_contact: skipped: needs root for a bare Debian"; exit 0; }
end() {
    tmux kill-session -t "$terminal" 2>/dev/null || true
    umount "$bare/proc" "$bare/sys" "$bare/dev" 2>/dev/null || true
    mountpoint -q "$bare/dev" || rm -rf --one-file-system "$bare"
}
trap end EXIT

echo "first_contact: a bare Debian $suite in $bare"
debootstrap --variant=minbase "$suite" "$bare" >"$bare.log" 2>&1 || { tail -3 "$bare.log"; exit 1; }
rm -f "$bare.log"
for folder in proc sys dev; do mount --bind /$folder "$bare/$folder"; done
cp /etc/resolv.conf "$bare/etc/resolv.conf"
mkdir "$bare/root/tandem"
git archive HEAD | tar -x -C "$bare/root/tandem"

write() { printf '%s\n' "$@" >>"$page.new"; }

# run LINES COMMAND: the command at the terminal; its last lines, its time and its exit code to the page.
run() {
    local lines=$1 command=$2 begin=$SECONDS
    echo "first_contact: $command"
    printf '%s\n' "cd /root/tandem" "$command" >"$bare/root/command"
    rm -f "$bare/root/code"
    tmux -f /dev/null new-session -d -s "$terminal" -x 80 -y 50 \
        "chroot '$bare' env -i HOME=/root TERM=screen LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin bash /root/command; echo \$? >'$bare/root/code'; sleep 1000"
    while [ ! -s "$bare/root/code" ]; do sleep 0.2; done
    sleep 0.3
    write "" '```' "\$ $command"
    tmux capture-pane -p -S -5000 -t "$terminal" | sed -e 's/ *$//' -e :a -e '/^\n*$/{$d;N;ba' -e '}' |
        tail -n "$lines" >>"$page.new"
    write '```' "" "exit code $(cat "$bare/root/code"), $((SECONDS - begin)) s"
    tmux kill-session -t "$terminal"
}

# told PAGE COMMAND: checks that the page has this command.
told() {
    grep -qF -- "$2" "$1" || { echo "first_contact: $1 has no '$2'"; exit 1; }
}

rm -f "$page.new"
write "# First contact" "" \
    "Made by \`tools/dev/first_contact.sh\` on $(date -u +%F), at $(git rev-parse --short HEAD), on a bare Debian $suite" \
    "(\`debootstrap --variant=minbase\`) with $(nproc) CPUs of $(sed -n 's/^model name\t: //p' /proc/cpuinfo | head -1): each command in a" \
    "terminal of 80 columns, its last lines, its time, its exit code. \`\$\` stands before what is typed." "" \
    "## From nothing to figures"
told README.md 'apt-get install -y make; }; make demo'
run 40 'command -v make >/dev/null || { apt-get update && apt-get install -y make; }; make demo QUICK=1'
told docs/getting-started.md 'make install'
run 12 'make && make install && ldconfig'
told docs/getting-started.md 'tandem-llama bench --synth quick --prompt 32 --gen 8 --repeat 1'
run 20 'tandem-llama bench --synth quick --prompt 32 --gen 8 --repeat 1'
told README.md 'mulmat-tune analyze'
run 30 'mulmat-tune bench --model quick --type q4_0 --budget 10; mulmat-tune analyze'
run 30 'mulmat-tune explain mul_mat:q4_0:n1024:k1024:m32'
run 12 'mulmat-tune test --oracle --budget 20'
[ -z "${CHECK:-}" ] || run 30 'make check'

write "" "## Wrong input"
run 4 'tandem-llama bench --synth quick --table /nope'
run 4 'mulmat-tune test --oracle --table /nope'
run 4 'mulmat-tune bench --model 4096x4097 --type q4_0'
run 4 'mulmat-tune explain --model 4096x4097 --type q4_0'
run 4 'mulmat-tune simulate --model 70B'
run 4 'tandem-llama run /etc/passwd -p x'
run 4 'tandem-llama run nofile.gguf -p x'
run 4 'tandem-graph bench /etc/passwd'
run 4 'mulmat-tune bench -f /proc/nope/table'
run 4 'mulmat-tune analyze --bogus'
run 4 'tandem-server --port 99999 x'
run 4 'TANDEM_THREADS=abc mulmat-tune profiles | head -1'
run 4 'mulmat-tune devices'
mv "$page.new" "$page"
echo "first_contact: $page"
