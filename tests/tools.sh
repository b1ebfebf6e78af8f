#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: tools.sh BUILD [WORDS]       (needs BUILD/tandem-llama, BUILD/mulmat-tune, BUILD/make-models)
# Runs tandem-llama as a user does: all commands, options, help texts, errors and exit codes. WORDS: only
# the groups whose name contains it. Models are made here, or come from the test data. The last line
# is "N passed, N failed, N skipped".
set -u
cd "$(dirname "$0")/.."
build=${1:-build/release}
only=${2:-}
root=$PWD
tool=$root/$build/tandem-llama
tune=$root/$build/mulmat-tune
# Folders of the test data, or what stands in for those that are not there.
data=${TANDEM_TEST_DATA:-$root/../shared/data}
folder_of() { [ -d "$data/$1" ] && echo "$data/$1" || echo "$root/$build/stand-ins/$1"; }
llama=$(folder_of llama) vocabularies=$(folder_of gguf-vocab) tokenizers=$(folder_of tokenizer)
unset TANDEM_LOG TANDEM_CPU TANDEM_TABLE TANDEM_THREADS TANDEM_TRACE
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/cache # the user's table decides nothing here
mkdir -p "$work/hf" "$work/torch" "$work/meta" "$work/sharded" "$work/cache"
"$build/make-models" "$work" || exit 1
cd "$work" || exit 1
tokenizer=(-t tokenizer.bin)
"$tool" convert model.bin c0.gguf >/dev/null || exit 1
passed=0 failed=0 skipped=0

# ---- how a test is written ----

ok() { passed=$((passed + 1)); }
bad() { # TEXT...
    failed=$((failed + 1))
    echo "FAILED: $*"
}
skip() { # REASON...
    skipped=$((skipped + 1))
    echo "skipped: $*"
}
# check NAME CONDITION...: a command that must succeed.
check() {
    local name=$1
    shift
    if "$@"; then ok; else bad "$name: $*"; fi
}
# try CODE PART ARGUMENT...: tandem-llama ends with this code, and PART stands in what it prints;
# stdin is the file `input`. What it printed stays in `out` and `err`.
input=/dev/null
try() {
    local code=$1 part=$2 got
    shift 2
    timeout 120 "$tool" "$@" <"$input" >out 2>err
    got=$?
    if [ "$got" -ne "$code" ]; then
        bad "tandem-llama $*: exit code $got, expected $code"
        head -3 err
    elif [ -n "$part" ] && ! cat out err | tr '\0' ' ' | grep -aqF -- "$part"; then
        bad "tandem-llama $*: '$part' is not in its output"
        head -3 out err
    else
        ok
    fi
}
has() { grep -aqF -- "$1" "$2"; }
lacks() { ! grep -aqF -- "$1" "$2"; }
group() { [[ $1 == *"$only"* ]] && echo "== $1"; }

commands="run chat bench compare embed tokenize convert imatrix inspect fit synth demo"

if group help; then
    try 0 "usage: tandem-llama COMMAND"
    try 0 "usage: tandem-llama COMMAND" --help
    try 0 "usage: tandem-llama COMMAND" -h
    try 0 "usage: tandem-llama COMMAND" help
    for command in $commands; do
        check "the list of commands" has "  $command " out
    done
    try 0 "tandem-llama " --version
    for command in $commands; do
        try 0 "usage: tandem-llama $command" help "$command"
        cp out help.txt
        try 0 "usage: tandem-llama $command" "$command" --help
        check "both helps" cmp -s out help.txt
        check "help goes to stdout alone" [ ! -s err ]
        check "help names --help" has "--help" out
        check "lines of help fit a terminal" [ "$(awk 'length > 79' out | wc -l)" -eq 0 ]
    done
    try 2 "unknown command 'walk'" walk
    try 2 "'model.bin' is a file, expected a command before it" model.bin
    try 2 "unknown command 'walk'" help walk
    try 2 "'-m' is an option, expected a command before it" -m model.gguf
    "$tool" help >/dev/full 2>err
    check "a full device is noticed" [ $? -eq 1 ]
    check "and said" has "standard output cannot be written" err
fi

if group usage; then
    for command in $commands; do
        try 2 "unknown option '--nonsense'" "$command" --nonsense
        check "errors go to stderr alone" [ ! -s out ]
        try 0 "tandem-llama 0." "$command" -V
    done
    "$tool" run model.bin "${tokenizer[@]}" -n 2 --quiet >out 2>err
    check "--quiet: the text alone" [ -s out ] && check "and no notes" [ ! -s err ]
    "$tool" run model.bin "${tokenizer[@]}" -n 2 --verbose >out 2>err
    check "--verbose: what was found" has "note: backends: " err
    for command in run chat inspect fit; do
        try 2 "is missing" "$command"
        try 2 "unexpected 'two'" "$command" one two
    done
    try 2 "needs a tokenizer" tokenize
    try 2 "objective: expected time, energy or edp" run model.bin "${tokenizer[@]}" --objective fast
    try 0 "without mpirun there is one rank, and nothing to divide" run model.bin "${tokenizer[@]}" -n 2 --shares 1,1
    try 2 "OUT.gguf is missing" synth
    try 2 "convert: IN is missing" convert
    try 2 "convert: OUT.gguf is missing" convert model.bin
    try 2 "unknown option '--contxt' (did you mean --context?)" run model.bin --contxt 64
    try 2 "unknown option '-ctk' (the type of keys and values is --cache)" run model.bin -ctk f16
    try 2 "-n needs a value: N" run model.bin -n
    try 2 "-n 'five': expected a whole number" run model.bin -n five
    try 2 "-temp '0.5x': expected a number" run model.bin --temp 0.5x
    try 2 "-n '99999999999999999999': expected a whole number" run model.bin -n 99999999999999999999
    try 2 "expected a whole number from 0 to 1024" convert model.bin x.gguf --threads 1025
    try 2 "expected a whole number from 0 to 1024" run model.bin "${tokenizer[@]}" --threads -1
    try 1 "cannot open" run no-such-file
    try 1 "cannot open" inspect no-such-file
    try 1 "cannot open" convert no-such-file x.gguf
    try 1 "cannot open" tokenize -t no-such-file
    check "nothing was written" [ ! -e x.gguf ]
    : >empty
    for command in run inspect chat fit; do
        try 1 "empty" "$command" empty
    done
    mkdir -p folder
    try 1 "folder" inspect folder
fi

if group benches; then
    for bench in "$root/$build"/bench-*; do
        [ -x "$bench" ] || continue
        timeout 20 "$bench" --help >out 2>err
        check "${bench##*/} --help" [ $? -eq 0 ]
        check "is a text on stdout" grep -q "bench-" out
        timeout 20 "$bench" --nonsense 1 >out 2>err
        check "${bench##*/} refuses an option that it does not know" [ $? -eq 2 ]
        check "and names it" has "--nonsense" err
    done
