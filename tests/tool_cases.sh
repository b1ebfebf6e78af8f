# SPDX-License-Identifier: MIT
# What tests/faults.sh and tests/machines.sh attack: commands of the tools on a small model and small tables, in a
# folder of their own. Sourced with `build` set. Each case $name is a function run_$name, which works in a fresh copy
# of $in/old, and judge_$name CODE, which says whether its files are old or new and whole, and its result right.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset TANDEM_LOG TANDEM_CPU TANDEM_TABLE TANDEM_THREADS TANDEM_TRACE FAULT FAULT_REPORT
in=$work/in
# Drivers of devices (PoCL, with LLVM) abort when memory ends: no device here. suite_faults lets their calls fail.
export TANDEM_DEVICE=none
mkdir -p "$in"/{hf,torch,meta,sharded,old}
"$build/make-models" "$in" || exit 1
cd "$work" || exit 1

fault=() # what the environment of a tool gets, and the command that starts it
patient=(--kill-after=5 30)
limit=("${patient[@]}")
tool() { timeout "${limit[@]}" env "${fault[@]}" "$build/$1" "${@:2}"; }

model=(--threads 2 --temp 0 -n 4 -t "$in/tokenizer.bin")
cell=(--model 64x64 --threads 1 --profile cpu --effort estimate)
same() { cmp -s "$1" "$2"; }
# Whether file $1 is what it was or what the run without faults made of it.
old_or_new() { same "$1" "$in/old/$1" || same "$1" "$work/clean-$name/$1"; }

run_run() { tool tandem-llama run "$in/model.bin" "${model[@]}" --table none; }
judge_run() { [ "$1" -ne 0 ] || same ../out "../out-$name"; }
run_plan() { tool tandem-llama run "$in/model.bin" "${model[@]}" --table t1.json --plan; }
judge_plan() { [ "$1" -ne 0 ] || same ../out "../out-$name"; }
run_convert() { tool tandem-llama convert "$in/model.bin" out.gguf -y --type "${type:-q4_0}"; }
judge_convert() { old_or_new out.gguf && { [ "$1" -ne 0 ] || same out.gguf "$work/clean-$name/out.gguf"; }; }
run_merge() { tool mulmat-tune table merge t1.json t2.json; }
judge_merge() { old_or_new t1.json && { [ "$1" -ne 0 ] || same t1.json "$work/clean-$name/t1.json"; }; }
run_save() { printf 'hi\n/save state\n' | tool tandem-llama chat "$in/model.bin" "${model[@]}" --table none --chat-template plain; }
judge_save() {
    local fault=()
    printf '/load state\n' | tool tandem-llama chat "$in/model.bin" "${model[@]}" --table none --chat-template plain >loaded 2>&1
    ! grep -q 'state:' loaded && rm loaded
}
run_bench() { tool mulmat-tune bench "${cell[@]}" -m 2 --budget 1 --file t1.json -y; }
judge_bench() {
    local fault=()
    tool mulmat-tune table show t1.json >shown 2>&1 && grep -q mul_mat_q shown && rm shown
}

# What the cases find: two tables, a converted model, a saved state. (The cases change a copy.)
export XDG_CACHE_HOME=$in/old/cache
mkdir -p "$XDG_CACHE_HOME"
(cd "$in/old" && tool mulmat-tune bench "${cell[@]}" -m 1 --budget 1 --file t1.json -y &&
    tool mulmat-tune bench "${cell[@]}" -m 4 --budget 1 --file t2.json -y && run_save &&
    tool tandem-llama convert "$in/model.bin" out.gguf --type q8_0) >setup.log 2>&1 || { cat setup.log; exit 1; }

# Runs case $name in a fresh folder `now`; its exit code is in `code`.
attempt() {
    rm -rf now
    cp -a "$in/old" now
    cd now || exit 1
    export XDG_CACHE_HOME=$PWD/cache
    "run_$name" >../out 2>../err </dev/null
    code=$?
}
# Without a fault: what it makes is kept in clean-$name, what it prints in out-$name.
attempt_clean() {
    attempt
    cd "$work" || exit 1
    rm -rf "clean-$name"
    mv now "clean-$name"
    mv out "out-$name"
    [ "$code" -eq 0 ] || { echo "$name fails without a fault:"; cat err; exit 1; }
}
# Says what is wrong with the exit code, the message and the result of the last attempt, in its folder.
judge_result() {
    if [ "$code" -ge 124 ]; then
        echo "exit code $code"
    elif [ "$code" -ne 0 ] && [ ! -s ../err ]; then
        echo "exit code $code without a message"
    fi
    "judge_$name" "$code" || echo "exit code $code, but not the result, or a damaged file"
}
# What the attempt has left beside the files that belong here. (PoCL has a cache of its own; another machine has a table of its own.)
leftovers() { diff -rq "$in/old" . | sed -n 's/^Only in \.[^:]*: //p' | grep -vE '\.lock$|^pocl$|^[0-9a-f]{16}\.json$' | tr '\n' ' '; }
