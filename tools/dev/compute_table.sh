#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: tools/dev/compute_table.sh bench-data/NAME/machine.txt > bench-data/NAME/table.json
# A timing table out of data sheets: machine.txt has "key value" lines, README.md beside it says
# where they are from. Nothing in the table was measured. Each stage takes its fixed cost and then
# the longer of arithmetic and memory; the kernel that decodes while it multiplies, on a card with a
# `capability`, the longest of memory and the units whose instructions are counted beside this file.
set -euo pipefail
[ $# -eq 1 ] && [ -r "$1" ] || { sed -n '3,8s/^# //p' "$0" >&2; exit 2; }
awk -v counts_file="$(dirname "$0")/cuda_counts.txt" '
function max(a, b) { return a > b ? a : b }
function min(a, b) { return a < b ? a : b }
# Microseconds of these operations and bytes at TFLOP/s and GB/s, plus a fixed cost.
function us(flops, bytes, tflops, gbps, fixed) {
    return fixed + max(flops / (tflops * 1e6), bytes / (gbps * 1e3))
}
# Units that are counted: threads a clock of a multiprocessor (tools/judges/cuda_cost.py).
function read_counts(  line, word, i) {
    while ((getline line < counts_file) > 0) {
        split(line, word, " ")
        if (word[1] == v["capability"] && word[4] == "q4_0") {
            for (i = 1; i <= 5; i++) {
                counted[word[2], word[3], i] = word[4 + i]
            }
        }
    }
    if (!(("tiled", "64", 5) in counted)) {
        print "compute_table.sh: " counts_file " has no counts of capability " v["capability"] > "/dev/stderr"
        exit 1
    }
    split((v["capability"] == 80 ? "128 64" : "128 128") " 64 16 32", rate, " ")
}
# The kernel of the default tiles for m tokens.
function counted_us(m, n, k, bytes,  kernel, columns, most, i) {
    kernel = m > 16 ? "tiled" : "matvec"
    columns = m > 16 ? 64 : m > 4 ? 8 : m > 1 ? 4 : 1
    most = bytes / (card_gbps * 1e3)
    for (i = 1; i <= 5; i++) {
        most = max(most, int((m + columns - 1) / columns) * n * k * counted[kernel, columns, i] / \
            (rate[i] * v["multiprocessors"] * v["card_ghz"] * v["of_counted"] * 1e3))
    }
    return v["launching"] + most
}
function begin_curve(backend, stage, task, parallel, threads) {
    printf "%s\n{\"op\":\"mul_mat\",\"type\":\"%s\",\"n\":%d,\"k\":%d,\"backend\":\"%s\"," \
        "\"stage\":\"%s\",\"task\":\"%s\",\"parallel\":%s,\"own_threads\":false,\"threads\":%d," \
        "\"samples\":[", between, type, n, k, backend, stage, task, parallel, threads
    between = ","
}
function sample(i, m, time) {
    printf "%s{\"m\":%d,\"median_us\":%.3f,\"spread_us\":0,\"count\":1,\"when\":0}", (i > 1 ? "," : ""), m, time
}
function peak(unit, threads, rate, behind) {
    printf "{\"unit\":\"%s\",\"threads\":%d,\"rate\":%g,\"count\":1,\"when\":0}%s\n", unit, threads, rate, behind
}
BEGIN {
    # Assumptions: shares of the peaks that real programs reach, and fixed costs in microseconds.
    v["of_compute"] = 0.7; v["of_fused"] = 0.25; v["of_memory"] = 0.8; v["of_cpu_memory"] = 0.8
    v["of_counted"] = 0.8; v["backend"] = "opencl"; v["library"] = "clblast"
    v["handing_over"] = 2; v["launching"] = 8; v["latency"] = 10
    v["tokens"] = "1 2 8 32 128 512"
    # Of Llama 3 8B and 70B and Qwen3 30B-A3B (attention, 8 and 128 experts together); others lie between.
    v["shapes"] = "512x2048 2048x768 1024x4096 4096x2048 16384x768 4096x4096 14336x4096 4096x14336" \
        " 8192x8192 262144x768 28672x8192 8192x28672 151936x2048 128256x4096 128256x8192"
    v["f32_shapes"] = "128x2048" # the router of the experts
}
/^[a-z0-9_]+ / { key = $1; sub(/^[a-z0-9_]+ +/, ""); v[key] = $0 }
END {
    q4_0 = 18 / 32 # bytes a weight: a scale in half precision and 32 times 4 bits
    n_m = split(v["tokens"], tokens, " ")
    n_threads = split(v["threads"], counts, " ")
    n_shapes = split(v["shapes"], shape, " ")
    is_cuda = v["capability"] > 0
    if (is_cuda) {
        v["backend"] = "cuda"; v["library"] = "cublas"
        read_counts()
    }
    card = v["backend"]

    printf "{\"version\": 2, \"model\": \"%s\", \"fingerprint\": {\"cpu_model\": \"computed, not measured:" \
        " %s\", \"n_cpus\": %d, \"n_cores\": %d, \"gpu\": \"%s (computed)\"},\n", v["model"], v["cpu"], \
        v["cores"], v["cores"], v["card"]
    stage = "{\"backend\":\"%s\",\"kind\":%d,\"task\":\"%s\",\"parallel\":%s,\"wait\":%s,\"own_threads\":false}"
    print "\"profiles\": ["
    printf "{\"name\":\"cpu\",\"stages\":{\"init\":" stage ",\"compute\":" stage "}},\n", "cpu", 1, \
        "quantize_x", "true", "false", "cpu", 1, "mul_mat_q", "true", "false"
    printf "{\"name\":\"%s\",\"stages\":{\"compute\":" stage "}},\n", card, card, is_cuda ? 2 : 6, "node", "false", "true"
    printf "{\"name\":\"%s+%s\",\"stages\":{\"init\":" stage ",\"compute\":" stage "}}],\n", card, v["library"], \
        card, is_cuda ? 2 : 5, "dequantize_w", "false", "true", card, is_cuda ? 2 : 5, "mul_mat_f32", "false", "true"
    printf "\"curves\": ["
    for (s = 1; s <= n_shapes; s++) {
        split(shape[s], nk, "x")
        n = nk[1]; k = nk[2]
        type = "q4_0"
        weights = n * k * q4_0
        for (t = 1; t <= n_threads; t++) {
            threads = counts[t]
            tflops = threads * v["ghz"] * v["per_cycle"] * v["of_compute"] / 1e3
            gbps = min(threads * v["core_gbps"], v["cpu_gbps"] * v["of_cpu_memory"])
            fixed = threads > 1 ? v["handing_over"] : 0.2
            begin_curve("cpu", "init", "quantize_x", "true", threads)
            for (i = 1; i <= n_m; i++) {
                m = tokens[i]
                sample(i, m, us(m * k * 4, m * k * 5, tflops, gbps, fixed))
            }
            printf "]}"
            begin_curve("cpu", "compute", "mul_mat_q", "true", threads)
            for (i = 1; i <= n_m; i++) {
                m = tokens[i]
                sample(i, m, us(2 * m * n * k, weights + 4 * m * (n + k), tflops, gbps, fixed))
            }
            printf "]}"
        }
        card_gbps = v["card_gbps"] * v["of_memory"]
        begin_curve(card, "init", "dequantize_w", "false", 1)
        for (i = 1; i <= n_m; i++) {
            sample(i, tokens[i], us(0, weights + 4 * n * k, v["card_tflops"], card_gbps, v["launching"]))
        }
        printf "]}"
        begin_curve(card, "compute", "node", "false", 1)
        for (i = 1; i <= n_m; i++) {
            m = tokens[i]
            bytes = weights + 4 * m * (n + k)
            sample(i, m, is_cuda ? counted_us(m, n, k, bytes) : us(2 * m * n * k, bytes, v["card_tflops"] * v["of_fused"], card_gbps, v["launching"]))
        }
        printf "]}"
        begin_curve(card, "compute", "mul_mat_f32", "false", 1)
        for (i = 1; i <= n_m; i++) {
            m = tokens[i]
            sample(i, m, us(2 * m * n * k, 4 * (n * k + m * (n + k)), v["card_tflops"] * v["of_compute"], card_gbps, v["launching"]))
        }
        printf "]}"
    }
    n_f32 = split(v["f32_shapes"], shape, " ")
    for (s = 1; s <= n_f32; s++) {
        split(shape[s], nk, "x")
        n = nk[1]; k = nk[2]
        type = "f32"
        for (t = 1; t <= n_threads + 1; t++) {
            on_card = t > n_threads
            threads = on_card ? 1 : counts[t]
            tflops = on_card ? v["card_tflops"] * v["of_compute"] : threads * v["ghz"] * v["per_cycle"] * v["of_compute"] / 1e3
            gbps = on_card ? card_gbps : min(threads * v["core_gbps"], v["cpu_gbps"] * v["of_cpu_memory"])
            fixed = on_card ? v["launching"] : threads > 1 ? v["handing_over"] : 0.2
            begin_curve(on_card ? card : "cpu", "compute", "node", on_card ? "false" : "true", threads)
            for (i = 1; i <= n_m; i++) {
                m = tokens[i]
                sample(i, m, us(2 * m * n * k, 4 * (n * k + m * (n + k)), tflops, gbps, fixed))
            }
            printf "]}"
        }
    }
    printf "],\n\"transfers\": ["
    for (d = 1; d <= 2; d++) {
        printf "%s{\"backend\":\"%s\",\"direction\":\"%s\",\"samples\":[", (d > 1 ? ",\n" : "\n"), card, (d > 1 ? "download" : "upload")
        for (bytes = 4096; bytes <= 268435456; bytes *= 4) {
            printf "%s{\"bytes\":%d,\"median_us\":%.3f,\"spread_us\":0,\"count\":1,\"when\":0}", (bytes > 4096 ? "," : ""), \
                bytes, v["latency"] + bytes / (v["bus_gbps"] * v["of_memory"] * 1e3)
        }
        printf "]}"
    }
    printf "],\n\"handoffs\": ["
    for (t = 2; t <= n_threads; t++) {
        printf "%s{\"threads\":%d,\"spin_us\":%g,\"wake_us\":%g,\"count\":1,\"when\":0}", (t > 2 ? "," : ""), \
            counts[t], v["handing_over"], 25 * v["handing_over"]
    }
    if (v["sockets"] > 1) {
        # Interleaved, a socket reads all but its own share over the links.
        own = v["cpu_gbps"] * v["of_memory"] / v["sockets"]
        link = v["link_gbps"] * v["of_memory"]
        print "],\n\"peaks\": ["
        peak("numa-own", v["cores"] / v["sockets"], own, ",")
        peak("numa-other", v["cores"] / v["sockets"], min(own, link), ",")
        peak("numa-all-own", v["cores"], own * v["sockets"], ",")
        peak("numa-interleave", v["cores"], v["sockets"] * min(own, link * v["sockets"] / (v["sockets"] - 1)), "")
    }
    print "]}"
}' "$1"