fi

if group device; then
    # --device adds to --settings; it does not take their place.
    try 1 "'colour=red' is not known" run model.bin "${tokenizer[@]}" --device none --settings opencl:colour=red
    for device in "" 0, ,0 0,,0 0,none "a;b" "a:b"; do
        "$tune" profiles --device "$device" >out 2>err
        check "--device '$device' is refused" [ $? -eq 1 ]
        check "and said" has "expected an index or part of a name" err
    done
    "$tune" profiles --plugin=/nowhere-1.so --plugin /nowhere-2.so >out 2>err
    check "the first of two plugins is not dropped" has "/nowhere-1.so" err
    "$tune" profiles --plugin >out 2>err
    check "a plugin without a file is refused" [ $? -ne 0 ]
    "$tune" profiles --device none >out 2>err
    check "no device is no error" [ $? -eq 0 ]
    if "$tune" profiles --device 0,0,0 >out 2>err; then
        check "the third device has its profiles" has "@opencl2:" out
        check "no fourth device is opened" lacks "@opencl3:" out
        "$tune" profiles --device "no such device" >out 2>err
        check "a device that is not there is an error" [ $? -eq 1 ]
        check "and named once" has "no device for opencl: none of" err
        begin=$(date +%s%N)
        try 0 " nodes, not predicted" run model.bin "${tokenizer[@]}" -n 4 --stats --table none \
            --device 0 --profile opencl --settings opencl:profile=on
        check "times of operations do not overlap" awk -v most="$((($(date +%s%N) - begin) / 1000000))" '
            /^time of / { sum += $4 }
            END { exit !(sum > 0 && sum <= most) }' err
    else
        check "the reason is said" has "no device for" err
        skip "no device is here"
    fi
fi

if group synth; then
    try 0 "21 tensors" synth -y s.gguf --shape 256,512,2,8,2,300 --type q4_0 --context 64
    cp s.gguf first.gguf
    try 0 "21 tensors" synth -y s.gguf --shape 256,512,2,8,2,300 --type q4_0 --context 64
    check "the same model each time" cmp s.gguf first.gguf
    for type in f32 f16 bf16 q4_0 q4_1 q5_0 q5_1 q8_0 q2_k q3_k q4_k q5_k q6_k; do
        try 0 "tensors" synth -y "s-$type.gguf" --shape 256,256,1,4,4,300 --type "$type"
        try 0 " $type" inspect "s-$type.gguf"
        try 0 "tokens in" run "s-$type.gguf" "${tokenizer[@]}" -n 4 --temp 0 --table none
    done
    try 2 "unknown type: 'q9'" synth x.gguf --type q9
    try 1 "expected 1.1b, quick, 1b-moe or dim" synth x.gguf --shape 1,2,3
    try 1 "expected 1.1b, quick, 1b-moe or dim" synth x.gguf --shape 256,512,2,8,2,300,7
    try 1 "a token uses 5 of 4 experts" synth x.gguf --shape 256,512,2,8,2,300,4,5
    try 0 "23 tensors" synth -y moe.gguf --shape 256,64,2,8,2,300,4,2 --type q8_0
    try 0 "4 experts a layer, of which a token uses 2" inspect moe.gguf
    try 1 "dim is 0, expected 1 to" synth x.gguf --shape 0,512,2,8,2,300
    try 1 "expected a divisor of dim, which is 250" synth x.gguf --shape 250,512,2,8,3,300
    try 1 "no/such/folder/x.gguf: cannot make a temporary file" synth no/such/folder/x.gguf --shape 256,512,2,8,2,300
    check "nothing was written" [ ! -e x.gguf ]
fi

# format name -> file or folder
formats=(model.bin model.pth model.pt hf torch meta trained.pt sharded hf/model.safetensors
    sharded/model.safetensors.index.json)

if group inspect; then
    names=("llama2.c version 0" "PyTorch, ZIP archive" "PyTorch, pickles" safetensors "PyTorch, ZIP archive"
        "PyTorch, ZIP archive" "PyTorch, ZIP archive"
        "safetensors, sharded" safetensors "safetensors, sharded")
    for i in "${!formats[@]}"; do
        try 0 "${formats[i]}: ${names[i]}" inspect "${formats[i]}"
        check "tensors" has "21 tensors" out
        check "a matrix" grep -q 'blk.1.ffn_down.weight  *f32  *512 x 256  *524288 bytes' out
        check "a value" grep -q 'llama.embedding_length  *256$' out
        check "the sum" has "1268992 values in 5075968 bytes (32.00 bits each): 21 f32" out
    done
    try 0 "GGUF version 3" inspect c0.gguf
    printf 'GGUF\3\0\0\0\1' >short.gguf
    try 1 "needs 8 bytes, 1 are left" inspect short.gguf
    printf 'GGUF\1\0\0\0\0\0\0\0\0\0\0\0' >old.gguf
    try 1 "expected 2 or 3" inspect old.gguf
    printf '\x80\x02cos\nsystem\nX\x04\x00\x00\x00true\x85R.' >evil.pickle
    head -c 15 model.pt | cat - evil.pickle >evil.pt # the magic number, then os.system
    try 1 "os.system" inspect evil.pt
    printf '\x04\0\0\0\0\0\0\0{"a"' >bad.safetensors
    try 1 "bad.safetensors" inspect bad.safetensors
    echo "this is no model, only a line of text that stands in a file" >text
    try 1 "text" inspect text
    # Names that a terminal would act on: a tensor's, a value's, its text.
    header='{"__metadata__":{"k\u001b[2Jey":"a\u009bb\u007f"},"w\u001b[31m\n":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    { printf '%b' "\\x$(printf %x ${#header})\\0\\0\\0\\0\\0\\0\\0" && printf '%s\0\0\0\0' "$header"; } >escapes.safetensors
    try 0 'w\x1b[31m\n' inspect escapes.safetensors
    check "a value and its name" has 'k\x1b[2Jey' out
    check "and its text" has 'a\u009bb\x7f' out
    # What a tokenizer or a model says reaches a file as it is, a terminal as what can be shown.
    echo "30 65 10" | "$tool" tokenize "${tokenizer[@]}" --detokenize >said.bin 2>err
    printf '\033>\007' >expected.bin
    check "bytes of tokens in a file" cmp said.bin expected.bin
    if script -qec true /dev/null </dev/null >/dev/null 2>&1; then
        echo "30 65 10" >ids
        script -qec "'$tool' tokenize ${tokenizer[*]} --detokenize <ids" /dev/null </dev/null >said.txt 2>&1
        check "bytes of tokens on a terminal" has '\x1b>\x07' said.txt
    else
        skip "no script, or no terminals here (/dev/pts)"
    fi
