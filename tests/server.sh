#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: server.sh BUILD [SECONDS [CLIENTS]]      (needs tandem-server, make-models and server-load in BUILD)
# tandem-server as users start it: options, wrong options, replies, load of many clients with flat memory,
# SIGTERM under load. The last line is "N passed, N failed, N skipped".
set -u
cd "$(dirname "$0")/.."
build=$PWD/${1:-build/release}
[ -e "$build/tandem-server" ] || [ ! -e "$PWD/build/tandem-server" ] || build=$PWD/build
seconds=${2:-10} clients=${3:-64}
if [ ! -e "$build/tandem-server" ]; then
    echo "SKIP server: optional part not built"
    exit 0
fi
load=${1:-build/release}
load=$PWD/$load/server-load models=$PWD/${1:-build/release}/make-models
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill -9 "$server" 2>/dev/null; rm -rf "$work"' EXIT
unset TANDEM_LOG TANDEM_CPU TANDEM_TABLE TANDEM_THREADS TANDEM_TRACE
export XDG_CACHE_HOME=$work/cache TANDEM_DEVICE=none
mkdir -p "$work"/{hf,torch,meta,sharded}
"$models" "$work" || exit 1
cd "$work" || exit 1
passed=0 failed=0
good() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)) && echo "FAILED: $*"; }
check() { local what=$1; shift; if "$@"; then good; else bad "$what: $(tail -2 said 2>/dev/null)"; fi; }

# start OPTION...: sets `server` and `port`
start() {
    : >said # the one before has said another port
    "$build/tandem-server" model.bin -t tokenizer.bin --port 0 --table none --threads 1 "$@" 2>said &
    server=$!
    for _ in $(seq 600); do
        port=$(sed -n 's,.*http://[^ ]*:\([0-9]*\)$,\1,p' said)
        [ -z "$port" ] || return 0
        kill -0 "$server" 2>/dev/null || return 1
        sleep 0.1
    done
    return 1
}
finish() { # SIGNAL: the exit code
    kill "-$1" "$server"
    wait "$server"
    local code=$?
    server=
    return $code
}
# ask METHOD PATH [BODY [HEADER]]: the reply goes to `reply`
ask() {
    local body=${3:-} header=${4:-X-None: 1}
    exec 3<>"/dev/tcp/127.0.0.1/$port" || return 1
    printf '%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\nContent-Length: %d\r\n\r\n%s' \
        "$1" "$2" "$header" "${#body}" "$body" >&3
    timeout 60 cat <&3 >reply
    exec 3>&-
}
answers() { ask "$@" && grep -q "^HTTP/1.1 200" reply; }
resident() { awk '/^VmRSS/ {print $2}' "/proc/$server/status" 2>/dev/null || echo 0; }

# Wrong options, and what cannot be opened.
refused() { # EXPECTED-PART OPTION...
    local part=$1
    shift
    timeout 20 "$build/tandem-server" "$@" >said 2>&1 </dev/null
    [ $? -ne 0 ] && grep -q -- "$part" said
}
check "--help" eval '"$build/tandem-server" --help >said && grep -q -- "--api-key-file FILE" said'
check "no model" refused MODEL
check "an unknown option" refused "see 'tandem-server --help'" --nonsense model.bin
check "no such model" refused nowhere.gguf nowhere.gguf
check "a name for an address" refused numeric model.bin -t tokenizer.bin --host example.org --table none
check "an unknown template" refused "odd: cannot open" model.bin -t tokenizer.bin --chat-template odd --table none
check "another pooling" refused "expected mean, cls or last" model.bin -t tokenizer.bin --pooling sum --table none
check "a decoder's pooling" refused "vector of the last token only" model.bin -t tokenizer.bin --pooling mean --table none
check "an empty key" refused "expected a key" model.bin -t tokenizer.bin --api-key-file /dev/null --table none

# A key, an alias, replies.
echo secret >key
check "the server starts" start --api-key-file key --alias small
check "health needs no key" answers GET /health
check "models need the key" eval '! answers GET /v1/models && grep -q "^HTTP/1.1 401" reply'
check "models with the key" eval 'answers GET /v1/models "" "Authorization: Bearer secret" && grep -q "\"id\":\"small\"" reply'
check "a completion" eval 'answers POST /v1/completions "{\"prompt\":\"a\",\"max_tokens\":5,\"seed\":1}" "Authorization: Bearer secret" &&
    grep -q "\"completion_tokens\":[1-5]," reply'
choices='{"prompt":["a","b"],"n":2,"max_tokens":3,"ignore_eos":true'
check "four choices" eval 'answers POST /v1/completions "$choices}" "Authorization: Bearer secret" &&
    grep -q "\"index\":3,.*\"completion_tokens\":12," reply'
