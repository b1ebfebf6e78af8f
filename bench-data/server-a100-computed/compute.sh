#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: compute.sh > table.json
# A timing table out of data sheets: see README.md beside it. Nothing here was measured.
awk '
function max(a, b) { return a > b ? a : b }
function min(a, b) { return a < b ? a : b }
# Microseconds of so many operations and bytes at TFLOP/s and GB/s, behind a fixed cost.
function us(flops, bytes, tflops, gbps, fixed) {
    return fixed + max(flops / (tflops * 1e6), bytes / (gbps * 1e3))
}
function begin_curve(backend, stage, task, parallel, threads) {
    printf "%s\n{\"op\":\"mul_mat\",\"type\":\"q4_0\",\"n\":%d,\"k\":%d,\"backend\":\"%s\"," \
        "\"stage\":\"%s\",\"task\":\"%s\",\"parallel\":%s,\"own_threads\":false,\"threads\":%d," \
        "\"samples\":[", between, n, k, backend, stage, task, parallel, threads
    between = ","
}
function sample(i, m, time) {
    printf "%s{\"m\":%d,\"median_us\":%.3f,\"spread_us\":0,\"count\":1,\"when\":0}", (i > 1 ? "," : ""), m, time
}
BEGIN {
    # The CPU: cores, GHz, FP32 operations a cycle and core; GB/s of the socket and of one core.
    cores = 64; ghz = 2.45; per_cycle = 32; socket_gbps = 204.8; core_gbps = 20
    # The card: FP32 TFLOP/s, GB/s of its memory; GB/s of the bus in each direction.
    card_tflops = 19.5; card_gbps = 1555; bus_gbps = 31.5
    # What real programs reach of peaks, and fixed costs in microseconds: assumptions.
    of_compute = 0.7; of_fused = 0.25; of_memory = 0.8
    handing_over = 2; launching = 8; latency = 10
    q4_0 = 18 / 32 # bytes a weight: a scale in half precision and 32 times 4 bits

    n_m = split("1 2 4 8 16 32 64 128 256 512", tokens, " ")
    n_threads = split("1 2 4 8 16 32 64", counts, " ")
    n_shapes = split("4096 4096 4096 11008 11008 4096 32000 4096", shape, " ") / 2

    print "{\"version\": 2, \"model\": \"7B\", \"fingerprint\": {\"cpu_model\": \"computed, not measured:" \
        " AMD EPYC 7763\", \"n_cpus\": 64, \"n_cores\": 64, \"gpu\": \"NVIDIA A100 40GB PCIe (computed)\"},"
    stage = "{\"backend\":\"%s\",\"kind\":%d,\"task\":\"%s\",\"parallel\":%s,\"wait\":%s,\"own_threads\":false}"
    print "\"profiles\": ["
    printf "{\"name\":\"cpu\",\"stages\":{\"init\":" stage ",\"compute\":" stage "}},\n", "cpu", 1, \
        "quantize_x", "true", "false", "cpu", 1, "mul_mat_q", "true", "false"
    printf "{\"name\":\"opencl\",\"stages\":{\"compute\":" stage "}},\n", "opencl", 6, "node", "false", "true"
    printf "{\"name\":\"opencl+clblast\",\"stages\":{\"init\":" stage ",\"compute\":" stage "}}],\n", \
        "opencl", 5, "dequantize_w", "false", "true", "opencl", 5, "mul_mat_f32", "false", "true"
    printf "\"curves\": ["
    for (s = 1; s <= n_shapes; s++) {
        n = shape[2 * s - 1]; k = shape[2 * s]
        weights = n * k * q4_0
        for (t = 1; t <= n_threads; t++) {
            threads = counts[t]
            tflops = threads * ghz * per_cycle * of_compute / 1e3
            gbps = min(threads * core_gbps, socket_gbps * of_memory)
            fixed = threads > 1 ? handing_over : 0.2
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
        begin_curve("opencl", "init", "dequantize_w", "false", 1)
        for (i = 1; i <= n_m; i++) {
            sample(i, tokens[i], us(0, weights + 4 * n * k, card_tflops, card_gbps * of_memory, launching))
        }
        printf "]}"
        begin_curve("opencl", "compute", "node", "false", 1)
        for (i = 1; i <= n_m; i++) {
            m = tokens[i]
            sample(i, m, us(2 * m * n * k, weights + 4 * m * (n + k), card_tflops * of_fused, card_gbps * of_memory, launching))
        }
        printf "]}"
        begin_curve("opencl", "compute", "mul_mat_f32", "false", 1)
        for (i = 1; i <= n_m; i++) {
            m = tokens[i]
            sample(i, m, us(2 * m * n * k, 4 * (n * k + m * (n + k)), card_tflops * of_compute, card_gbps * of_memory, launching))
        }
        printf "]}"
    }
    printf "],\n\"transfers\": ["
    for (d = 1; d <= 2; d++) {
        printf "%s{\"backend\":\"opencl\",\"direction\":\"%s\",\"samples\":[", (d > 1 ? ",\n" : "\n"), (d > 1 ? "download" : "upload")
        for (bytes = 4096; bytes <= 268435456; bytes *= 4) {
            printf "%s{\"bytes\":%d,\"median_us\":%.3f,\"spread_us\":0,\"count\":1,\"when\":0}", (bytes > 4096 ? "," : ""), \
                bytes, latency + bytes / (bus_gbps * of_memory * 1e3)
        }
        printf "]}"
    }
    printf "],\n\"handoffs\": ["
    for (t = 2; t <= n_threads; t++) {
        printf "%s{\"threads\":%d,\"spin_us\":%g,\"wake_us\":%g,\"count\":1,\"when\":0}", (t > 2 ? "," : ""), \
            counts[t], handing_over, 25 * handing_over
    }
    print "]}"
}'