fi

# text FILE OPTION...: what a model writes, greedily, into the file `text.out`.
text() {
    "$tool" run "$@" "${tokenizer[@]}" -p "hello abc" -n 40 --temp 0 --table none >text.out 2>text.err
}

if group convert; then
    text model.bin && cp text.out f32.txt
    check "the model writes" [ "$(wc -c <f32.txt)" -gt 20 ]
    for i in "${!formats[@]}"; do
        try 0 "21 tensors" convert -y "${formats[i]}" "c$i.gguf"
        check "no progress bar without a terminal" [ ! -s err ]
        text "${formats[i]}"
        check "${formats[i]}: the same text" cmp text.out f32.txt
        text "c$i.gguf"
        check "GGUF of ${formats[i]}: the same text" cmp text.out f32.txt
    done
    try 0 "21 tensors" convert -y c0.gguf again.gguf
    check "a GGUF file of a GGUF file is the same" cmp c0.gguf again.gguf
    for type in f32 f16 bf16 q4_0 q4_1 q5_0 q5_1 q8_0 q2_k q3_k q4_k q5_k q6_k iq4_nl iq4_xs \
        mxfp4 iq3_s; do
        others=3 # hf; all formats for one type of each kind
        [[ $type =~ ^(f16|q4_0|q6_k)$ ]] && others=$(echo {1..6})
        for i in 0 $others; do
            try 0 "21 tensors" convert -y "${formats[i]}" "t$i.gguf" --type "$type"
        done
        try 0 " $type" inspect t0.gguf
        check "matrices have the type" grep -q "blk.0.attn_q.weight  *$type " out
        check "vectors stay" grep -q "output_norm.weight  *f32 " out
        check "the file says it" has "general.file_type" out
        text t0.gguf && cp text.out type.txt
        check "it writes" [ "$(wc -c <type.txt)" -gt 20 ]
        for i in $others; do
            text "t$i.gguf"
            check "$type of ${formats[i]}" cmp text.out type.txt
        done
        try 0 "21 tensors" convert -y model.bin one.gguf --type "$type" --threads 1
        check "$type by one thread is the same" cmp t0.gguf one.gguf
        text model.bin --type "$type"
        check "$type in memory is the same" cmp text.out type.txt
    done
    try 0 "21 tensors" convert -y t0.gguf back.gguf --type f32 # q6_k to f32
    try 0 "21 f32" inspect back.gguf
    "$tool" synth odd.gguf --shape 64,96,1,4,4,300 --type f32 >/dev/null
    try 0 "no matrix has rows of whole q4_k blocks" convert -y odd.gguf stays.gguf --type q4_k
    try 0 "12 f32" inspect stays.gguf
    check "and the file says no type" lacks general.file_type out
    try 1 "back.gguf is there, expected a new file, or -y" convert t0.gguf back.gguf
    try 1 "back.gguf is there, expected a new file, or -y" synth back.gguf
    try 2 "'q9' is no type of weights" convert model.bin x.gguf --type q9
    try 1 "expected a type of weights" convert model.bin x.gguf --type i32
    try 1 "no/such/folder/x.gguf: cannot make a temporary file" convert model.bin no/such/folder/x.gguf
    try 1 "text: not a model file" convert text x.gguf
    check "nothing was written" [ ! -e x.gguf ]
    check "nothing was left behind" [ -z "$(find . -name '*.tmp*' -o -name 'x.gguf*')" ]
    # A folder's tokenizer goes along; run finds it in either place.
    mkdir -p folder && cp hf/model.safetensors hf/config.json folder
    try 1 "names a tokenizer" run folder
    mv folder/config.json folder/other.json
    try 1 "others need their config.json beside them; expected one of" run folder
    mv folder/other.json folder/config.json && mkdir -p bare
    try 1 "bare: a folder without model.safetensors, pytorch_model.bin" run bare
    echo '{"model":{"type":"WordPiece"}}' >folder/tokenizer.json
    try 0 "no tokenizer is taken along: folder/tokenizer.json" convert -y folder folder.gguf
    cp tokenizer.bin folder
    rm folder/tokenizer.json
    try 0 "note: runtime: no timing table, the rule serves (mulmat-tune bench makes one)" run folder -n 3
    try 0 "21 tensors" convert -y folder folder.gguf
    for model in folder folder.gguf; do
        "$tool" run "$model" -p "hello abc" -n 40 --temp 0 --table none >text.out 2>text.err
        check "$model has its tokenizer" cmp text.out f32.txt
    done
    try 0 "21 tensors" convert -y -t tokenizer.bin hf/model.safetensors named.gguf
    check "a tokenizer may be named" cmp named.gguf folder.gguf
    try 0 "21 tensors" convert -y -t tokenizer.bin model.bin named.gguf
    "$tool" run named.gguf -p "hello abc" -n 40 --temp 0 --table none >text.out 2>text.err
    check "of a llama2.c checkpoint, too" cmp text.out f32.txt
    try 0 "21 tensors" convert -y -t folder.gguf hf/model.safetensors named.gguf
    "$tool" run named.gguf -p "hello abc" -n 40 --temp 0 --table none >text.out 2>text.err
    check "also that of a GGUF file" cmp text.out f32.txt
    try 1 "cannot open" convert -t no-such-file model.bin x.gguf
    sed 's/"model_type":"llama"/"model_type":"rwkv"/' hf/config.json >folder/config.json
    try 1 "rwkv" convert folder x.gguf
    rm folder/config.json
    try 1 "architecture" convert folder x.gguf
    check "an unknown model is not written" [ ! -e x.gguf ]
    # Stopped at any moment it leaves a whole file or none.
    "$tool" synth large.gguf --shape 512,2048,8,8,8,8000 --type f32 >/dev/null
    for signal in "TERM 0.01" "INT 0.05" "HUP 0.1" "TERM 0.2"; do
        # shellcheck disable=SC2086 # a signal and seconds
        timeout -s $signal "$tool" convert large.gguf x.gguf --type q6_k --threads 1 >out 2>&1
        check "stopped by $signal, whole or not there" \
            bash -c '[ ! -e x.gguf ] || "$1" inspect x.gguf >/dev/null' - "$tool"
        check "and nothing beside it" [ -z "$(find . -name '*.tmp*')" ]
        rm -f x.gguf
    done
    rm large.gguf
    cp c0.gguf kept.gguf
    try 1 "" convert short.gguf kept.gguf -y
    check "a failure keeps the old file" cmp c0.gguf kept.gguf
fi