check "four choices as a stream" eval 'answers POST /v1/completions "$choices,\"stream\":true}" "Authorization: Bearer secret" &&
    grep -q "\"index\":3," reply && [ "$(grep -c "\[DONE\]" reply)" = 1 ] &&
    [ "$(grep -c "\"finish_reason\":\"length\"" reply)" = 4 ]'
check "a second server finds the port taken" refused "port $port" model.bin -t tokenizer.bin --port "$port" --table none
check "SIGTERM ends it" finish TERM
# Texts go from one run to the next.
asks='{"prompt":"Once upon a time there was","n_predict":5,"temperature":0}'
check "the server starts with --save" start --save texts
check "a text is computed" eval 'answers POST /completion "$asks" && grep -q "\"cache_n\":0" reply'
check "SIGTERM saves it" eval 'finish TERM && [ -s texts ] && [ "$(stat -c %a texts)" = 600 ]'
check "the next server has it" eval 'start --save texts && answers POST /completion "$asks" && ! grep -q "\"cache_n\":0" reply'
check "SIGTERM again" finish TERM
head -c 20 texts >short && mv short texts
check "a damaged file is said" eval 'start --save texts && grep -q "begins with an empty cache" said && answers GET /health'
check "and replaced" eval 'finish TERM && [ "$(stat -c %s texts)" -gt 20 ]'
printf garbage >texts
check "a foreign file is said" eval 'start --save texts && grep -q "begins with an empty cache" said && answers GET /health'
check "and left alone" eval 'finish TERM && [ "$(cat texts)" = garbage ]'
# Clients that begin requests and do not go on; a text of 1 MB beside short ones.
check "the server starts for half-open clients" start --connections 32 --receive 60
fds=()
for _ in $(seq 100); do
    exec {fd}<>"/dev/tcp/127.0.0.1/$port" && fds+=("$fd")
    printf 'POST /tokenize HTTP/1.1\r\nHo' >&"$fd" 2>/dev/null
done
check "health beside 100 half-open clients" answers GET /health
check "a text beside 100 half-open clients" answers POST /v1/completions '{"prompt":"a","max_tokens":2}'
for fd in "${fds[@]}"; do exec {fd}>&-; done
printf '{"content":"%s"}' "$(yes 'Once upon a time' | head -c 1000000 | tr '\n' ' ')" >long
before=$(resident)
exec 3<>"/dev/tcp/127.0.0.1/$port"
{ printf 'POST /tokenize HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n' \
    "$(stat -c %s long)" && cat long; } >&3 & pid=$!
timeout 60 cat <&3 >tokens & reader=$!
exec 4<&3 3>&-
check "health beside a long text" answers GET /health
wait "$pid" "$reader"
exec 4<&-
check "a text of 1 MB is tokenised" eval 'head -1 tokens | grep -q " 200 "'
grown=$(($(awk '/^VmHWM/ {print $2}' "/proc/$server/status" 2>/dev/null || echo 0) - before))
check "in less than 64 MiB ($grown KiB)" [ "$grown" -lt 65536 ]
check "SIGTERM ends it too" finish TERM
# A Unix socket.
check "a Unix socket" eval '"$build/tandem-server" model.bin -t tokenizer.bin --host "unix:$work/socket" --table none --threads 1 2>said & server=$!
    for _ in $(seq 300); do grep -q "unix:" said && break; sleep 0.1; done; [ "$(stat -c %a socket)" = 600 ]'
check "it is removed" eval 'finish TERM && [ ! -e socket ]'
check "SIGINT too" eval 'start && finish INT'

# Load; memory is flat after the first part of it.
check "the server starts for load" start --parallel 16 --queue 256 --cells 8192 --context 256
check "health during load" eval '"$load" "$port" "$clients" "$(((seconds + 3) / 4))" prompt=90 seed=1 >first 2>&1 & pid=$!; sleep 0.3
    answers GET /health; code=$?; wait "$pid" || { cat first; code=1; }; [ "$code" = 0 ]'
before=$(resident)
check "$clients clients" eval '"$load" "$port" "$clients" "$seconds" prompt=90 seed=2 >second 2>&1 || { cat second; false; }'
cat second
after=$(resident)
echo "memory: $before KiB, then $after KiB"
check "memory is flat ($before KiB, then $after KiB)" [ "$after" -le $((before + before / 10 + 4096)) ]
"$load" "$port" "$clients" 3 prompt=90 seed=3 >third 2>&1 &
pid=$!
sleep 1
check "SIGTERM under load" finish TERM # those who come later are refused: their errors do not count
wait "$pid"
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
