#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: cluster_links.sh BUILD [MPI [ROUNDS [GBIT_S:LATENCY_MS:LOSS_PERCENT...]]]
# What fit predicts for ranks over real links, beside what bench measures: in network namespaces joined by a
# shaped switch (netns.sh), one CPU a rank. The links are measured in them, products once outside. One rank alone and
# all ranks, by rows and by layers with the shares that fit gives them for prompts, and mixed, are measured in turns, and so is
# the generation of TEXTS texts at the same time, by layers; medians are printed. Figures, no verdict: a busy machine has others.
# Variables: SHAPE (of `synth`) or MODEL, PROMPT (tokens), TEXTS, REPEAT (of a bench), BUDGET (seconds for products).
set -u
cd "$(dirname "$0")/.."
build=$(cd "${1:-build/release}" && pwd)
mpi=${2:-openmpi} rounds=${3:-5}
shift $(($# < 3 ? $# : 3))
shape=${SHAPE:-1024,2816,6,16,4,8192}
. tests/netns.sh
net_realtime=1
work=$(mktemp -d)
trap 'net_down; rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work TANDEM_DEVICE=none
unset OPENBLAS_CORETYPE TANDEM_TABLE TANDEM_LOG TANDEM_CPU TANDEM_THREADS

command -v "mpirun.$mpi" >/dev/null || { echo "SKIP links: no $mpi"; exit 0; }
why=$(net_up "$build" 2 1 0 0; net_down) && [ -z "$why" ] || { echo "SKIP links: $why"; exit 0; }
model=${MODEL:-$work/model.gguf}
[ -n "${MODEL:-}" ] || "$build/tandem-llama" synth "$model" -q --shape "$shape" --type q4_0 || exit 1
alone=(taskset -c 0)
chrt -r 24 true 2>/dev/null && alone=(chrt -r 24 taskset -c 0)
"${alone[@]}" "$build/mulmat-tune" bench --model "$model" -m 1,2,4,8,64,512 --threads 1 --profile cpu -q -y --budget ${BUDGET:-60} -f "$work/cpu.json" >/dev/null || exit 1
common=("$model" --threads 1)
prompt=${PROMPT:-256} # tokens: by layers in micro-batches of 64
texts=${TEXTS:-4}
bench=(--prompt "$prompt" --gen 16 --repeat ${REPEAT:-3} --output csv)

median() { sort -g | awk '{v[NR] = $1} END {print NR ? v[int((NR + 1) / 2)] : "nothing"}'; }

echo "$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -1), $mpi, ${MODEL:-shape $shape q4_0}, load $(cut -d' ' -f1 /proc/loadavg), medians of $rounds rounds"
echo "| link | ranks | prompt or generation | predicted, tokens/s | measured, tokens/s | error | the plan took |"
echo "|---|---|---|---|---|---|---|"
for link in "${@:-1:0.2:0 0.1:2:0 1:0.2:0.1}"; do
    for one in $link; do
        IFS=: read -r gbit latency loss <<<"$one"
        net_up "$build" 2 "$gbit" "$latency" "$loss" || exit 1
        rm -f "$work"/tandem/*.json
        net_launch "$mpi" 2 "$build/mulmat-tune" bench --links -q >"$work/links" 2>"$work/err" || { tail -5 "$work/err"; exit 1; }
        for by in rows layers mixed texts; do
            case $by in
            texts) how=(--objective generation --divide layers --texts "$texts") ;;
            mixed) how=(--divide mixed) ;;
            *) how=(--objective prompt --divide "$by") ;;
            esac
            net_launch "$mpi" 2 "$build/tandem-llama" fit "${common[@]}" --prompt "$prompt" --context "$prompt" --table "$work/cpu.json" --json "${how[@]}" \
                >"$work/fit.$by" 2>"$work/err" || { tail -5 "$work/err"; exit 1; }
        done
        for _ in $(seq "$rounds"); do
            "${alone[@]}" "$build/tandem-llama" bench "${common[@]}" "${bench[@]}" --table "$work/cpu.json" 2>/dev/null >>"$work/1.$one"
            "${alone[@]}" "$build/tandem-llama" bench "${common[@]}" "${bench[@]}" --prompt 0 --texts "$texts" --table "$work/cpu.json" 2>/dev/null >>"$work/1 texts.$one"
            for by in rows layers mixed texts; do
                line=$(grep '{"ranks": 2,' "$work/fit.$by" 2>/dev/null)
                shares=$(grep -o '"share": [0-9.]*' <<<"$line" | sed 's/.*: //' | paste -sd,)
                layers=$(grep -o '"layers": [0-9]*' <<<"$line" | sed 's/.*: //' | paste -sd,)
                batches=$(sed -nE 's/.*"batches_in_flight": ([0-9]+).*/\1/p' <<<"$line")
                case $by in
                texts) how=(--prompt 0 --texts "$texts" --divide layers --shares "$shares" --in-flight "${batches:-1}") ;;
                mixed) how=(--divide mixed --shares "$shares" --layer-shares "$layers") ;;
                *) how=(--divide "$by" --shares "$shares") ;;
                esac
                net_launch "$mpi" 2 "$build/tandem-llama" bench "${common[@]}" "${bench[@]}" --table "$work/cpu.json" "${how[@]}" \
                    2>"$work/err.$by" >>"$work/2 by $by.$one"
            done
        done
        net_launch "$mpi" 2 "$build/tandem-llama" bench "${common[@]}" "${bench[@]}" --table "$work/cpu.json" >/dev/null 2>"$work/plan"
        plan=$(sed -n 's/^plan: \([0-9]* of [0-9]* ranks[a-z ]*\)(.*/\1/p' "$work/plan")
        for ranks in 1 '2 by rows' '2 by layers' '2 by mixed' '1 texts' '2 by texts'; do
            by=${ranks##* }
            [ "$by" = 1 ] && by=rows
            for test in $([ "$by" = texts ] || echo prompt) generation; do
                predicted=$(grep "{\"ranks\": ${ranks%% *}," "$work/fit.$by" | sed -nE "s/.*\"${test}_tps\": ([0-9.e+]+).*/\1/p")
                measured=$(awk -F, -v what="$test" '$1 == what {print $5}' "$work/$ranks.$one" | median)
                awk -v one="$gbit Gb/s, $latency ms, loss $loss %" -v ranks="$ranks" -v test=$test -v p="$predicted" -v m="$measured" -v plan="${plan:-none}" \
                    'BEGIN {printf "| %s | %s | %s | %.1f | %.1f | %+.0f %% | %s |\n", one, ranks, test, p, m, 100 * (p / m - 1), plan}'
            done
        done
        net_down
    done
done
