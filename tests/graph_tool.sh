#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: graph_tool.sh BUILD       (needs BUILD/tandem-graph and BUILD/mulmat-tune)
# Runs tandem-graph as a user does, on a model of one Add written byte by byte. The last line is
# "N passed, N failed, N skipped".
set -u
cd "$(dirname "$0")/.."
graph=$PWD/${1:-build/release}/tandem-graph
tune=$PWD/${1:-build/release}/mulmat-tune
tool=$graph
sounds=$PWD/tests/fuzz/corpus/wav
unset TANDEM_LOG TANDEM_CPU TANDEM_TABLE TANDEM_THREADS TANDEM_TRACE
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/cache XDG_DATA_DIRS=$work/share
cd "$work" || exit 1
passed=0 failed=0

# try CODE PART ARGUMENT...: the tool ends with this code, and PART stands in what it prints.
try() {
    local code=$1 part=$2 got
    shift 2
    timeout 60 "$tool" "$@" >out 2>&1
    got=$?
    if [ "$got" -ne "$code" ] || ! grep -qF -- "$part" out; then
        failed=$((failed + 1))
        echo "FAILED: $*: exit code $got, expected $code and '$part'"
        head -5 out
    else
        passed=$((passed + 1))
    fi
}

# A message of protobuf: member NUMBER with the bytes of its arguments, fewer than 16,384.
member() {
    local text length
    text=$(printf '%s' "${@:2}")
    length=$((${#text} / 4))
    printf '\\x%02x' $(($1 * 8 + 2))
    [ $length -lt 128 ] || printf '\\x%02x' $((length % 128 + 128))
    printf '\\x%02x%s' $((length < 128 ? length : length / 128)) "$text"
}
number() { printf '\\x%02x\\x%02x' $(($1 * 8)) "$2"; }
text() { printf '%s' "$1" | od -An -v -tx1 | tr -d '\n' | sed 's/ /\\x/g'; }
value() { # NAME: two values of float32
    member 1 "$(text "$1")"
    member 2 "$(member 1 "$(number 1 1)" "$(member 2 "$(member 1 "$(number 1 2)")")")"
}
model() { # OPERATOR
    number 1 8
    member 7 "$(member 1 "$(member 1 "$(text x)")" "$(member 1 "$(text w)")" \
        "$(member 2 "$(text y)")" "$(member 4 "$(text "$1")")")" "$(member 2 "$(text g)")" \
        "$(member 11 "$(value x)")" "$(member 11 "$(value w)")" "$(member 12 "$(value y)")"
    member 8 "$(number 2 13)"
}
tensor() { # NAME BYTES
    number 1 2
    number 2 1
    member 8 "$(text "$1")"
    member 9 "$2"
}
one='\x00\x00\x80\x3f' two='\x00\x00\x00\x40' three='\x00\x00\x40\x40'
npy() { # BYTES of two values
    local header="{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}"
    printf "\x93NUMPY\x01\x00\x$(printf %02x ${#header})\x00%s" "$header"
    printf "$1"
}
case_of() { # FOLDER OPERATOR BYTES of the output
    mkdir -p "$1/test_data_set_0"
    printf "$(model "$2")" >"$1/model.onnx"
    printf "$(tensor x "$one$two")" >"$1/test_data_set_0/input_0.pb"
    printf "$(tensor w "$two$one")" >"$1/test_data_set_0/input_1.pb"
    printf "$(tensor y "$3")" >"$1/test_data_set_0/output_0.pb"
}
case_of good/add Add "$three$three"
npy "$one$two" >x.npy
npy "$two$one" >w.npy

# ---- test ----
try 0 "1 passed, 0 failed, 0 refused" test good
try 0 "1 passed, 0 failed, 0 refused" test good --reference
try 0 '{"passed": 1, "failed": 0, "refused": 0, "cases": [' test good --json
try 0 '{"name": "add", "status": "passed", "reason": ""}' test good --json
cp -r good mixed
case_of mixed/wrong Add "$three$two"
case_of mixed/unknown Nonesuch "$three$three"
try 1 "1 passed, 1 failed, 1 refused" test mixed
try 1 "failed wrong: value 1 of output y is 3, expected 2" test mixed
try 1 "refused unknown: Nonesuch of opset 13" test mixed
cp -r good bare && rm -r bare/add/test_data_set_0
try 0 "no folder test_data_set_0" test bare
mkdir empty
try 1 "no model.onnx is there" test empty
try 1 "no model.onnx is there" test nowhere
try 2 "DIR is missing" test

# ---- run ----
header="{'descr': '<i8', 'fortran_order': False, 'shape': (2, 1)}"
printf "\x93NUMPY\x01\x00\x$(printf %02x ${#header})\x00%s%016d" "$header" 0 >wide.npy
model=good/add/model.onnx
try 0 "made/y.npy: float32 2" run $model --input x=x.npy --input w=w.npy --output made
cmp -s <(tail -c 8 made/y.npy) <(printf "$three$three") || { failed=$((failed + 1)); echo "FAILED: values of y"; }
try 1 "expected a new file, or -y" run $model --input x=x.npy --input w=w.npy --output made
try 0 "made/y.npy" run $model --input x=x.npy --input w=w.npy --output made -y --reference
try 0 "made/all.npz: y: float32 2" run $model --input x=x.npy --input w=w.npy --output made/all.npz
try 1 "expected a new file, or -y" run $model --input x=x.npy --input w=w.npy --output made/all.npz
try 1 "array y has the name of no input" run $model --input made/all.npz --output made -y
sed 's/y\.npy/x.npy/g' made/all.npz >x.npz
try 0 "again/y.npy: float32 2" run $model --input x.npz --input w=w.npy --output again
try 1 "input w has no values" run $model --input x=x.npy --output made -y
try 1 "NAME=FILE.npy with a name" run $model --input z=x.npy --output made -y
try 1 "expected \\x93NUMPY" run $model --input x=$model --input w=w.npy --output made -y
try 1 "input 'x': int64 of 2x1, expected float32 of 2" run $model --input x=wide.npy --input w=w.npy --output made -y
try 1 "expected NAME=N" run $model --dim n --output made -y
try 2 "--output is missing" run $model
try 1 "nothing.onnx" run nothing.onnx --output made

# ---- inspect, bench, the rest ----
try 0 "1 operations of the net" inspect $model
try 0 "input  x float32 [2]" inspect $model
try 0 "Nonesuch of opset 13" inspect mixed/unknown/model.onnx
try 1 "x.npy" inspect x.npy
try 0 "the median of" bench $model --seconds 0
try 0 '{"ms": ' bench $model --seconds 0 --json
try 0 "the median of" bench $model --seconds 0 --device none
try 1 "nonesuch" bench $model --seconds 0 --profile nonesuch
if "$tool" bench $model --seconds 0 --profile opencl >out 2>&1; then # runs on the device
    try 0 "1 passed, 0 failed, 0 refused" test good --profile opencl
else
    try 1 "opencl" test good --profile opencl
fi
try 1 "Nonesuch" bench mixed/unknown/model.onnx
try 0 "runs ONNX models" --help
try 0 "1 operations before, 1 after" optimize $model
try 0 "fold " optimize $model --passes fold,dead
try 0 "kernel void tandem_node(" optimize $model --kernels cl
try 0 'extern "C" __global__ void tandem_node(' optimize $model --kernels cuda
try 2 "expected c, cl or cuda" optimize $model --kernels glsl
try 2 "--passes fold,melt: expected none, or some of quantise,fold,dead" optimize $model --passes fold,melt
try 0 "the median of" bench $model --seconds 0 --passes none
try 2 "--passes melt: expected none" bench $model --passes melt
try 0 "made/y.npy" run $model --input x=x.npy --input w=w.npy --output made -y --passes fold
try 2 "--passes melt: expected none" run $model --output made --passes melt
# ---- mel ----
try 0 "mel.npy: float32 1x80x4" mel "$sounds/pcm16" -o mel.npy --frames 4
try 1 "expected a new file, or -y" mel "$sounds/pcm16" -o mel.npy
try 0 "mel.npy: float32 1x8x3000" mel "$sounds/extensible" -o mel.npy -y --bins 8
try 0 "mel.npy: float32 1x80x2" mel x.npy -o mel.npy -y --frames 2
try 1 "expected 1 to 256 and 2 to" mel x.npy -o mel.npy -y --frames 0
try 1 "expected RIFF and WAVE" mel $model -o mel.npy -y
try 1 "expected float32 with 1" mel mel.npy -o other.npy
printf "$(cat "$sounds/pcm16" | od -An -v -tx1 | tr -d '\n' | sed 's/ /\\x/g; s/80\\x3e/40\\x1f/')" >slow.wav
try 1 "8000 samples a second, expected 16000" mel slow.wav -o other.npy
try 2 "-o is missing" mel x.npy

# ---- transcribe: the next token is the sum of all before it, 7 at most ----
shaped() { # NAME TYPE EXTENT...: a value; extents are numbers or names
    local extent shape=
    for extent in "${@:3}"; do
        if [[ $extent =~ ^[0-9]+$ ]]; then
            shape+=$(member 1 "$(number 1 "$extent")")
        else
            shape+=$(member 1 "$(member 2 "$(text "$extent")")")
        fi
    done
    member 1 "$(text "$1")"
    member 2 "$(member 1 "$(number 1 "$2")" "$(member 2 "$shape")")"
}
node() { # OPERATOR RESULT OPERANDS [ATTRIBUTE NUMBER]: a node of the graph
    local operand body=
    for operand in $3; do body+=$(member 1 "$(text "$operand")"); done
    body+=$(member 2 "$(text "$2")")$(member 4 "$(text "$1")")
    [ $# -lt 5 ] || body+=$(member 5 "$(member 1 "$(text "$4")")" "$(number 3 "$5")" '\xa0\x01\x02')
    member 1 "$body"
}
whole() { # GRAPH: a model
    number 1 8
    member 7 "$1"
    member 8 "$(number 2 13)"
}
printf "$(whole "$(node Identity states mel)$(member 11 "$(shaped mel 1 1 2 4)")$(
    member 12 "$(shaped states 1 1 2 4)")")" >encoder.onnx
counts='\x00\x00\x00\x00\x00\x00\x80\x3f\x00\x00\x00\x40\x00\x00\x40\x40'
counts+='\x00\x00\x80\x40\x00\x00\xa0\x40\x00\x00\xc0\x40\x00\x00\xe0\x40'
printf "$(whole "$(node Cast k token to 1)$(node Concat all "past_k k" axis 1)$(node Exp seen mask)$(
    node Mul parts "all seen")$(node ReduceSum sum parts)$(node Sub far "sum counts")$(
    node Mul square "far far")$(node Neg logits square)$(
    member 5 "$(number 1 8)" "$(number 2 1)" "$(member 8 "$(text counts)")" "$(member 9 "$counts")")$(
    member 11 "$(shaped token 7 1 1)")$(member 11 "$(shaped past_k 1 1 cells)")$(
    member 11 "$(shaped mask 1 1 keys)")$(member 12 "$(shaped k 1 1 1)")$(
    member 12 "$(shaped logits 1 1 8)")")" >decoder.onnx
try 0 "1 2 4 7 7" transcribe encoder.onnx decoder.onnx "$sounds/pcm16" --prompt 1 --tokens 5
try 0 "3 6 7" transcribe encoder.onnx decoder.onnx "$sounds/pcm16" --prompt 1,2 --end 7 --tokens 9
try 0 "0 0 0 0 0 0 0 0 0 0 0 0" transcribe encoder.onnx decoder.onnx "$sounds/pcm16" --tokens 80
try 1 "no output logits" transcribe encoder.onnx encoder.onnx "$sounds/pcm16"
for shape in "1 5" "cells 1" "1 cells 3"; do # not `cells`, a cache, too many axes
    printf "$(whole "$(node Cast k token to 1)$(node Identity kept past_k)$(node Identity logits k)$(
        member 11 "$(shaped token 7 1 1)")$(member 11 "$(shaped past_k 1 $shape)")$(
        member 12 "$(shaped k 1 1 1)")$(member 12 "$(shaped kept 1 $shape)")$(
        member 12 "$(shaped logits 1 1 1)")")" >"past.onnx"
    case $shape in
    "cells 1") try 0 "0 0" transcribe encoder.onnx past.onnx "$sounds/pcm16" --tokens 2 ;;
    *) try 1 "input past_k is no cache" transcribe encoder.onnx past.onnx "$sounds/pcm16" ;;
    esac
done
printf "root:x:0:0\n" >encoder.txt
try 1 "encoder.txt: no ONNX model, or a damaged one: " inspect encoder.txt
# A published decoder: the next token is one more; the encoder's states are read by nobody.
below='\x00\x00\x80\xbf\x00\x00\x00\x00\x00\x00\x80\x3f\x00\x00\x00\x40'
below+='\x00\x00\x40\x40\x00\x00\x80\x40\x00\x00\xa0\x40\x00\x00\xc0\x40'
column='\x01\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\x00\x00\x00\x00\x00\x00'
published() { # INPUTS: a model
    whole "$(node Cast k input_ids to 1)$(node Reshape rows "k column")$(node Sub far "rows below")$(
        node Mul square "far far")$(node Neg logits square)$(
        member 5 "$(number 1 3)" "$(number 2 7)" "$(member 8 "$(text column)")" "$(member 9 "$column")")$(
        member 5 "$(number 1 8)" "$(number 2 1)" "$(member 8 "$(text below)")" "$(member 9 "$below")")$(
        member 11 "$(shaped input_ids 7 batch_size length)")$1$(member 12 "$(shaped logits 1 batch_size length 8)")"
}
states=$(member 11 "$(shaped encoder_hidden_states 1 batch_size frames 4)")
printf "$(published "$states")" >published.onnx
try 0 "3 4 5 6" transcribe encoder.onnx published.onnx "$sounds/pcm16" --prompt 2 --end 7
try 0 "6 7 7 7" transcribe encoder.onnx published.onnx "$sounds/pcm16" --prompt 5 --tokens 4
try 0 "$(seq -s ' ' 1 7) 7 7 7 7 7 7 7 7 7 7 7 7 7" transcribe encoder.onnx published.onnx "$sounds/pcm16" \
    --prompt 0 --tokens 20 # more than a block
try 1 "states no decoder_start_token_id" transcribe encoder.onnx published.onnx "$sounds/pcm16"
printf "$(published "$states$(member 11 "$(shaped speaker 1 1)")")" >other.onnx
try 1 "input 'speaker' (float32) is none" transcribe encoder.onnx other.onnx "$sounds/pcm16" --prompt 2
printf "$(whole "$(node Cast logits input_ids to 1)$(member 11 "$(shaped input_ids 7 1 4)")$states$(
    member 12 "$(shaped logits 1 1 4)")")" >fixed.onnx
try 1 "takes 1x4, expected an open number" transcribe encoder.onnx fixed.onnx "$sounds/pcm16" --prompt 2
printf "$(whole "$(node Cast logits input_ids to 1)$(member 11 "$(shaped input_ids 7 1 length)")$states$(
    member 12 "$(shaped logits 1 1 length)")")" >flat.onnx
try 1 "no output logits of float32 with 3" transcribe encoder.onnx flat.onnx "$sounds/pcm16" --prompt 2
mkdir -p voice/onnx
cp encoder.onnx voice/onnx/encoder_model.onnx
try 1 "expected decoder_model_merged.onnx" transcribe voice "$sounds/pcm16"
cp published.onnx voice/onnx/decoder_model.onnx
echo '{"decoder_start_token_id": 2, "eos_token_id": [7], "other": {"a": [1]}}' >voice/config.json
try 0 "3 4 5 6" transcribe voice "$sounds/pcm16"
echo '{"begin_suppress_tokens": [3], "max_target_positions": 5}' >voice/generation_config.json
try 0 "2 3 4 5" transcribe voice "$sounds/pcm16"
try 1 "has no such language" transcribe voice "$sounds/pcm16" --language de
try 1 "neither the tokenizer" transcribe voice "$sounds/pcm16" --timestamps
try 2 "expected transcribe or translate" transcribe voice "$sounds/pcm16" --task sing
echo '{"eos_token_id": "end"}' >voice/generation_config.json
try 1 "generation_config.json" transcribe voice "$sounds/pcm16"
try 1 "no encoder_model.onnx" transcribe . "$sounds/pcm16"
try 1 "no spectrogram" transcribe $model decoder.onnx "$sounds/pcm16"
try 1 "expected RIFF" transcribe encoder.onnx decoder.onnx encoder.onnx
try 2 "SOUND is missing" transcribe encoder.onnx

# ---- svg: a plain layout, graphviz's, and a graphviz that fails ----
try 0 ">as the model has it: 1 operation</text>" svg $model --plain
try 0 "after the passes: 1 operation" svg $model --dot
"$tool" svg $model --plain -o picture.svg
grep -q '</svg>' picture.svg || { failed=$((failed + 1)); echo "FAILED: picture.svg"; }
try 1 "expected a new file, or -y" svg $model --plain -o picture.svg
try 1 "Nonesuch" svg mixed/unknown/model.onnx
mkdir bin
printf '#!/bin/sh\necho "<svg>drawn $(grep -c digraph "$2")</svg>"\n' >bin/dot
chmod +x bin/dot
PATH=$work/bin:$PATH try 0 "<svg>drawn 1</svg>" svg $model
printf '#!/bin/sh\necho "no fonts" >&2; exit 1\n' >bin/dot
PATH=$work/bin:$PATH try 0 "no fonts ): plain layout" svg $model
# ---- convolutions: one of two channels over a line of eight places by three filters ----
extents() { # NAME EXTENT...
    local dims=() extent
    for extent in "${@:2}"; do dims+=("$(member 1 "$(number 1 "$extent")")"); done
    member 1 "$(text "$1")"
    member 2 "$(member 1 "$(number 1 1)" "$(member 2 "${dims[@]}")")"
}
weights=
for i in {1..9}; do weights+=$one$two; done
printf "$(number 1 8)$(member 7 "$(member 1 "$(member 1 "$(text x)")" "$(member 1 "$(text w)")" \
    "$(member 2 "$(text y)")" "$(member 4 "$(text Conv)")")" "$(member 2 "$(text g)")" \
    "$(member 5 "$(number 1 3)" "$(number 1 2)" "$(number 1 3)" "$(number 2 1)" \
        "$(member 8 "$(text w)")" "$(member 9 "$weights")")" \
    "$(member 11 "$(extents x 1 2 8)")" "$(member 12 "$(extents y 1 3 6)")")$(member 8 "$(number 2 13)")" >conv.onnx
tool=$tune
try 0 "written: t.json" bench --net conv.onnx --budget 1 --threads 1 --file t.json --device none
try 0 "conv:f32:w3:c2:f3:r6:t1" bench --net conv.onnx --budget 1 --threads 1 --file t.json -y --device none
grep -qF '"method": "im2col", "channels": 2, "filters": 3' t.json || { failed=$((failed + 1)); echo "FAILED: the table of bench"; }
try 2 "text version 1 holds no convolutions" bench --net conv.onnx --budget 1 --file t.txt
try 0 "nothing to measure" bench --net $model --budget 1 --device none
try 1 "nothing.onnx" bench --net nothing.onnx
try 0 "direct " explain conv:f32:w3:c2:f3:r6:t1 --table t.json
try 0 "+- " explain conv:f32:w3:c2:f3:r6:t1 --device none # this machine's own table
try 0 "mulmat-tune bench --net" explain conv:f32:w3:c2:f3:r6:t7 --table t.json
try 0 '"method": "' explain --net conv.onnx --table t.json --json
try 2 "expected window, channels" explain conv:f32:w3 --table t.json
try 2 "a product, not convolutions" explain --net conv.onnx --what-if threads=3
try 0 "1 convolutions: median regret" test --oracle --net conv.onnx --cell-time 0.01 --threads 1 \
    --device none --max-median 0 --max-p95 0 --max-worst 0
try 0 '"median_regret"' test --oracle --net conv.onnx --cell-time 0.01 --threads 1 --json \
    --device none --table none --max-median 0 --max-p95 0 --max-worst 0
try 0 "no convolution with several methods" test --oracle --net $model --device none
try 2 "--net wants --oracle" test --net conv.onnx
try 0 "conv:f32:w3:c2:f3:r6:t1:im2col" table show t.json
sed -z 's|"method": "direct"|"method": "twice"|; s|,[^,]*"checksum_later"[^}]*||' t.json >odd.json
try 0 "not measured" explain conv:f32:w3:c2:f3:r6:t1 --table odd.json
tool=$graph
try 0 "copies that change a layout: 2," bench conv.onnx --seconds 0 --table none --explain
try 0 "no times are known;  direct not measured" bench conv.onnx --seconds 0 --table none --explain
try 0 "+- " bench conv.onnx --seconds 0 --table t.json --threads 1 --explain
sed 's/"median_us": [0-9.e+-]*/"median_us": -1/' t.json >wrong.json
try 1 "median_us" bench conv.onnx --seconds 0 --table wrong.json

# ---- parts: the places of positive values, and as many numbers from 0 on ----
zero='\x00\x00\x00\x00\x00\x00\x00\x00' first='\x01\x00\x00\x00\x00\x00\x00\x00'
scalar() { # NAME BYTES of an int64
    member 5 "$(number 2 7)" "$(member 8 "$(text "$1")")" "$(member 9 "$2")"
}
printf "$(whole "$(node Relu r x)$(node NonZero places r)$(node Shape s places)$(
    node Gather k "s last" axis 0)$(node Range y "none k last")$(scalar none "$zero")$(
    scalar last "$first")$(member 11 "$(shaped x 1 n)")$(member 12 "$(shaped places 7 1 k)")$(
    member 12 "$(shaped y 7 k)")")" >places.onnx
try 0 "made/y.npy: int64 2" run places.onnx --input x=x.npy --output made -y
cmp -s <(tail -c 16 made/y.npy) <(printf "$zero$first") || { failed=$((failed + 1)); echo "FAILED: values of parts"; }
cp made/places.npy places.npy
npy '\x00\x00\x80\xbf\x00\x00\x40\x40' >half.npy
try 0 "made/y.npy: int64 1" run places.onnx --input x=half.npy --output made -y
try 0 "made/places.npy: int64 1x2" run places.onnx --input x=x.npy --output made -y --reference
cmp -s made/places.npy places.npy || { failed=$((failed + 1)); echo "FAILED: parts by the reference"; }
try 1 "(n) is 2, --dim says 3" run places.onnx --input x=x.npy --dim n=3 --output made -y
try 0 "in 2 parts: extents depend on values" bench places.onnx --dim n=9 --seconds 0 --ops
try 0 '"parts": 2' bench places.onnx --dim n=9 --seconds 0 --json
for command in "bench --seconds 0" svg optimize; do
    try 1 "no input of the model has a dimension 'm'; tandem-graph inspect lists them" $command places.onnx --dim n=9 --dim m=9
done
for command in "bench --seconds 0" svg; do
    try 1 "is not fixed: give it a size (with the tools: --dim n=N)" $command places.onnx
done
try 0 "values that NonZero 'places' reads" inspect places.onnx --dim n=9
try 0 "values that NonZero 'places' reads" optimize places.onnx --dim n=9
try 0 "</svg>" svg places.onnx --dim n=9 --plain
tool=$tune
try 0 "nothing to measure" bench --net places.onnx --dim n=9 --budget 1 --device none
try 1 "no input of the model has a dimension 'm'" bench --net places.onnx --dim m=9 --budget 1 --device none
try 1 "with the tools: --dim n=N" bench --net places.onnx --budget 1 --device none
tool=$graph

for command in run bench inspect optimize svg mel transcribe test; do
    try 0 "usage: tandem-graph $command" $command --help
    try 2 "unknown option" $command --nonesuch
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