if group run; then
    text model.bin && cp text.out f32.txt
    for options in "--threads 1" "--threads 3" "--batch 1" "--batch 4" "--unfused" "--profile cpu" \
        "--context 100" "--plan" "--stats" "--cache f16 --unfused --cache f32" "--top-k 1" "--utf8 --top-p 0"; do
        # shellcheck disable=SC2086 # options are words
        text model.bin $options
        check "run $options" cmp text.out f32.txt
    done
    is_utf8() { iconv -f UTF-8 -t UTF-8 "$1" -o /dev/null 2>err; }
    check "a text is valid UTF-8" is_utf8 f32.txt
    text model.bin --any-bytes
    check "unless --any-bytes lets it be otherwise" [ "$(is_utf8 text.out && echo valid)" = "" ]
    for cache in f32 f16 q8_0; do
        try 0 "tokens/s" run model.bin "${tokenizer[@]}" -p abc -n 20 --cache "$cache"
    done
    try 0 "mul_mat" run model.bin "${tokenizer[@]}" -n 5 --plan --table none
    check "the plan goes to stderr" lacks mul_mat out
    try 0 "loaded in" run model.bin "${tokenizer[@]}" -n 5 --stats --table none
    check "it says the machine" has "machine: " err
    check "and the table" has "table: none" err
    try 0 "generation: 127 tokens" run model.bin "${tokenizer[@]}" -n 0 --temp 0 -p ""
    run_twice() { "$tool" run model.bin "${tokenizer[@]}" -n 40 --temp 1.5 --seed "$1" 2>/dev/null; }
    run_twice 7 >a && run_twice 7 >b && run_twice 8 >c
    check "a seed gives its text" cmp a b
    check "another seed another one" [ "$(cmp a c | wc -l)" -eq 1 ]
    # A prompt from standard input or a file; one line end behind it is none of the text.
    text model.bin && cp text.out words.txt
    printf 'hello abc\r\n' >prompt.txt
    from_input() { "$tool" run model.bin "${tokenizer[@]}" -n 40 --temp 0 --table none "$@" 2>err; }
    from_input -p - <prompt.txt >text.out
    check "the prompt of standard input" cmp text.out words.txt
    printf 'hello abc' | from_input -p - >text.out
    check "without a line end" cmp text.out words.txt
    for option in "--file prompt.txt" "-f=prompt.txt" "--file=-"; do
        # shellcheck disable=SC2086 # options are words
        from_input $option <prompt.txt >text.out
        check "the prompt of $option" cmp text.out words.txt
    done
    try 0 "generation" run model.bin "${tokenizer[@]}" -p - -n 5 # nothing to read
    printf 'a\0b' >zero.txt
    try 0 "prompt: 5 tokens" run model.bin "${tokenizer[@]}" --file zero.txt -n 9
    # Bytes alone: each blank is three tokens, more than the text has bytes.
    {
        printf '{"normalizer":{"type":"Replace","pattern":{"String":" "},"content":"\\u2581"},'
        printf '"decoder":{"type":"ByteFallback"},"model":{"type":"BPE","unk_token":"<unk>",'
        printf '"byte_fallback":true,"merges":[],"vocab":{"<unk>":0'
        for ((i = 0; i < 256; i++)); do printf ',"<0x%02X>":%d' "$i" $((i + 1)); done
        printf '}}}'
    } >bytes.json
    check "blanks are three bytes" [ "$(printf 'a b' | "$tool" tokenize -t bytes.json)" = "98 227 151 130 99" ]
    try 0 "prompt: 26 tokens" run model.bin -t bytes.json -p "        aa" -n 30 --table none
    try 1 "No such file or directory: 'nowhere.txt'" run model.bin "${tokenizer[@]}" --file nowhere.txt
    try 1 "Is a directory: 'cache'" run model.bin "${tokenizer[@]}" --file cache
    try 1 "the text is too long: '/dev/zero'" run model.bin "${tokenizer[@]}" --file /dev/zero
    try 2 "-p and --file: expected one of them" run model.bin "${tokenizer[@]}" -p abc --file prompt.txt
    try 0 "steps end inside it" run model.bin "${tokenizer[@]}" -p "abc def ghi" -n 3 --temp 0
    try 1 "names a tokenizer" run model.bin
    printf '\4\0\0\0\0\0\0\0\1\0\0\0a' >one.tok
    try 1 "the file has room for at most 1 tokens, expected 300" run model.bin -t one.tok
    try 2 "profile 'nonsense' does not exist" run model.bin "${tokenizer[@]}" --profile nonsense
    try 2 "unknown type: 'q9'" run model.bin "${tokenizer[@]}" --type q9
    try 2 "unknown type: 'q9'" run model.bin "${tokenizer[@]}" --cache q9
    try 1 "stored as q4_1" run model.bin "${tokenizer[@]}" --cache q4_1
    try 0 "" run model.bin "${tokenizer[@]}" --cache q4_0 -n 8
    try 0 "chosen" run model.bin "${tokenizer[@]}" --cache auto --stats -n 8
    try 1 "no layers that predict ahead" run model.bin "${tokenizer[@]}" --draft mtp
    try 1 "no-such-table: cannot open" run model.bin "${tokenizer[@]}" --table no-such-table
    try 2 "-temp '-1': expected a number" run model.bin "${tokenizer[@]}" --temp -1
    try 2 "-top-p '2': expected a number from 0 to 1" run model.bin "${tokenizer[@]}" --top-p 2
    "$tool" run model.bin "${tokenizer[@]}" -n 9 >/dev/full 2>err
    check "a full device is noticed" [ $? -eq 1 ]
fi

if group memory; then
    # What is resident stays within weights, cache and planned buffers, and 64 MiB.
    try 0 "resident at most" run model.bin "${tokenizer[@]}" -p "$(printf '%0100d' 7)" -n 0 --stats --table none
    line=$(grep -a '^memory: ' err)
    copies=$(sed -n 's/.*copies of weights packed by backends: \([0-9.]*\) MiB.*/\1/p' err)
    check "the sum is right" awk -v line="$line" -v copies="${copies:-0}" 'BEGIN {
        split(line, w, " "); off = w[3] + w[8] + w[11] + copies - w[14]; exit !(off * off < 0.04) }'
    if [ -r /proc/self/smaps ] && [ -d /sys/kernel/mm/transparent_hugepage ] && [ -n "$copies" ]; then
        check "huge pages are told of" awk '/in huge pages, of/ {found = $(NF - 3) <= $(NF - 1)} END {exit !found}' err
    fi
    try 0 "resident at most" run model.bin "${tokenizer[@]}" -p "$(printf '%0100d' 7)" -n 0 --stats --table none \
        --settings cpu:packed=off
    check "without copies nothing is said of them" lacks "copies of weights" err
    check "$line" awk -v line="$line" 'BEGIN { split(line, w, " "); exit !(w[19] <= w[14] + 64) }'
fi

if group amx; then
    # The kernels of AMX on emulated tiles: one text, however the prompt is cut and shared out.
    amx=(run tiles.gguf "${tokenizer[@]}" -p "once upon a time there was a tile" --temp 0 -n 40
        --table none --profile cpu-amx)
    export TANDEM_CPU=amx-emulated
    for type in q4_k bf16 q4_0; do
        [ $type = q4_0 ] && experts=,4,2 || experts=
        try 0 "" synth -y --shape 256,512,2,4,2,300$experts --type $type tiles.gguf
        try 0 "cpu mul_mat_tiles" "${amx[@]}" --plan
        cp out tiles
        for options in "--batch 1" "--threads 3" "--settings cpu:packed=off"; do
            # shellcheck disable=SC2086 # options are words
            try 0 "" "${amx[@]}" $options
            check "the $type text with $options" cmp out tiles
        done
    done
    "$tune" profiles >out 2>err
    check "it says what is emulated" has "(AMX), emulated" out
    export TANDEM_CPU=scalar
    try 2 "profile 'cpu-amx' does not exist" "${amx[@]}"
    unset TANDEM_CPU
fi

if group pack-cache; then
    # 256 wide: enough for panels of every type. Its text does not depend on what is packed when.
    try 0 "" synth -y --shape 256,512,2,4,2,300 --type q4_0 packed.gguf
    packs=(run packed.gguf "${tokenizer[@]}" --temp 0 -n 12 --table none --profile cpu-packed)
    try 0 "" "${packs[@]}" --settings cpu:packed=off
    cp out plain
    for visit in 1 2; do
        try 0 "" "${packs[@]}" --pack-cache packs --verbose
        check "the text with a cache" cmp out plain
        [ "$visit" = 1 ] && note=written || note=" packed weights, "
        check "a note on the cache" has "packed weights: packs/packed.gguf-" err
        check "it is $note" has "$note" err
        check "one file and no other" [ "$(ls -A packs | wc -l)" -eq 1 ]
    done
    cache=$(ls packs/*)
    head -c 5000 "$cache" >short && cp short "$cache"
    try 0 "" "${packs[@]}" --pack-cache packs
    check "the text with a damaged cache" cmp out plain
    check "and a note" has "packed weights: " err
    check "it was made anew" [ "$(wc -c <"$cache")" -gt 5000 ]
    cp "$cache" whole
    printf '\125\252' | dd of="$cache" bs=1 seek=20000 conv=notrunc 2>/dev/null
    try 0 "is damaged: panel" "${packs[@]}" --pack-cache packs
    check "the text with a damaged panel" cmp out plain
    check "which was packed anew" cmp "$cache" whole
    chmod 777 packs
    try 0 "every user may write" "${packs[@]}" --pack-cache packs
    chmod 755 packs
    echo "a letter" >"$cache"
    try 0 "left alone" "${packs[@]}" --pack-cache packs
    check "the text without a cache" cmp out plain
    check "the letter is still there" has "a letter" "$cache"
    rm "$cache"
    "$tool" "${packs[@]}" --pack-cache packs >a 2>/dev/null &
    "$tool" "${packs[@]}" --pack-cache packs >b 2>/dev/null
    wait $!
    check "two at once" cmp a b
    check "leave one file" [ "$(ls -A packs | wc -l)" -eq 1 ]
    try 0 "packed weights" "${packs[@]}" --pack-cache packs --verbose
    try 0 "plain" "${packs[@]}" --pack-cache plain/below
    # A file beside the model serves wherever both lie, unasked.
    try 0 "MiB of packed weights for" convert packed.gguf along.gguf --packed
    mkdir -p away && cp along.gguf away/ && cp along.gguf.packed away/
    packs=("${packs[@]/packed.gguf/away\/along.gguf}")
    try 0 "" "${packs[@]}" --verbose --stats
    check "the file beside the model serves" has "packed weights: away/along.gguf.packed: " err
    check "to the same text" cmp out plain
    check "and nothing is packed" lacks "packed by backends" err
    # (A CPU with AVX2 alone has no other set that packs.)
    ! grep -qs avx512 /proc/cpuinfo ||
        TANDEM_CPU=avx2 try 0 "another instruction set" "${packs[@]}"
    try 1 "expected a new file, or -y" convert packed.gguf along.gguf --packed
    try 0 "MiB of packed weights for" convert packed.gguf along.gguf --packed -y
    echo foreign >other.gguf.packed
    try 1 "other.gguf.packed is there" convert packed.gguf other.gguf --packed
    try 1 "left alone" convert packed.gguf other.gguf --packed -y
    check "a foreign file stays" grep -qx foreign other.gguf.packed
    TANDEM_MAP=copy try 1 "TANDEM_MAP=copy" convert packed.gguf copied.gguf --packed
    packs=("${packs[@]/away\/along.gguf/packed.gguf}")
    try 1 "expected the name of a folder" "${packs[@]}" --pack-cache a,b
    try 1 "expected the name of a folder" "${packs[@]}" --pack-cache ""
fi

# say LINE...: the lines as input of a chat.
say() {
    printf '%s\n' "$@" >lines
    input=lines
}
chat=(chat model.bin "${tokenizer[@]}" -n 12 --temp 0 --table none --chat-template plain)

if group chat; then
    say "hello" "more of it" "/quit" "never read"
    try 1 "the model has no chat template: --chat-template FILE" chat model.bin "${tokenizer[@]}" --table none
    try 0 "" "${chat[@]}"
    cp out talk
    check "two answers" [ -s talk ]
    try 0 "" "${chat[@]}"
    check "the same conversation again" cmp out talk
    say "hello" "more of it"
    try 0 "" "${chat[@]}" # the end of the input ends
    check "with or without /quit" cmp out talk
    try 0 "answer: " "${chat[@]}" --stats
    say "hello"
    try 0 "" "${chat[@]}"
    cp out first
    say "hello" "/reset" "hello"
    try 0 "" "${chat[@]}"
    cat first first | cmp -s - out
    check "after /reset all is as before" [ $? -eq 0 ]
    say "hello" "/save state" "/quit"
    try 0 "" "${chat[@]}"
    say "/load state" "more of it"
    try 0 "" "${chat[@]}"
    cat first out | cmp -s - talk
    check "a saved conversation goes on" [ $? -eq 0 ]
    say "/load no-such-file" "hello"
    try 0 "cannot open" "${chat[@]}"
    check "and goes on" cmp out first
    say "/load model.bin" "hello"
    try 0 "model.bin" "${chat[@]}"
    check "and goes on again" cmp out first
    say "/save /no/such/folder/x"
    try 0 "/no/such/folder/x: cannot make a temporary file" "${chat[@]}"
    say "/stats"
    try 0 "resident at most" "${chat[@]}"
    say "/help"
    try 0 "/reset       forgets the conversation" "${chat[@]}"
    for command in /save /load /stats /quit Ctrl-C; do
        check "the help has $command" has "$command" out
    done
    say "/nonsense"
    try 0 "/reset       forgets the conversation" "${chat[@]}"
    say "" "" "hello"
    try 0 "" "${chat[@]}"
    check "empty lines say nothing" cmp out first
    for template in llama-2 mistral-instruct plain; do
        say "hello" "more of it"
        try 0 "" "${chat[@]}" --chat-template "$template" --system "be kind" -n 6
    done
    say "hello"
    try 1 "alpaca: cannot open" "${chat[@]}" --chat-template alpaca
    mkdir -p talks && cp hf/* talks/ 2>/dev/null
    rm -f talks/chat_template.jinja
    echo '{"chat_template":[{"name":"rag","template":"never"},{"name":"default","template":"{{ raise_exception(\"of the folder\") }}"}]}' >talks/tokenizer_config.json
    try 0 "the template refuses: of the folder" chat talks "${tokenizer[@]}" -n 2 --table none
    try 0 "" convert talks talks.gguf "${tokenizer[@]}" -y
    try 0 "the template refuses: of the folder" chat talks.gguf "${tokenizer[@]}" -n 2 --table none
    echo '{{ raise_exception("of the file") }}' >talks/chat_template.jinja
    try 0 "the template refuses: of the file" chat talks "${tokenizer[@]}" -n 2 --table none
    echo "{{ messages[0].content }}{% include 'x' %}" >odd.jinja
    try 1 "odd.jinja: line 1: the statement 'include' is not understood" "${chat[@]}" --chat-template odd.jinja
    echo "{% if messages[0].role == 'user' %}{{ raise_exception('system first') }}{% endif %}" >odd.jinja
    try 0 "the template refuses: system first" "${chat[@]}" --chat-template odd.jinja
    say "$(head -c 600 /dev/zero | tr '\0' a)" "hello"
    try 0 "tokens" "${chat[@]}" # a message longer than the context
    check "and goes on" [ -s out ]
    seq -f 'message %g' 40 >lines # more than the context holds: the oldest half is forgotten
    try 0 "" "${chat[@]}"
    check "40 answers" [ "$(wc -l <out)" -ge 40 ]
    say "hello"
    "$tool" "${chat[@]}" --history hist <lines >out 2>err
    check "no history without a terminal" [ ! -e hist ]
    "$tool" "${chat[@]}" <lines >/dev/full 2>err
    check "a full device is noticed" [ $? -eq 1 ]
    input=/dev/null
fi

if group interrupt; then
    # Ctrl-C stops an answer and keeps the conversation. The answer could take minutes; the signal is
    # sent when its first byte is there.
    try 0 "tensors" synth -y slow.gguf --shape 1024,2816,6,8,8,300 --type f32 --context 4096
    mkfifo to from
    "$tool" chat slow.gguf "${tokenizer[@]}" --chat-template plain -n 3000 --seed 3 --table none --profile cpu --threads 1 \
        <to >from 2>err &
    pid=$!
    exec 3>to 4<from
    echo "hello" >&3
    IFS= read -r -N 1 -t 100 -u 4 _
    kill -INT $pid
    echo "/quit" >&3
    exec 3>&-
    cat <&4 >rest
    exec 4<&-
    wait $pid
    check "the program goes on" [ $? -eq 0 ]
    check "the answer was cut" grep -aq ' \.\.\.$' rest
    check "long before its end" [ "$(wc -c <rest)" -lt 2000 ]
fi

if group bench; then
    shape=(--synth 256,512,2,8,2,300)
    small=("${shape[@]}" --prompt 8,16 --gen 4 --repeat 2 --table none)
    try 0 "| matrix products of the plan  " bench "${small[@]}"
    check "the rule" has "planned by the rule, without a table" out
    check "three tests" [ "$(grep -cE '\| (pp8|pp16|tg4) ' out)" -eq 3 ]
    check "columns" [ "$(grep '^|' out | awk -F'|' '{print NF}' | sort -u | wc -l)" -eq 1 ]
    try 1 "no-such-table: cannot open" bench "${shape[@]}" --prompt 8 --gen 0 --table no-such-table
    try 0 "test,tokens,mean_tokens_per_s" bench "${small[@]}" --output csv
    check "four lines" [ "$(wc -l <out)" -eq 4 ]
    check "columns" [ "$(awk -F, '{print NF}' out | sort -u | wc -l)" -eq 1 ]
    try 0 '"mean_tokens_per_s": ' bench "${small[@]}" --output json
    if command -v python3 >/dev/null; then
        check "valid JSON" python3 -m json.tool out /dev/null
    else
        skip "no python3 to read JSON"
    fi
    check "the plan" has '"plan": "cpu' out
    check "samples" has '"samples": 2' out
    try 0 "pp8" bench "${shape[@]}" --prompt 8 --gen 0 --repeat 1 --table none
    check "no generation" lacks "| tg" out
    try 0 "tg3" bench "${shape[@]}" --prompt 0 --gen 3 --repeat 1 --type q8_0
    check "no prompt" lacks "| pp" out
    check "the type" has "2x256 q8_0" out
    check "it says that there is no table" has "no timing table" err
    try 0 "profile cpu" bench "${small[@]}" --profile cpu --threads 1 --cache f16
    try 0 "2x256 f32" bench model.bin --prompt 8 --gen 2 --repeat 1 --table none
    try 0 "behind 20 tokens of text" bench model.bin --prompt 8 --gen 2 --depth 20 --repeat 2 --table none
    try 2 "takes no --depth" bench --synth quick --never-slower --depth 8
    try 1 "more tokens do not fit" bench model.bin --prompt 8 --gen 0 --depth 100000 --repeat 1 --table none
    try 0 "2x256 f32" bench hf --prompt 8 --gen 2 --repeat 1 --table none --unfused
    try 0 "what other programs do, in turns with the plan" bench "${small[@]}" --baselines all
    check "each is explained" has "  one-thread: the CPU kernels on one thread" out
    if "$tune" profiles 2>/dev/null | grep -A1 "^cpu+openblas-threads" | grep -q init; then
        check "BLAS with its own threads is among them" has "tokens/s by blas-32" out
    fi
    check "each test is compared with each" [ "$(grep -c "tokens/s by cpu; planned is" out)" -eq 3 ]
    check "the gain is over the best" [ "$(grep -c "gain over the best of them" out)" -eq 3 ]
    try 0 "pp8: gain over the best of them (one-thread)" bench "${small[@]}" --baselines one-thread
    check "no others" lacks "by cpu" out
    for word in all blas-32 one-thread cpu gpu; do
        try 0 "$word" bench --help
    done
    try 2 "'blas' is no baseline; expected all, or some of blas-32,one-thread,cpu,gpu" \
        bench "${small[@]}" --baselines cpu,blas
    try 2 "'' is no baseline" bench "${small[@]}" --baselines cpu,
    try 2 "not both" bench model.bin "${shape[@]}"
    try 2 "expected a whole number from 1 to 64" bench "${shape[@]}" --repeat 0
    try 2 "md, json or csv, not 'xml'" bench "${shape[@]}" --output xml
    try 2 "expected whole numbers, separated by commas, from 0 to 1000000" bench "${shape[@]}" --prompt 8,x
    try 2 "expected whole numbers, separated by commas, from 0 to 1000000" bench "${shape[@]}" --gen -3
    try 2 "nothing to measure" bench "${shape[@]}" --prompt 0 --gen 0
    try 2 "unknown type: 'q9'" bench "${shape[@]}" --type q9
    try 2 "unknown type: 'q9'" bench "${shape[@]}" --cache q9
    try 2 "profile 'nonsense' does not exist" bench "${small[@]}" --profile nonsense
fi

if group compare; then
    try 0 "| other        |  0.000000 |  0.000000 | 100.00 % |" compare model.bin "${tokenizer[@]}" \
        -p "hello" --table none
    try 0 "| q8_0 " compare model.bin "${tokenizer[@]}" -p "hello" --types f16,q8_0 --table none
    check "a line a type" has "| f16 " out
    try 2 "unknown type: 'q9'" compare model.bin "${tokenizer[@]}" --types q9
    try 2 "compare: MODEL is missing" compare
fi

if group imatrix; then
    for i in {1..40}; do echo "Once upon a time, there was a little girl named Lily."; done >story.txt
    for form in dat gguf; do
        try 0 "chunks of 64 tokens" imatrix model.bin story.txt "${tokenizer[@]}" -o "m.$form" \
            --chunk 64 --chunks 3 --table none
        try 0 "21 tensors" convert -y c0.gguf "i.$form" --type iq2_xs --imatrix "m.$form"
    done
    check "both forms say the same" cmp i.dat i.gguf
    try 1 "expected a new file" imatrix model.bin story.txt "${tokenizer[@]}" -o m.dat
    try 1 "too few tokens" imatrix model.bin story.txt "${tokenizer[@]}" -o n.dat --chunk 100000
    try 1 "needs an importance matrix" convert -y c0.gguf i.gguf --type iq2_xs
    try 1 "no importance matrix" convert -y c0.gguf i.gguf --type iq2_xs --imatrix story.txt
    try 0 "21 tensors" convert -y c0.gguf i.gguf --mix Q4_K_M
    try 2 "'q4_k_x' is no mix of llama.cpp" convert -y c0.gguf i.gguf --mix q4_k_x
    try 2 "imatrix: MODEL is missing" imatrix
fi

if group fit; then
    tables=$root/bench-data
    desktop=(--table "$tables/desktop-8gb-computed/table.json" --device-memory 8)
    try 0 "experts       opencl" fit 30B-A3B "${desktop[@]}"
    check "what is left is on the CPU" has "experts       cpu" out
    check "what does not fit is said" has "do not fit" out
    check "more memory is told" has "With more memory of opencl:" out
    for objective in prompt generation mixed; do
        try 0 '"name": "placed", "fits": true' fit 8B "${desktop[@]}" --json --objective "$objective"
        check "JSON names the objective" has "\"objective\": \"$objective\"" out
    done
    # Of a MoE about half again of what whole layers bring: 45.2 against 30.5 tokens/s.
    try 0 '"more_memory": [{"memory"' fit 30B-A3B "${desktop[@]}" --json --objective generation
    check "experts apart are 1.45 times as fast as whole layers" awk -F'"generation_tps": ' '
        /"whole_layers"/ { whole = $2 + 0 }
        /"placed"/ { placed = $2 + 0 }
        END { exit !(whole > 0 && placed >= 1.45 * whole) }' out
    for machine in integrated-gpu:16 server-80gb:80 desktop-24gb:24 laptop-8gb:8 laptop-4gb:4; do
        for shape in 8B 70B 30B-A3B; do
            try 0 "placed as above" fit "$shape" --table "$tables/${machine%:*}-computed/table.json" \
                --device-memory "${machine#*:}"
        done
    done
    try 0 "attention     cpu" fit 8B "${desktop[@]:0:2}" --device-memory 0
    try 0 "no device with memory of its own" fit 7B --table "$tables/epyc-zen4-2-cores/table.json"
    check "the CPU alone is told" has "CPU alone" out
    check "and nothing else" lacks "whole layers" out
    try 1 "that a prompt touches" fit 7B --table "$tables/macbook-pro-2018/table.txt"
    try 1 "no times of the CPU" fit model.bin --table "$tables/server-a100-computed/table.json" --device-memory 8
    try 1 "the memory of 'opencl' is not known here" fit 8B "${desktop[@]:0:2}"
    for wrong in 8,8 x 8x -1 1e99 ""; do
        try 1 "expected 1 number of GiB" fit 8B "${desktop[@]:0:2}" --device-memory "$wrong"
    done
    try 2 "expected prompt, generation or mixed" fit 8B "${desktop[@]}" --objective fast
    try 2 "unknown type" fit 8B "${desktop[@]}" --type q9
    try 1 "cannot open" fit no-such-file "${desktop[@]}"
    try 1 "no-such-table" fit 8B --table no-such-table.json
    try 2 "expected a whole number" fit 8B "${desktop[@]}" --context -1
fi

if group table; then
    XDG_CACHE_HOME=$work/else "$tune" bench --model 64x64 --type q8_0 -m 1,8 --budget 1 --file other.json -y >/dev/null 2>&1
    try 0 "which covers none of the products: by the rule" bench model.bin --prompt 8 --gen 2 --repeat 1 --table other.json
    try 0 "no timing table" compare model.bin "${tokenizer[@]}" -p hello --types f16,q8_0
    check "said once for four runtimes" [ "$(grep -c "no timing table" err)" -eq 1 ]
    try 0 "no timing table" run model.bin "${tokenizer[@]}" -n 3 --temp 0
    if [ "$(nproc)" -gt 4 ]; then # elsewhere a table brings nothing
        check "how to make one" has "mulmat-tune bench --model 256x256,64x256,512x256,256x512,300x256 --type f32" err
    fi
    "$tune" bench --model 256x256,512x256 --type f32 -m 1,8 --budget 1 >/dev/null 2>err
    check "mulmat-tune measures" [ $? -eq 0 ]
    try 0 "timing table: $work/cache" run model.bin "${tokenizer[@]}" -n 3 --temp 0
    check "no note" lacks "no timing table" err
    say "hello"
    try 0 "timing table: $work/cache" chat model.bin "${tokenizer[@]}" --chat-template plain -n 3
    input=/dev/null
    try 0 "planned by the table $work/cache" bench model.bin --prompt 8 --gen 2 --repeat 1
    try 0 "planned by the table" bench model.bin --prompt 8 --gen 2 --repeat 1
    check "what it has no times for is said" lacks "which covers none" out
    try 0 "table: none" run model.bin "${tokenizer[@]}" -n 3 --table none --stats
    check "no table is said" lacks "timing table:" err
    rm -r cache
fi

if group tokenize; then
    printf 'hello abc, some Text\nof two lines \xc3\xa9\xe2\x82\xac\xff' >words
    input=words
    try 0 "" tokenize "${tokenizer[@]}"
    cp out ids
    check "one line of ids" [ "$(wc -l <ids)" -eq 1 ]
    check "separated by blanks" grep -qxE '[0-9]+( [0-9]+)*' ids
    try 0 "" tokenize "${tokenizer[@]}" --bos
    check "the beginning token in front" [ "$(cat out)" = "1 $(cat ids)" ]
    input=/dev/null
    try 0 "" tokenize "${tokenizer[1]}" -p "$(head -1 words)"
    check "a text of the command line" [ -n "$(cat out)" ] && check "begins the same" grep -qF "$(cut -c1-12 out)" ids
    input=ids
    try 0 "" tokenize "${tokenizer[@]}" --detokenize
    check "the text comes back" cmp out words
    echo "299 300" >wrong
    input=wrong
    try 2 "which has 0 to 299" tokenize "${tokenizer[@]}" --detokenize
    echo "17 x" >wrong
    try 2 "'x" tokenize "${tokenizer[@]}" --detokenize
    echo "-1" >wrong
    try 2 "'-1" tokenize "${tokenizer[@]}" --detokenize
    input=/dev/null
    try 0 "" tokenize "${tokenizer[@]}"
    check "no text, no ids" [ -z "$(cat out)" ]
    "$tool" tokenize "${tokenizer[@]}" --detokenize </dev/null >out
    check "no ids, no text" [ ! -s out ]
    try 1 "tokenizer" tokenize -t c0.gguf
    try 2 "unexpected 'words'" tokenize "${tokenizer[@]}" words
fi

if group data; then
    stories=$llama/stories260K.bin
    trained=(-t "$llama/tok512.bin" --temp 0 --table none)
    mkdir -p trained/hf trained/torch trained/meta trained/sharded
    "$root/$build/make-models" trained "$stories"
    try 0 "47 tensors" convert -y "$stories" trained/model.gguf
    try 0 "llama2.c version 1" inspect "$llama/stories260K.v1.bin"
    for model in "$stories" "$llama/stories260K.v1.bin" trained/model.{gguf,pth,pt} \
        trained/trained.pt trained/hf \
        trained/torch trained/meta trained/sharded; do
        try 0 "Once upon a time" run "$model" "${trained[@]}" -n 200
        check "$model: the golden text" cmp out "$llama/golden-t0-n200.txt"
        try 0 "Zoo" run "$model" "${trained[@]}" -n 60 -p Zoo
        check "$model: the golden text of Zoo" cmp out "$llama/golden-zoo-t0-n60.txt"
    done
    for type in f16 bf16 q8_0 q5_1; do
        try 0 "47 tensors" convert -y trained/hf trained/model.gguf --type "$type"
        try 0 "Once upon a time, there was a" run trained/model.gguf "${trained[@]}" -n 40
    done
    for file in "$vocabularies"/*.gguf; do
        try 0 "GGUF version" inspect "$file"
        # The pairs: texts separated by lines "__ggml_vocab_test__", a line of ids for each.
        awk -v RS='\n__ggml_vocab_test__\n' '{printf "%s", $0 > ("text" NR)}' "$file.inp"
        n=0
        while IFS= read -r want; do
            n=$((n + 1))
            "$tool" tokenize -t "$file" <"text$n" >out 2>err
            [ "$(tr -s ' ' <<<"$want" | sed 's/^ //; s/ $//')" = "$(cat out)" ] ||
                { bad "$file: text $n"; continue; }
            ok
        done <"$file.out"
        check "$(basename "$file"): has pairs" [ "$n" -gt 30 ]
    done
    book=$tokenizers/sentencepiece/botchan.txt
    for file in "$tokenizers/20B_tokenizer.json" \
        "$vocabularies/ggml-vocab-llama-spm.gguf" "$vocabularies/ggml-vocab-gpt-2.gguf"; do
        input=$book
        try 0 "" tokenize -t "$file"
        mv out ids
        input=ids
        try 0 "" tokenize -t "$file" --detokenize
        check "$(basename "$file"): the book comes back" cmp out "$book"
    done
    if command -v spm_encode >/dev/null; then
        head -300 "$book" >part
        spm_encode --model="$tokenizers/sentencepiece/test_model.model" --output_format=id <part >want
        while IFS= read -r line; do
            printf '%s' "$line" | "$tool" tokenize -t "$tokenizers/sentencepiece/test_model.model"
        done <part >out
        check "300 lines of the book are those of spm_encode" cmp out want
    else
        skip "no spm_encode"
    fi
    input=/dev/null
fi

# chat_on_cut CODE: a chat whose model is cut short between opening it and the first line ends so.
chat_on_cut() {
    local code=$1 pid got
    cp c0.gguf cut.gguf
    rm -f talk && mkfifo talk
    : >err # what an earlier chat said must not be taken for the word of this one
    timeout 120 "$tool" chat cut.gguf "${tokenizer[@]}" -n 12 --table none --chat-template plain <talk >out 2>err &
    pid=$!
    exec 3>talk
    until grep -qa '^chat template: ' err || ! kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
    truncate -s 4096 cut.gguf
    echo hello >&3
    exec 3>&-
    wait "$pid"
    got=$?
    check "a chat on a model cut short ends with $got, expected $code" [ "$got" -eq "$code" ]
}

# Too little address space: OpenBLAS is left out, or has one thread; nothing hangs or dies of a signal.
if group limits; then
    if (ulimit -v 1000000 && "$tool" --version) >/dev/null 2>&1; then
        for kib in 100000 150000 250000 400000 600000; do
            for profile in cpu cpu+openblas cpu+openblas-threads; do
                (ulimit -v $kib && exec timeout 60 "$tool" run model.bin "${tokenizer[@]}" -p "hello there" -n 4 \
                    --profile $profile --table none) </dev/null >out 2>err
                code=$?
                check "$kib KiB of addresses, profile $profile: exit code $code" [ $code -le 1 ]
            done
        done
    else
        skip "ThreadSanitizer and its kin want all addresses"
    fi
fi

if group mapped; then
    chat_on_cut 1
    check "the file is named" has "cut.gguf: a part of the file was gone" err
    TANDEM_MAP=copy chat_on_cut 0
    check "nothing is said of the file" lacks cut.gguf err
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
